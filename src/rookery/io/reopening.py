"""A source that is open only while it is read."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from rookery.io.location import scheme_of, shown
from rookery.io.open import open_source
from rookery.io.source import Source
from rookery.model.cache import Cache

BLOCK = 64 << 10  # bytes: a request takes as long for these as for one
_LONGEST = 1 << 20  # longer ranges are read as requested

_serials = count()


class ReopeningSource(Source):
    """A file that never changes: it is opened for each read, and closed again.

    Of a remote file whole blocks are read, and cached: its parts are small, and read repeatedly.
    """

    def __init__(self, location: str, properties: Mapping[str, str] | None, size: int, cache: Cache) -> None:
        super().__init__(shown(location))
        self._cache = cache
        self._location = location
        self._properties = properties
        self._size = size
        self._serial = next(_serials)
        self._in_blocks = size > 0 and scheme_of(location) is not None

    def _measure(self) -> int:
        if self._size:
            return self._size
        with open_source(self._location, self._properties) as opened:
            return opened.size

    def _fetch(self, offset: int, length: int) -> bytes:
        if not self._in_blocks or length > _LONGEST or offset + length > self._size:
            return self._read(offset, length)
        numbers = range(offset // BLOCK, (offset + length - 1) // BLOCK + 1)
        cached = {number: self._cache.find(self._key(number)) for number in numbers}
        blocks = {number: block for number, block in cached.items() if block is not None}
        missing = [number for number in numbers if number not in blocks]
        if missing:
            start = missing[0] * BLOCK
            data = self._read(start, min((missing[-1] + 1) * BLOCK, self._size) - start)
            for number in range(missing[0], missing[-1] + 1):
                blocks[number] = data[number * BLOCK - start :][:BLOCK]
                self._cache.put(self._key(number), blocks[number], BLOCK)
        joined = b"".join(blocks[number] for number in numbers)
        return joined[offset - numbers[0] * BLOCK :][:length]

    def _key(self, number: int) -> tuple[str, int, int]:
        return "block", self._serial, number

    def _read(self, offset: int, length: int) -> bytes:
        with open_source(self._location, self._properties) as opened:
            return opened.read(offset, length)
