"""Indexes under construction, as the files of a task are read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from rookery.collect.plan import FileTask, IndexColumn, Task
from rookery.collect.read import IndexConsumers
from rookery.sidecar import IndexKind
from rookery.sketch.bitmap import BitmapBuilder, BitmapIndex
from rookery.sketch.bloom import BloomFilter, blocks_for
from rookery.sketch.bloom_builder import BloomBuilder


class IndexBuilders:
    """The indexes of a task: a Bloom filter a file, and one set of bitmaps for the group's rows."""

    def __init__(self, task: Task) -> None:
        self._blooms = [wanted for wanted in task.indexes if wanted.index.kind is IndexKind.BLOOM]
        self._bitmaps = {
            wanted.field.id: (wanted.field, BitmapBuilder(wanted.field.type, task.group_rows))
            for wanted in task.indexes
            if wanted.index.kind is IndexKind.BITMAP
        }
        self.blooms: dict[int, dict[int, BloomFilter]] = {wanted.field.id: {} for wanted in self._blooms}

    def consumers(self, file: FileTask) -> IndexConsumers:
        """Return where a file's values go."""
        blooms = {wanted.field.id: (wanted.field, _bloom(wanted, file)) for wanted in self._blooms}
        bitmaps = {
            number: (column, partial(_take, builder, file.ordinal))
            for number, (column, builder) in self._bitmaps.items()
        }
        return IndexConsumers(blooms, bitmaps)

    def add(self, file: FileTask, consumers: IndexConsumers) -> None:
        """Keep what a file has given."""
        rates = {wanted.field.id: wanted.index.fpp for wanted in self._blooms}
        for number, (_, bloom) in consumers.blooms.items():
            found = bloom.result()
            # What several tasks share is joined first: filters of one file must be of one size until then.
            whole = file.parts == 1
            self.blooms[number][file.ordinal] = found.fitted(rates[number]) if whole else found
        for _, bitmap in self._bitmaps.values():
            bitmap.cover(file.ordinal)

    def bitmaps(self) -> Mapping[int, BitmapIndex]:
        """Return the bitmaps of all files so far."""
        return {number: builder.result() for number, (_, builder) in self._bitmaps.items()}


def _bloom(wanted: IndexColumn, file: FileTask) -> BloomBuilder:
    # As large as the rows may need; what was too large is folded when all parts of the file are together.
    return BloomBuilder(wanted.index.type, blocks_for(max(file.rows, 1), wanted.index.fpp))


def _take(builder: BitmapBuilder, ordinal: int, values: pa.Array, first_row: int) -> None:
    builder.add(values, first_row, ordinal)
