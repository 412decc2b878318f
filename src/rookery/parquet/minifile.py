"""A Parquet file of one column, made in memory from pages of another file, so that pyarrow decodes them.

The pages are copied unchanged; only the footer is new.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rookery.parquet.footer import MAGIC
from rookery.parquet.structure import Chunk, Footer, Leaf
from rookery.parquet.thrift import Struct
from rookery.parquet.thrift_writer import I8, I64, encode

PAGES_AT = len(MAGIC)
_CHILDREN, _LOGICAL = 5, 10  # of a SchemaElement
_LOGICAL_INTEGER, _BIT_WIDTH = 10, 1


def one_column_file(
    footer: Footer, chunk: Chunk, dictionary_size: int, pages: Sequence[bytes | memoryview], rows: int
) -> pa.Buffer:
    """Put *pages*, of which the first *dictionary_size* bytes are a dictionary page, into a file."""
    size = sum(map(len, pages))
    metadata = encode(_file(footer, chunk, dictionary_size, size, rows))
    tail = metadata + len(metadata).to_bytes(4, "little") + MAGIC
    # Arrow reuses its memory; bytes would allocate it from the system again, which costs more than a copy.
    file = pa.allocate_buffer(PAGES_AT + size + len(tail))
    view = memoryview(file).cast("B")
    at = 0
    for part in (MAGIC, *pages, tail):
        view[at : at + len(part)] = part
        at += len(part)
    return file


def _file(footer: Footer, chunk: Chunk, dictionary_size: int, size: int, rows: int) -> Struct:
    leaf = chunk.leaf
    column: dict[int, Any] = {
        1: int(leaf.physical),
        2: list(chunk.encodings),
        3: [part.encode() for part in leaf.path],
        4: chunk.codec,
        5: I64(rows),
        6: I64(max(chunk.uncompressed_size or 0, size)),
        7: I64(size),
        9: I64(PAGES_AT + dictionary_size),
    }
    if dictionary_size:
        column[11] = I64(PAGES_AT)
    group = {1: [{2: I64(0), 3: column}], 2: I64(size), 3: I64(rows)}
    schema = [{4: b"schema", _CHILDREN: 1}, *map(_element, leaf.elements)]
    metadata: Struct = {1: footer.version, 2: schema, 3: I64(rows), 4: [group]}
    arrow = None if footer.arrow_schema is None else _arrow_schema(footer.arrow_schema, leaf.root, leaf.path)
    if arrow is not None:
        metadata[5] = [{1: b"ARROW:schema", 2: arrow}]
    if footer.created_by is not None:  # readers know the errors of some writers
        metadata[6] = footer.created_by
    return metadata


def _element(element: Struct) -> Struct:
    """An element of the schema as it was, but with only the child that leads to the leaf."""
    copy = dict(element)
    if copy.get(_CHILDREN):
        copy[_CHILDREN] = 1
    integer = copy.get(_LOGICAL, {}).get(_LOGICAL_INTEGER)
    if integer:
        copy[_LOGICAL] = {_LOGICAL_INTEGER: {**integer, _BIT_WIDTH: I8(integer[_BIT_WIDTH])}}
    return copy


@lru_cache(maxsize=256)
def _arrow_schema(whole: bytes, root: int, path: tuple[str, ...]) -> bytes | None:
    """Cut Arrow's own schema, which has time zones and types that Parquet lacks, to one column."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(whole)))
    if root >= len(schema) or schema.field(root).name != path[0]:
        return None
    field = _only(schema.field(root), path[1:])
    return None if field is None else base64.b64encode(pa.schema([field]).serialize())


def _only(field: pa.Field, path: tuple[str, ...]) -> pa.Field | None:
    if not path:
        return field
    if not pa.types.is_struct(field.type) or (number := field.type.get_field_index(path[0])) < 0:
        return None
    below = _only(field.type.field(number), path[1:])
    return None if below is None else field.with_type(pa.struct([below]))


def top_level(leaf: Leaf, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Extract the leaf's values from the structs around it; where one of those is null, so is the value."""
    for _ in leaf.path[1:]:
        column = pc.struct_field(column, [0])
    return column
