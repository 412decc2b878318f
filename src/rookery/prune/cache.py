"""What is kept in mind between calls: things that never change, so that a copy of them is always right."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")
_EVERY: WeakSet[LruCache[Any]] = WeakSet()


def forget() -> None:
    """Let go of everything that is kept in mind, wherever, as a new process would begin."""
    for kept in list(_EVERY):
        kept.clear()


class LruCache(Generic[T]):
    """The things used last, by name, *most* of them.

    >>> kept = LruCache(1)
    >>> kept.get("a", lambda: 1), kept.get("a", lambda: 2), kept.get("b", lambda: 3), kept.get("a", lambda: 4)
    (1, 1, 3, 4)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[str, T] = OrderedDict()
        self._lock = Lock()
        _EVERY.add(self)

    def get(self, name: str, make: Callable[[], T]) -> T:
        """Return the thing of that name; if it is not kept, make it."""
        with self._lock:
            if name in self._things:
                self._things.move_to_end(name)
                return self._things[name]
        made = make()  # not under the lock: it may take long, and making it twice does no harm
        with self._lock:
            self._things[name] = made
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._things.clear()
