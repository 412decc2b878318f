"""Inside a Parquet file: which row groups, and which rows of them, may match.

Row groups are judged by their statistics, then by dictionaries and Parquet's own Bloom filters; pages by the
page index. A part of a file that cannot be parsed is kept whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.io import Source
from rookery.model import Field, Leaf, Predicate, RookeryError, leaves_of, wanted_values
from rookery.model.cache import Cache, nbytes_of
from rookery.model.type_names import base_type
from rookery.parquet import (
    Chunk,
    Footer,
    PageIndex,
    Physical,
    RowGroup,
    read_bloom,
    read_footer,
    read_page_indexes,
)
from rookery.parquet import Leaf as ParquetLeaf
from rookery.parquet.pages import read_chunk
from rookery.prune.bounds import UNKNOWN, Bounds, might_match
from rookery.sketch.bloom import block_of, masks_of
from rookery.sketch.value_hashes import bloom_hashes, plain_bytes
from rookery.tables.column_mapping import BY_FIELD_ID, ColumnMapping
from rookery.values.canonical import SUPPORTED, bound_from_bytes, form_of, is_float
from rookery.values.evaluate import evaluate

_FEW = 8  # values that are looked for in dictionaries and filters
_LONGEST_DICTIONARY = 1 << 20
_TEXTS = {"string": Physical.BYTE_ARRAY, "binary": Physical.BYTE_ARRAY}
_FIXED = {"uuid": Physical.FIXED_LEN_BYTE_ARRAY, "fixed": Physical.FIXED_LEN_BYTE_ARRAY}
_PLAIN = {
    "int": Physical.INT32,
    "date": Physical.INT32,
    "long": Physical.INT64,
    "float": Physical.FLOAT,
    "double": Physical.DOUBLE,
    **_TEXTS,
    **_FIXED,
}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the table's metadata describes it."""

    identity: str  # its identity; another file may have its path
    size: int
    rows: int
    replaced: frozenset[int] = frozenset()  # columns, by field id, whose values are in the partition
    mapping: ColumnMapping = BY_FIELD_ID
    stands_alone: bool = True  # else rows in it replace rows in other files, or are replaced


@dataclass(slots=True)
class RemainingRowGroup:
    """A row group that is left: its number, and which of its rows may match (None: all)."""

    number: int
    rows: NDArray[np.bool_] | None = None


@dataclass(slots=True)
class Inside:
    """What is left of a file."""

    file: StoredFile
    footer: Footer
    leaves: Mapping[int, ParquetLeaf]
    groups: list[RemainingRowGroup]
    cache: Cache
    notes: list[str] = field(default_factory=list)


def open_footer(source: Source, file: StoredFile, cache: Cache) -> Footer:
    """Return a file's footer; data files never change, so it is read once."""
    read = partial(read_footer, source, file.size, file.rows)
    return cache.get(("footer", file.identity), read, nbytes_of)


def row_groups(
    source: Source, file: StoredFile, predicate: Predicate, cache: Cache, answered: Collection[int] = ()
) -> Inside:
    """Return the row groups of a file that may match.

    For columns that are *answered* (by field id), an index has already shown that the file may match.
    """
    footer = open_footer(source, file, cache)
    mapped = file.mapping.with_ids(footer.leaves)
    leaves = {leaf.field_id: leaf for leaf in mapped if leaf.field_id is not None}
    counting = {number: leaf for number, leaf in leaves.items() if number not in file.replaced}
    everything = [RemainingRowGroup(number) for number in range(len(footer.row_groups))]
    inside = Inside(file=file, footer=footer, leaves=counting, groups=everything, cache=cache)
    if not file.stands_alone:
        inside.notes.append("a file whose rows are merged with those of others is read whole")
        return inside
    if not leaves:
        inside.notes.append("a file without field ids is read whole")
        return inside
    keep = evaluate(predicate, lambda leaf: _by_statistics(inside, leaf), len(everything))
    for number in np.flatnonzero(keep).tolist():
        group = footer.row_groups[number]
        test = partial(_by_values, source, inside, group, answered)
        keep[number] = evaluate(predicate, test, 1)[0]
    inside.groups = [group for group, kept in zip(everything, keep.tolist(), strict=True) if kept]
    return inside


def _by_statistics(inside: Inside, leaf: Leaf) -> NDArray[np.bool_]:
    groups = inside.footer.row_groups
    column, stored = leaf.field, inside.leaves.get(leaf.field.id)
    rows = np.array([group.rows for group in groups], np.int64)
    if stored is None:
        return np.ones(len(groups), bool) if column.filled else might_match(leaf, _all_null(column, rows))
    statistics = [group.chunks[stored.index].statistics for group in groups]
    bounds = _bounds(
        column,
        stored,
        [each.min_value for each in statistics],
        [each.max_value for each in statistics],
        rows,
        np.array([UNKNOWN if each.null_count is None else each.null_count for each in statistics], np.int64),
    )
    return might_match(leaf, bounds)


def _all_null(column: Field, rows: NDArray[np.int64]) -> Bounds:
    nothing = pa.nulls(len(rows), form_of(column.type))
    return Bounds(lower=nothing, upper=nothing, values=rows, nulls=rows, nans=np.zeros(len(rows), np.int64))


def _bounds(
    column: Field,
    stored: ParquetLeaf,
    lower: Sequence[bytes | None],
    upper: Sequence[bytes | None],
    rows: NDArray[np.int64],
    nulls: NDArray[np.int64],
) -> Bounds:
    nans = np.full(len(rows), UNKNOWN if is_float(column.type) else 0, np.int64)
    if column.nested:  # not every writer counts the rows whose struct is null
        nulls = np.where(nulls == rows, nulls, UNKNOWN)
    ends = [_typed(column.type, stored, values) for values in (lower, upper)]
    return Bounds(lower=ends[0], upper=ends[1], values=rows, nulls=nulls, nans=nans)


def _typed(kind: str, stored: ParquetLeaf, values: Sequence[bytes | None]) -> pa.Array:
    """Convert Parquet's bounds to their type's form; those of another physical type are unknown."""
    base, physical = base_type(kind), stored.physical
    if base not in SUPPORTED or not _understood(base, stored):
        return pa.nulls(len(values), form_of(kind) if base in SUPPORTED else pa.int64())
    if base == "decimal" and physical in (Physical.INT32, Physical.INT64):
        values = [None if value is None else value[::-1] for value in values]
    return bound_from_bytes(kind, pa.array(values, pa.binary()))


def _understood(base: str, stored: ParquetLeaf) -> bool:
    physical = stored.physical
    if base in ("timestamp", "timestamptz", "time"):
        return physical is Physical.INT64 and stored.time_unit == "us"
    if base in ("timestamp_ns", "timestamptz_ns"):
        return physical is Physical.INT64 and stored.time_unit == "ns"
    if base == "decimal":
        return physical is not Physical.INT96
    if base == "boolean":
        return physical is Physical.BOOLEAN
    widened = {"long": Physical.INT32, "double": Physical.FLOAT}
    return physical in (_PLAIN.get(base), widened.get(base))


def _by_values(
    source: Source, inside: Inside, group: RowGroup, answered: Collection[int], leaf: Leaf
) -> NDArray[np.bool_]:
    """Whether a row group may have one of the wanted values, by its dictionary or its Bloom filter."""
    maybe = np.ones(1, bool)
    values, stored = wanted_values(leaf), inside.leaves.get(leaf.field.id)
    base = base_type(leaf.field.type)
    if values is None or stored is None or len(values) > _FEW or leaf.field.id in answered:
        return maybe
    if not stored.is_flat or stored.physical is not _PLAIN.get(base):
        return maybe
    chunk = group.chunks[stored.index]
    try:
        if chunk.bloom_filter_offset is not None and not _in_bloom(source, chunk, leaf, values):
            return ~maybe
        if _dictionary_tells(chunk) and not _in_dictionary(source, chunk, leaf, values):
            return ~maybe
    except RookeryError as error:
        inside.notes.append(f"could not be used: {error}")
    return maybe


def _in_bloom(source: Source, chunk: Chunk, leaf: Leaf, values: Sequence) -> bool:  # type: ignore[type-arg]
    bits = read_bloom(source, chunk)
    hashes = [bloom_hashes(leaf.field.type, value) for value in values]
    if bits is None or any(each is None for each in hashes):
        return True
    words = np.frombuffer(bits, "<u4").reshape(-1, 8)
    for value in (number for each in hashes for number in each or ()):
        masks = masks_of(value)
        if ((words[block_of(value, len(words))] & masks) == masks).all():
            return True
    return False


def _dictionary_tells(chunk: Chunk) -> bool:
    """Whether every value of a chunk is in its dictionary, and that is short."""
    only = not chunk.plain_pages and not chunk.other_pages and chunk.dictionary_pages
    return only and 0 < chunk.dictionary_size <= _LONGEST_DICTIONARY


def _in_dictionary(source: Source, chunk: Chunk, leaf: Leaf, values: Sequence) -> bool:  # type: ignore[type-arg]
    """Whether a value's bytes occur in the dictionary page; only that they do not is proof."""
    wanted = [plain_bytes(leaf.field.type, value) for value in values]
    if any(each is None for each in wanted):
        return True
    parts: list[bytes] = []
    read_chunk(source, chunk, lambda data, start, end: parts.append(data[start:end].tobytes()))
    page = b"".join(parts)
    prefixed = chunk.leaf.physical is Physical.BYTE_ARRAY
    sought = [
        (len(data).to_bytes(4, "little") + data) if prefixed else data
        for each in wanted
        for data in each or ()
    ]
    return any(page.find(data) >= 0 for data in sought)


def pages(source: Source, inside: Inside, predicate: Predicate) -> None:
    """Note for each row group that is left which of its rows are in pages that may match."""
    if not inside.file.stands_alone:
        return
    wanted = {leaf.field.id: leaf.field for leaf in leaves_of(predicate)}
    stored = [inside.leaves[number] for number in wanted if number in inside.leaves]
    stored = [leaf for leaf in stored if leaf.is_flat]
    for group in inside.groups:
        rows = inside.footer.row_groups[group.number]
        indexes = dict(
            zip((leaf.field_id for leaf in stored), page_indexes(source, inside, group, stored), strict=True)
        )
        known = {number: index for number, index in indexes.items() if index is not None and len(index)}

        def test(leaf: Leaf, rows: RowGroup = rows, known: dict = known) -> NDArray[np.bool_]:  # type: ignore[type-arg]
            index = known.get(leaf.field.id)
            if index is None:
                return np.ones(rows.rows, bool)
            page_matches = might_match(leaf, _page_bounds(inside, leaf.field, index, rows.rows))
            return np.repeat(page_matches, index.row_counts(rows.rows))

        if known:
            group.rows = evaluate(predicate, test, rows.rows)
    inside.groups = [group for group in inside.groups if group.rows is None or group.rows.any()]


def page_indexes(
    source: Source, inside: Inside, group: RemainingRowGroup, leaves: Sequence[ParquetLeaf]
) -> list[PageIndex | None]:
    """Return the page indexes of some leaves in a row group; None where there is none that can be used."""
    chunks = [inside.footer.row_groups[group.number].chunks[leaf.index] for leaf in leaves]
    key = ("page indexes", inside.file.identity, group.number, tuple(leaf.index for leaf in leaves))
    try:
        return inside.cache.get(key, lambda: read_page_indexes(source, chunks), _size_of)
    except RookeryError as error:
        inside.notes.append(f"page indexes could not be used: {error}")
        return [None] * len(chunks)


def _size_of(indexes: Sequence[PageIndex | None]) -> int:
    return 64 + sum(index.nbytes for index in indexes if index is not None)


def _page_bounds(inside: Inside, column: Field, index: PageIndex, rows: int) -> Bounds:
    counts = index.row_counts(rows)
    nothing = [None] * len(index)
    nulls = np.full(len(index), UNKNOWN, np.int64) if index.null_counts is None else index.null_counts.copy()
    if index.null_pages is not None:
        nulls[index.null_pages] = counts[index.null_pages]
    return _bounds(
        column,
        inside.leaves[column.id],
        index.min_values or nothing,
        index.max_values or nothing,
        counts,
        nulls,
    )
