"""Reading one data file into a theta sketch a column, the cheapest way that is right.

- pages: dictionaries, and PLAIN pages hashed from their bytes;
- arrow: all other Parquet, decoded by pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rookery.collect.arrow import leaf_array, read_leaves, row_values
from rookery.collect.column_sets import is_column_set
from rookery.collect.lengths import chunk_lengths, has_lengths
from rookery.collect.physical import PhysicalColumns
from rookery.indexes import RowConsumer
from rookery.io import Source, SourceFile, TailSource, open_source
from rookery.model import Field, Place
from rookery.model.type_names import member_types
from rookery.parquet import FIRST_READ, Chunk, Footer, Leaf, damaged, read_footer
from rookery.parquet.pages import UnreadablePagesError, read_chunk
from rookery.sketch import ThetaSketch
from rookery.sketch.column_sets import add_joint
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.lengths import Lengths
from rookery.sketch.values import PlainValues, ValueConsumer, add_arrow, plain_values
from rookery.tables.column_mapping import BY_FIELD_ID, ColumnMapping

PAGES = "pages"
ARROW = "arrow"
ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one file: sketches by field id, and their costs. Indexes are built as it is read."""

    sketches: Mapping[int, ThetaSketch]
    chunks: Counter[str] = field(default_factory=Counter)  # column chunks by way
    values: int = 0
    bytes_read: int = 0
    reads: int = 0
    highest_id: int = 0  # of the fields that the file has
    lengths: Mapping[int, Lengths] = field(default_factory=dict)  # of text and binary columns that it has


@dataclass(frozen=True, slots=True)
class IndexConsumers:
    """The consumers of a file's values for its indexes, by field id: values in any order, rows in order."""

    values: dict[int, tuple[Field, list[ValueConsumer]]] = field(default_factory=dict)
    rows: dict[int, tuple[Field, list[RowConsumer]]] = field(default_factory=dict)

    def add(self, column: Field, consumer: ValueConsumer | RowConsumer) -> None:
        """Send the values of a column to one more consumer."""
        if isinstance(consumer, RowConsumer):
            self.rows.setdefault(column.id, (column, []))[1].append(consumer)
        else:
            self.values.setdefault(column.id, (column, []))[1].append(consumer)


NO_INDEXES = IndexConsumers()


def read_parquet(
    path: str,
    size: int,
    fields: Sequence[Field],
    thetas: Mapping[int, int],
    io_properties: Mapping[str, str],
    part: int = 0,
    parts: int = 1,
    indexes: IndexConsumers = NO_INDEXES,
    rows: int | None = None,
    mapping: ColumnMapping = BY_FIELD_ID,
) -> Reading:
    """Sketch the columns *fields* of a file; hashes at or above *thetas* (by field id) are of no use.

    Of a large file that several tasks share, the row groups whose number modulo *parts* is *part* are read.
    *rows* are those that the table's metadata states.
    """
    with open_source(path, io_properties) as opened:
        source = TailSource(opened, size, FIRST_READ)
        footer = read_footer(source, size, rows)
        row_groups = range(part, len(footer.row_groups), parts)
        physical = PhysicalColumns(mapping.with_ids(footer.leaves))
        sketches: dict[int, ThetaSketch] = {}
        chunks: Counter[str] = Counter()
        lengths: dict[int, Lengths] = {}
        values = 0
        for column, takes_theta in _columns(fields, indexes):
            builder = ThetaBuilder(thetas[column.id]) if takes_theta else None
            consumers: list[ValueConsumer] = [builder] if builder is not None else []
            consumers += indexes.values.get(column.id, (column, []))[1]
            leaves = physical.members(column)
            seen = Lengths()  # without a leaf all values are null
            if leaves is not None and is_column_set(column):
                assert builder is not None
                with damaged(Place(source.name), f"values of columns {column.name}"):
                    chunks += _read_column_set(source, row_groups, leaves, column, builder)
                values += sum(footer.row_groups[number].rows for number in row_groups)
            elif leaves is not None:
                (leaf,) = leaves
                ways, seen = _read_leaf(source, footer, row_groups, leaf, column, consumers, builder)
                chunks += ways
                values += sum(footer.row_groups[number].chunks[leaf.index].values for number in row_groups)
            if builder is not None:
                sketches[column.id] = builder.result()
                if has_lengths(column):
                    lengths[column.id] = seen
        for column, takers in indexes.rows.values():
            _read_rows(source, footer, row_groups, physical.leaf(column), column, takers)
        return Reading(
            sketches=sketches,
            chunks=chunks,
            values=values,
            bytes_read=opened.bytes_read,
            reads=opened.reads,
            highest_id=physical.highest_id,
            lengths=lengths,
        )


def _columns(fields: Sequence[Field], indexes: IndexConsumers) -> Iterator[tuple[Field, bool]]:
    """The columns whose values are read, and whether their distinct values are counted."""
    counted = {column.id for column in fields}
    yield from ((column, True) for column in fields)
    yield from ((column, False) for column, _ in indexes.values.values() if column.id not in counted)


def _read_leaf(
    source: Source,
    footer: Footer,
    numbers: range,
    leaf: Leaf,
    column: Field,
    consumers: Sequence[ValueConsumer],
    builder: ThetaBuilder | None,
) -> tuple[Counter[str], Lengths]:
    """Pass a leaf's values to consumers; return how its chunks were read, and the lengths of its values."""
    plain = plain_values(column.type, leaf.physical.name, leaf.width, leaf.time_unit)
    ways: Counter[str] = Counter()
    lengths = Lengths()
    for number in numbers:
        chunk = footer.row_groups[number].chunks[leaf.index]
        if plain is not None and _by_pages(source, chunk, plain, consumers):
            ways[PAGES] += 1
        else:
            if builder is not None:
                builder.take_lengths()  # of pages that are now read once more
            with damaged(Place(source.name, chunk.start), f"values of column {column.name}"):
                _by_arrow(source, leaf, number, column, consumers)
            ways[ARROW] += 1
        if builder is not None:
            lengths += chunk_lengths(chunk, builder.take_lengths())
    return ways, lengths


def _read_rows(
    source: Source,
    footer: Footer,
    numbers: range,
    leaf: Leaf | None,
    column: Field,
    consumers: Sequence[RowConsumer],
) -> None:
    """Pass a column's values to *consumers* with their rows, which only decoding keeps."""
    file = pq.ParquetFile(pa.PythonFile(SourceFile(source), mode="r"))
    first = 0
    for number, group in enumerate(footer.row_groups):
        if number in numbers:
            with damaged(Place(source.name), f"values of column {column.name}"):
                if leaf is None:
                    values = pa.nulls(group.rows)
                else:
                    (column_data,) = read_leaves(file, number, [leaf])
                    values = row_values(column_data, column.parts[1:])
                for consumer in consumers:
                    consumer.add(values, first)
        first += group.rows


def _read_column_set(
    source: Source, numbers: range, leaves: Sequence[Leaf], group: Field, builder: ThetaBuilder
) -> Counter[str]:
    """Read the columns of a group row by row; only decoding keeps the rows together."""
    file = pq.ParquetFile(pa.PythonFile(SourceFile(source), mode="r"))
    in_order = sorted(leaves, key=lambda leaf: leaf.index)
    for number in numbers:
        columns = {
            leaf.field_id: column.combine_chunks()
            for leaf, column in zip(in_order, read_leaves(file, number, in_order), strict=True)
            if leaf.field_id is not None
        }
        add_column_set(builder, group, columns)
    return Counter({ARROW: len(leaves) * len(numbers)})


def add_column_set(builder: ThetaBuilder, group: Field, columns: Mapping[int, pa.Array]) -> None:
    """Add a group's rows from its members' arrays, by field id."""
    types = member_types(group.type)
    add_joint(builder, list(types.values()), [columns[number] for number in types])


def _by_pages(source: Source, chunk: Chunk, plain: PlainValues, consumers: Sequence[ValueConsumer]) -> bool:
    """Take the chunk's values from its pages; False if some page has another form."""
    if chunk.other_pages:
        return False

    def take(data: NDArray[np.uint8], start: int, end: int) -> None:
        for consumer in consumers:
            plain(consumer, data, start, end)

    try:
        read_chunk(source, chunk, take)
    except UnreadablePagesError:
        return False  # what was already added is part of the column anyway
    return True


def _by_arrow(
    source: Source, leaf: Leaf, row_group: int, column: Field, consumers: Sequence[ValueConsumer]
) -> None:
    file = pq.ParquetFile(pa.PythonFile(SourceFile(source), mode="r"))
    (column_data,) = read_leaves(file, row_group, [leaf])
    for array in column_data.chunks:
        values = leaf_array(array, column.parts[1:])
        for consumer in consumers:
            add_arrow(consumer, column.type, values)
