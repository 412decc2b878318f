"""Lengths of text and binary values, collected while the values are hashed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa

from rookery.model import Field
from rookery.parquet import Chunk
from rookery.sidecar.lengths import lengths_table
from rookery.sketch.lengths import Lengths


def has_lengths(column: Field) -> bool:
    """Whether lengths of a column's values are collected."""
    return column.type in ("string", "binary") and not column.repeated


def chunk_lengths(chunk: Chunk, seen: Lengths) -> Lengths:
    """Return the lengths of a chunk's values, of which at least the distinct ones were *seen*.

    The sum is exact if the writer has stated it, or if every value was seen; else it is estimated.
    """
    nulls = 0 if chunk.leaf.max_definition == 0 else chunk.statistics.null_count
    if nulls is None:  # the stated sum is then that of an unknown number of values
        return seen.of_values(chunk.values)
    return seen.of_values(max(chunk.values - nulls, 0), chunk.byte_array_bytes)


class FileLengths:
    """Lengths by column and, in it, by the ordinal of the file; parts of a file are added up."""

    def __init__(self, rows: Iterable[Sequence[int]] = ()) -> None:
        self._by_field: defaultdict[int, dict[int, Lengths]] = defaultdict(dict)
        for field_id, ordinal, values, size, greatest in rows:
            self.add(field_id, ordinal, Lengths(values, size, greatest))

    def add(self, field_id: int, ordinal: int, lengths: Lengths) -> None:
        """Add what was seen of a column in a file."""
        known = self._by_field[field_id]
        known[ordinal] = known.get(ordinal, Lengths()) + lengths

    def rows(self) -> list[tuple[int, int, int, int, int]]:
        """Return everything as numbers, from which the same is made again."""
        return [
            (field_id, ordinal, each.values, each.bytes, each.greatest)
            for field_id, by_file in self._by_field.items()
            for ordinal, each in by_file.items()
        ]

    def tables(self, files: int) -> dict[int, pa.Table]:
        """Return a table for each column, with a row for each of so many files."""
        return {field_id: lengths_table(by_file, files) for field_id, by_file in self._by_field.items()}
