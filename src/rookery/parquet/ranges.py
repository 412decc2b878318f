"""Several ranges of a file by few reads."""

from __future__ import annotations

from collections.abc import Sequence

from rookery.io import Source
from rookery.model import Place
from rookery.parquet.structure import ParquetError

JOIN_GAP = 64 << 10  # reading so many unused bytes costs less than another request

Range = tuple[int, int]
"""An offset and a length."""


def check_range(source: Source, offset: int, length: int, what: str) -> None:
    """Raise if a range is not inside the file, before memory is allocated for it."""
    if offset < 0 or length < 0 or offset + length > source.size:
        raise ParquetError(
            Place(source.name, offset), f"{what} inside the file of {source.size} bytes", f"{length} bytes"
        )


def read_ranges(source: Source, ranges: Sequence[Range], what: str, gap: int = JOIN_GAP) -> list[memoryview]:
    """Read *ranges* of *what*, those at most *gap* bytes apart by one read."""
    for offset, length in ranges:
        check_range(source, offset, length, what)
    views = [memoryview(b"")] * len(ranges)
    order = sorted((number for number in range(len(ranges)) if ranges[number][1]), key=ranges.__getitem__)
    first = 0
    while first < len(order):
        start, length = ranges[order[first]]
        end = start + length
        last = first + 1
        while last < len(order) and ranges[order[last]][0] <= end + gap:
            end = max(end, sum(ranges[order[last]]))
            last += 1
        data = memoryview(source.read(start, end - start))
        for number in order[first:last]:
            offset, length = ranges[number]
            views[number] = data[offset - start : offset - start + length]
        first = last
    return views
