"""Reading one data file into a theta sketch a column, the cheapest way that is right.

- pages: dictionaries, and PLAIN pages hashed from their bytes;
- arrow: whatever else Parquet has, decoded by pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.collect.arrow import leaf_array
from rookery.collect.together import is_group, member_ids, member_types
from rookery.model import Field, Place
from rookery.parquet import FIRST_READ, Chunk, Footer, Leaf, damaged, read_footer
from rookery.parquet.pages import UnreadablePagesError, read_chunk
from rookery.sketch import ThetaSketch
from rookery.sketch.joint import add_joint
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import PlainValues, add_arrow, plain_values
from rookery.storage import Source, SourceFile, TailSource, open_source

PAGES = "pages"
ARROW = "arrow"
ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of one file: sketches by field id, and what they cost."""

    sketches: Mapping[int, ThetaSketch]
    chunks: Counter[str] = field(default_factory=Counter)  # column chunks by way
    values: int = 0
    bytes_read: int = 0
    reads: int = 0


class NeedsEngineError(Exception):
    """The file can be understood only by Iceberg's own reader."""


def read_parquet(
    path: str,
    size: int,
    fields: Sequence[Field],
    thetas: Mapping[int, int],
    io_properties: Mapping[str, str],
    part: int = 0,
    parts: int = 1,
) -> Reading:
    """Sketch the columns *fields* of a file; hashes at or above *thetas* (by field id) are of no use.

    Of a large file that several tasks share, every row group whose number leaves *part* over *parts* is read.
    """
    with open_source(path, io_properties) as opened:
        source = TailSource(opened, size, FIRST_READ)
        footer = read_footer(source, size)
        mine = range(part, len(footer.row_groups), parts)
        by_id = {leaf.field_id: leaf for leaf in footer.leaves if leaf.field_id is not None}
        if not by_id and footer.leaves:
            raise NeedsEngineError("the file has no field ids")
        sketches: dict[int, ThetaSketch] = {}
        chunks: Counter[str] = Counter()
        values = 0
        for column in fields:
            builder = ThetaBuilder(thetas[column.id])
            leaf = by_id.get(column.id)
            if is_group(column):
                with damaged(Place(source.name), f"values of columns {column.name}"):
                    chunks += _read_group(source, mine, by_id, column, builder)
                values += sum(footer.row_groups[number].rows for number in mine)
            elif leaf is not None:
                chunks += _read_leaf(source, footer, mine, leaf, column, builder)
                values += sum(footer.row_groups[number].chunks[leaf.index].values for number in mine)
            elif column.filled:
                raise NeedsEngineError("a column that the file lacks has a value all the same")
            sketches[column.id] = builder.result()
        return Reading(sketches, chunks, values, opened.bytes_read, opened.reads)


def _read_leaf(
    source: Source, footer: Footer, numbers: range, leaf: Leaf, column: Field, builder: ThetaBuilder
) -> Counter[str]:
    plain = plain_values(column.type, leaf.physical.name, leaf.width, leaf.time_unit)
    ways: Counter[str] = Counter()
    for number in numbers:
        chunk = footer.row_groups[number].chunks[leaf.index]
        if plain is not None and _by_pages(source, chunk, plain, builder):
            ways[PAGES] += 1
        else:
            with damaged(Place(source.name, chunk.start), f"values of column {column.name}"):
                _by_arrow(source, leaf, number, column, builder)
            ways[ARROW] += 1
    return ways


def _read_group(
    source: Source, numbers: range, by_id: Mapping[int, Leaf], group: Field, builder: ThetaBuilder
) -> Counter[str]:
    """Read the columns of a group row by row; only decoding keeps the rows together."""
    leaves = {number: by_id[number] for number in member_ids(group.type) if number in by_id}
    file = pq.ParquetFile(pa.PythonFile(SourceFile(source), mode="r"))
    for number in numbers:
        table = file.read_row_group(number, columns=[leaf.path[0] for leaf in leaves.values()])
        columns = {member: table.column(leaf.path[0]).combine_chunks() for member, leaf in leaves.items()}
        add_group(builder, group, columns)
    return Counter({ARROW: len(leaves) * len(numbers)})


def add_group(builder: ThetaBuilder, group: Field, columns: Mapping[int, pa.Array]) -> None:
    """Add a group's rows from its members' arrays, by field id; a missing member is null throughout."""
    types = member_types(group.type)
    if all(number in columns for number in types):
        add_joint(builder, list(types.values()), [columns[number] for number in types])


def _by_pages(source: Source, chunk: Chunk, plain: PlainValues, builder: ThetaBuilder) -> bool:
    """Take the chunk's values from its pages; False if some page has another form."""
    if chunk.other_pages:
        return False
    try:
        read_chunk(source, chunk, partial(plain, builder))
    except UnreadablePagesError:
        return False  # what was added already is part of the column all the same
    return True


def _by_arrow(source: Source, leaf: Leaf, row_group: int, column: Field, builder: ThetaBuilder) -> None:
    file = pq.ParquetFile(pa.PythonFile(SourceFile(source), mode="r"))
    for chunk in file.read_row_group(row_group, columns=[".".join(leaf.path)]).columns:
        for array in chunk.chunks:
            add_arrow(builder, column.type, leaf_array(array, column.parts[1:]))
