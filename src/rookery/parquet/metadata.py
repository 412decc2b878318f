"""From a footer's Thrift structs to leaves, row groups and chunks.

The numbers are the field ids of `parquet.thrift`. What pruning alone needs (statistics, the places of
indexes) is optional there: any invalid part of it counts as absent, and what it would have
pruned is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.parquet.structure import (
    Chunk,
    ChunkStatistics,
    Encoding,
    Footer,
    Leaf,
    PageType,
    Physical,
    RowGroup,
)
from rookery.parquet.thrift import Struct

_DICTIONARY = (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY)
_DATA_PAGES = (PageType.DATA, PageType.DATA_V2)
_KNOWN = {Encoding.PLAIN, *_DICTIONARY}
_LEVELS = {Encoding.RLE, Encoding.BIT_PACKED}
_ARROW_SCHEMA = b"ARROW:schema"
_NOTHING = ChunkStatistics()
_MAX_ROWS = 1 << 63

_TYPE_DEFINED_ORDER = 1
_UNSIGNED = range(11, 15)  # the converted types UINT_8 to UINT_64
_INTERVAL = 21
_LOGICAL_TIMES = (7, 8)
_LOGICAL_INTEGER, _LOGICAL_FLOAT16 = 10, 15
# In these the deprecated `min` and `max`, which compare signed, agree with the order of the type.
_WIDTHS = {
    Physical.BOOLEAN: 1,
    Physical.INT32: 4,
    Physical.INT64: 8,
    Physical.FLOAT: 4,
    Physical.DOUBLE: 8,
}


def parse_metadata(metadata: Struct) -> Footer:
    """Convert a FileMetaData to a footer; LookupError, TypeError or ValueError if it is invalid."""
    leaves = tuple(_leaves(metadata[2], metadata.get(7)))
    groups = []
    first_row = 0
    for group in metadata[4]:
        rows = group[3]
        if type(rows) is not int or not 0 <= rows < _MAX_ROWS:
            raise TypeError("a row group whose rows are not a number")
        chunks = tuple([_chunk(leaf, column) for leaf, column in zip(leaves, group[1], strict=True)])
        groups.append(RowGroup(rows, chunks, first_row))
        first_row += rows
    pairs = {pair.get(1): pair.get(2) for pair in metadata.get(5, ())}
    return Footer(
        rows=metadata[3],
        leaves=leaves,
        row_groups=tuple(groups),
        version=metadata.get(1, 1),
        created_by=_text(metadata.get(6)),
        arrow_schema=_text(pairs.get(_ARROW_SCHEMA)),
    )


# -- the schema


def _leaves(elements: list[Struct], orders: list[Struct] | None) -> Iterator[Leaf]:
    """Walk the schema, which is a tree flattened in depth-first order; the root is no column."""
    stack: list[tuple[int, tuple[str, ...], tuple[Struct, ...], int, int]]
    stack = [(elements[0].get(5, 0), (), (), 0, 0)]
    index, root = 0, -1
    for element in elements[1:]:
        while stack[-1][0] == 0:
            stack.pop()
        left, path, above, definition, repetition = stack[-1]
        stack[-1] = (left - 1, path, above, definition, repetition)
        root += not path
        path = (*path, element[4].decode())
        above = (*above, element)
        kind = element.get(3, 0)  # 0 required, 1 optional, 2 repeated
        definition += kind in (1, 2)
        repetition += kind == 2
        children = element.get(5, 0)
        if children:
            stack.append((children, path, above, definition, repetition))
            continue
        yield Leaf(
            index=index,
            path=path,
            field_id=element.get(9),
            physical=Physical(element[1]),
            width=element.get(2, 0),
            max_definition=definition,
            max_repetition=repetition,
            time_unit=_time_unit(element),
            root=root,
            ordered=_is_ordered(element, orders, index),
            elements=above,
        )
        index += 1


def _time_unit(element: Struct) -> str | None:
    """The unit of a TIME or TIMESTAMP, by its logical type or, in old files, its converted type."""
    logical = element.get(10, {})
    for kind in _LOGICAL_TIMES:
        if kind in logical:
            return {1: "ms", 2: "us", 3: "ns"}[next(iter(logical[kind][2]), 0)]
    return {7: "ms", 8: "us", 9: "ms", 10: "us"}.get(element.get(6, -1))


def _is_ordered(element: Struct, orders: list[Struct] | None, index: int) -> bool:
    """Whether bounds can be trusted: the file states their order, or there is only one.

    Unsigned and half-precision numbers are ordered in ways that no Iceberg type is.
    """
    logical = element.get(10, {})
    if element.get(6) in _UNSIGNED or logical.get(_LOGICAL_INTEGER, {}).get(2) is False:
        return False
    if element.get(6) == _INTERVAL or _LOGICAL_FLOAT16 in logical or element[1] == Physical.INT96:
        return False
    if orders is not None and index < len(orders):
        return _TYPE_DEFINED_ORDER in orders[index]
    return element[1] in _WIDTHS


# -- the chunks


def _chunk(leaf: Leaf, column: Struct) -> Chunk:
    metadata = column[3]
    dictionary_at = metadata.get(11) or 0
    data_at = metadata[9]
    start = dictionary_at if 0 < dictionary_at < data_at else data_at
    codec, values, size, encodings = metadata[4], metadata[5], metadata[7], metadata[2]
    if not (type(codec) is type(values) is type(size) is int):
        raise TypeError("a column chunk whose sizes are not numbers")
    plain, dictionary, other = _page_encodings(metadata)
    return Chunk(
        leaf=leaf,
        codec=codec,
        values=values,
        start=start,
        size=size,
        dictionary_size=data_at - start,
        plain_pages=plain,
        dictionary_pages=dictionary,
        other_pages=other,
        uncompressed_size=_positive(metadata.get(6)),
        encodings=tuple(encodings),
        statistics=_statistics(leaf, metadata.get(12)),
        offset_index_offset=_positive(column.get(4)),
        offset_index_length=_positive(column.get(5)),
        column_index_offset=_positive(column.get(6)),
        column_index_length=_positive(column.get(7)),
        bloom_filter_offset=_positive(metadata.get(14)),
        bloom_filter_length=_positive(metadata.get(15)),
        byte_array_bytes=_byte_array_bytes(metadata.get(16)),
    )


def _positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _byte_array_bytes(size_statistics: Any) -> int | None:
    stated = size_statistics.get(1) if type(size_statistics) is dict else None
    return stated if type(stated) is int and stated >= 0 else None


def _text(value: Any) -> bytes | None:
    return value if type(value) is bytes else None


def _statistics(leaf: Leaf, statistics: Any) -> ChunkStatistics:
    """Bounds by the fields 5 and 6, or by the deprecated 1 and 2 where those are in the right order too."""
    if type(statistics) is not dict:
        return _NOTHING
    nulls = statistics.get(3)
    if type(nulls) is not int or nulls < 0:
        nulls = None
    if not leaf.ordered:
        return ChunkStatistics(nulls)
    width = _WIDTHS.get(leaf.physical)
    high, low = statistics.get(5), statistics.get(6)
    if high is None and low is None and width:
        high, low = statistics.get(1), statistics.get(2)
    return ChunkStatistics(nulls, _bound(low, width), _bound(high, width))


def _bound(value: Any, width: int | None) -> bytes | None:
    return value if type(value) is bytes and (width is None or len(value) == width) else None


def _page_encodings(metadata: Struct) -> tuple[bool, bool, bool]:
    """Which encodings the data pages have: exactly, if there is `encoding_stats`, else the possible ones."""
    if 13 in metadata:
        encodings = {stat[2] for stat in metadata[13] if stat[1] in _DATA_PAGES and stat[3] > 0}
    else:
        # Levels are RLE or BIT_PACKED in every file; with a dictionary, PLAIN may be the dictionary's own.
        encodings = set(metadata[2]) - _LEVELS
        if Encoding.RLE in metadata[2] and metadata[1] == Physical.BOOLEAN:
            encodings.add(Encoding.RLE)
    return Encoding.PLAIN in encodings, not encodings.isdisjoint(_DICTIONARY), not encodings <= _KNOWN
