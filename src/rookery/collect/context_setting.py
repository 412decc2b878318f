"""An attribute of the Spark context that is changed for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class ContextSetting:
    """An attribute of the one context that a process has; several threads may be inside at once."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._lock = threading.Lock()
        self._inside = 0
        self._saved: Any = None

    @contextmanager
    def changed(self, context: Any, change: Callable[[Any], Any]) -> Iterator[None]:
        """Change the value when the first thread enters, and restore it when the last one leaves."""
        with self._lock:
            if self._inside == 0:
                self._saved = getattr(context, self._attribute)
                setattr(context, self._attribute, change(self._saved))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    setattr(context, self._attribute, self._saved)
