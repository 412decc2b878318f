"""A source that is open only while it is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import count
from threading import Lock

from rookery.io.location import scheme_of, shown
from rookery.io.open import open_source
from rookery.io.source import Source

BLOCK = 64 << 10  # bytes: a request takes as long for these as for one
_LONGEST = 1 << 20  # what is longer is read as it is asked for
_CACHED = 64 << 20  # bytes of all blocks that are cached

_lock = Lock()
_blocks: OrderedDict[tuple[int, int], bytes] = OrderedDict()  # by source and number, the last used last
_serials = count()


class ReopeningSource(Source):
    """A file that never changes: it is opened for each read, and closed again.

    Of a remote file whole blocks are read, and cached: its parts are small, and asked for again and again.
    """

    def __init__(self, location: str, properties: Mapping[str, str] | None, size: int) -> None:
        super().__init__(shown(location))
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
        found = self._cached(numbers)
        missing = [number for number in numbers if number not in found]
        if missing:
            start = missing[0] * BLOCK
            data = self._read(start, min((missing[-1] + 1) * BLOCK, self._size) - start)
            read = range(missing[0], missing[-1] + 1)
            found |= {number: data[number * BLOCK - start :][:BLOCK] for number in read}
            self._cache({number: found[number] for number in read})
        joined = b"".join(found[number] for number in numbers)
        return joined[offset - numbers[0] * BLOCK :][:length]

    def _read(self, offset: int, length: int) -> bytes:
        with open_source(self._location, self._properties) as opened:
            return opened.read(offset, length)

    def _cached(self, numbers: Sequence[int]) -> dict[int, bytes]:
        with _lock:
            keys = [(self._serial, number) for number in numbers if (self._serial, number) in _blocks]
            for key in keys:
                _blocks.move_to_end(key)
            return {key[1]: _blocks[key] for key in keys}

    def _cache(self, blocks: Mapping[int, bytes]) -> None:
        with _lock:
            _blocks.update({(self._serial, number): data for number, data in blocks.items()})
            while len(_blocks) * BLOCK > _CACHED:
                _blocks.popitem(last=False)
