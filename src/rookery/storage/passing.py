"""A source that is open only while it is read."""

from __future__ import annotations

from collections.abc import Mapping

from rookery.storage.open import open_source
from rookery.storage.source import Source


class PassingSource(Source):
    """A file that never changes, kept in mind for long: it is opened for each read, and closed again."""

    def __init__(self, location: str, properties: Mapping[str, str] | None, size: int) -> None:
        super().__init__(location)
        self._properties = properties
        self._size = size

    def _measure(self) -> int:
        if self._size:
            return self._size
        with open_source(self.name, self._properties) as opened:
            return opened.size

    def _fetch(self, offset: int, length: int) -> bytes:
        with open_source(self.name, self._properties) as opened:
            return opened.read(offset, length)
