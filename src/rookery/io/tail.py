"""A source whose end is read once and cached."""

from __future__ import annotations

from functools import cached_property

from rookery.io.source import Source


class TailSource(Source):
    """Another source of *size* bytes, the last *length* of which are read at most once.

    Footers are at the end, and the data of a small file not far before; the other source counts what is
    truly read.
    """

    def __init__(self, source: Source, size: int, length: int) -> None:
        super().__init__(source.name)
        self._source = source
        self._end = size
        self._start = max(size - length, 0)

    @cached_property
    def _tail(self) -> bytes:
        return self._source.read(self._start, self._end - self._start)

    def _measure(self) -> int:
        return self._end

    def _fetch(self, offset: int, length: int) -> bytes:
        end = offset + length
        if end <= self._start:
            return self._source.read(offset, length)
        kept = self._tail[max(offset - self._start, 0) : end - self._start]
        if offset >= self._start:
            return kept
        return self._source.read(offset, self._start - offset) + kept
