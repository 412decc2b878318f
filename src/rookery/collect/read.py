"""Reading one data file into a theta sketch a column, the cheapest way that is right.

- pages: dictionaries, and PLAIN pages hashed from their bytes;
- arrow: whatever else Parquet has, decoded by pyarrow.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.collect.arrow import leaf_array
from rookery.collect.parquet import Chunk, Footer, Leaf, read_footer
from rookery.collect.parquet.pages import UnreadablePagesError, read_chunk
from rookery.model import Field
from rookery.sketch import ThetaSketch
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import PlainValues, add_arrow, plain_values
from rookery.storage import Source, open_source

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
) -> Reading:
    """Sketch the columns *fields* of a file; hashes at or above *thetas* (by field id) are of no use."""
    with open_source(path, io_properties) as source:
        footer = read_footer(source, size)
        by_id = {leaf.field_id: leaf for leaf in footer.leaves if leaf.field_id is not None}
        if not by_id and footer.leaves:
            raise NeedsEngineError("the file has no field ids")
        sketches: dict[int, ThetaSketch] = {}
        chunks: Counter[str] = Counter()
        values = 0
        for column in fields:
            builder = ThetaBuilder(thetas[column.id])
            leaf = by_id.get(column.id)
            if leaf is not None:
                chunks += _read_leaf(source, footer, leaf, column, builder)
                values += sum(group.chunks[leaf.index].values for group in footer.row_groups)
            sketches[column.id] = builder.result()
        return Reading(sketches, chunks, values, source.bytes_read, source.reads)


def _read_leaf(
    source: Source, footer: Footer, leaf: Leaf, column: Field, builder: ThetaBuilder
) -> Counter[str]:
    plain = plain_values(column.type, leaf.physical.name, leaf.width, leaf.time_unit)
    ways: Counter[str] = Counter()
    for number, group in enumerate(footer.row_groups):
        chunk = group.chunks[leaf.index]
        if plain is not None and _by_pages(source, chunk, plain, builder):
            ways[PAGES] += 1
        else:
            _by_arrow(source, leaf, number, column, builder)
            ways[ARROW] += 1
    return ways


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
    file = pq.ParquetFile(pa.PythonFile(_SourceFile(source), mode="r"))
    for chunk in file.read_row_group(row_group, columns=[".".join(leaf.path)]).columns:
        for array in chunk.chunks:
            add_arrow(builder, column.type, leaf_array(array, column.name.split(".")[1:]))


class _SourceFile(io.RawIOBase):
    """A source as a file object, for pyarrow."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        base = {0: 0, 1: self._position, 2: self._source.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(self._source.size - self._position, 0)
        data = self._source.read(self._position, left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data
