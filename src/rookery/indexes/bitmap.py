"""The bitmap index: which rows have a value; AND and OR of several, to the row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from rookery.blobs import Summary, bitmap
from rookery.indexes.kind import Builder, IndexKind, MergeInput, RowConsumer
from rookery.indexes.view import FilesView, PruningView, SegmentPosition
from rookery.model import (
    And,
    Estimate,
    Field,
    Leaf,
    Or,
    Predicate,
    UsageError,
    all_of,
    leaves_of,
    opaque_parts,
    thousands,
)
from rookery.puffin import BlobMetadata
from rookery.sidecar import Index, IndexBlob, Segment
from rookery.sketch.bitmap import BitmapBuilder, BitmapIndex, bases, cardinality_by_file, positions_of
from rookery.sketch.bitmap_directory import CONTAINER, SPACE, BitmapDirectory
from rookery.sketch.blob_types import BITMAP_V1
from rookery.values.canonical import form_of, from_bytes
from rookery.values.row_filter import true_values

MOST_VALUES = 1000


class BitmapKind(IndexKind[BitmapIndex]):
    """Roaring bitmaps, one a value, over the rows of all files of a group."""

    name = "bitmap"
    blob_type = BITMAP_V1
    stage = "bitmap"
    summary = (
        "Stores the rows of each value; for any test on columns with few distinct values, "
        "and counts without reading data."
    )
    counts_rows = True

    def check(self, field: Field, distinct: Estimate | None) -> None:
        """Refuse a column of many values."""
        if distinct is not None and distinct.value > MOST_VALUES:
            raise UsageError(
                f"'{field.name}' has about {thousands(distinct.value)} distinct values, "
                "too many for a bitmap index",
                hint=f"a bitmap supports up to {MOST_VALUES:,}; add a bloom index instead",
            )

    def weights(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Each file begins with a new container, of which there are 65,536."""
        return np.asarray(_containers(rows) / (SPACE // CONTAINER), np.float64)

    def builder(self, index: Index, rows: Sequence[int]) -> Builder[BitmapIndex]:
        """Return a builder of bitmaps for the rows of all files."""
        return _Builder(BitmapBuilder(index.type, rows))

    def encode(self, part: BitmapIndex) -> Iterator[tuple[int, bytes | memoryview]]:
        """Yield the bitmaps of all files in one row."""
        yield 0, part.encode()

    def decode(self, number: int, payload: bytes | memoryview) -> BitmapIndex:
        """Read that row."""
        return BitmapIndex.decode(bytes(payload))

    def merge(self, parts: Sequence[BitmapIndex]) -> BitmapIndex:
        """Join bitmaps; of a file in several parts, each knows some rows."""
        return BitmapIndex.merge(parts)

    def blobs(self, index: Index, part: BitmapIndex, files: int, shared: Set[int]) -> Iterable[IndexBlob]:
        """Return the one blob; a file of which a part is missing is not covered."""
        return _blobs(index, part.whole())

    def fits(self, rows: NDArray[np.int64]) -> bool:
        """Whether there are positions for all rows."""
        return int(_containers(rows).sum()) * CONTAINER <= SPACE

    def merge_segments(
        self, index: Index, inputs: Sequence[MergeInput], rows: NDArray[np.int64]
    ) -> Iterable[IndexBlob]:
        """Return the bitmaps of the files that are kept, moved to their new rows."""
        starts = bases(rows)
        parts = [(part, whole_index(part.segment, index.field_id)) for part in inputs]
        moved = [one.moved(part.kept, part.offset, starts) for part, one in parts if one is not None]
        return _blobs(index, BitmapIndex.merge(moved)) if moved else ()

    def prune(self, view: PruningView) -> tuple[NDArray[np.bool_], str]:
        """Skip files in which no row has the wanted values, and note the rows that do."""
        files, state = view.files, view.files.state
        keep = np.ones(len(files), bool)
        if state is None:
            return keep, "the table was never analyzed"
        indexes = _built(files, view.predicate)
        if not indexes:
            wanted = {leaf.field.id for leaf in leaves_of(view.predicate)}
            known = {index.field_id for index in state.header.indexes if index.kind == self.name}
            return keep, "not built yet" if known & wanted else f"no {self.name} index on these columns"
        notes: list[str] = []
        for place in files.places:
            if not view.keep[place.numbers].any():
                continue
            try:
                rows = matching_rows(files, place, indexes, view.predicate)
            except Exception as error:  # noqa: BLE001  # of one segment: the others are still used
                notes.append(f"a segment could not be used: {error}")
                continue
            if rows is not None:
                keep[place.numbers] &= ~rows.covered[place.ordinals] | (rows.counts[place.ordinals] > 0)
                view.rows[place.segment] = rows
        return keep, "; ".join(notes)

    def summarize(self, blob: BlobMetadata, payload: bytes, file: str) -> Summary:
        """How many values have a bitmap of their rows, in how many files."""
        return bitmap.summarize(blob, payload, file)


class _Builder:
    """The bitmaps of one task."""

    def __init__(self, bitmaps: BitmapBuilder) -> None:
        self._bitmaps = bitmaps

    def begin(self, ordinal: int, rows: int) -> RowConsumer:
        """Return the consumer of the file's rows."""
        return RowConsumer(lambda values, first: self._bitmaps.add(values, first, ordinal))

    def end(self, ordinal: int, *, whole: bool) -> None:
        """Mark the file, or this part of it, as covered."""
        self._bitmaps.cover(ordinal)

    def result(self) -> BitmapIndex:
        """Return the bitmaps."""
        return self._bitmaps.result()


def _containers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.maximum(-(-rows // CONTAINER), 1)


def _blobs(index: Index, bitmaps: BitmapIndex) -> Iterator[IndexBlob]:
    payload = bitmaps.encode()
    yield IndexBlob(BITMAP_V1, index.field_id, payload, BitmapDirectory.head_size(payload))


def whole_index(segment: Segment, field_id: int) -> BitmapIndex | None:
    """Return the bitmap index of a column, whole."""
    for payload, place in segment.payloads(BITMAP_V1, field_id):
        return BitmapIndex.decode(payload, place=place)
    return None


def directory_of(segment: Segment, field_id: int) -> BitmapDirectory | None:
    """Return the directory of a column's bitmap index, without its bitmaps."""
    for _, directory in segment.heads(BITMAP_V1, field_id, BitmapDirectory.decode):
        return directory
    return None


def bitmaps_of(segment: Segment, field_id: int, numbers: Sequence[int]) -> list[BitMap]:
    """Return the bitmaps of these entries of a column's directory."""
    ((blob, directory),) = segment.heads(BITMAP_V1, field_id, BitmapDirectory.decode)
    place = segment.place_of(blob)
    return [
        directory.read(number, segment.read_range(blob, *directory.entry(number)), place=place)
        for number in numbers
    ]


def _built(files: FilesView, predicate: Predicate) -> dict[int, Index]:
    """The bitmap indexes that serve a predicate's columns, by field id."""
    assert files.state is not None
    types = {leaf.field.id: leaf.field.type for leaf in leaves_of(predicate)}
    built = {index for entry in files.state.header.segments for index in entry.indexes}
    return {
        index.field_id: index
        for index in built
        if index.kind == BitmapKind.name and types.get(index.field_id) == index.type
    }


@dataclass(frozen=True, slots=True, eq=False)
class BitmapRows:
    """The rows of a segment's group that may match, by its bitmaps."""

    rows: BitMap  # positions in the group
    bases: NDArray[np.uint32]  # where each file begins
    covered: NDArray[np.bool_]  # the files of which this is so
    counts: NDArray[np.int64]  # of positions in each file
    undecided: Predicate  # what must also be true for these rows to match

    def of_file(self, ordinal: int) -> NDArray[np.int64]:
        """Return the rows of one file."""
        start = int(self.bases[ordinal])
        first = self.rows.rank(start - 1) if start else 0
        count = int(self.counts[ordinal])
        return positions_of(self.rows[first : first + count]).astype(np.int64) - start


def matching_rows(
    files: FilesView, place: SegmentPosition, indexes: Mapping[int, Index], predicate: Predicate
) -> BitmapRows | None:
    """Return the rows of a segment's files that may match; None if its bitmaps cannot decide."""
    assert files.state is not None
    built = files.state.header.segments[place.segment].indexes
    built_here = {number: index for number, index in indexes.items() if index in built}
    segment = files.segment(place.segment)
    directories = {number: directory_of(segment, number) for number in built_here}
    usable = {number: directory for number, directory in directories.items() if directory is not None}
    if not usable:
        return None
    rows = _rows(predicate, segment, usable)
    if rows is None:
        return None
    covered = reduce(np.logical_and, (directory.covered for directory in usable.values()))
    bases = next(iter(usable.values())).bases
    counts = cardinality_by_file(rows, bases, np.ones(len(bases), bool))
    return BitmapRows(
        rows=rows, bases=bases, covered=covered, counts=counts, undecided=_undecided(predicate, usable)
    )


def _undecided(predicate: Predicate, directories: Mapping[int, BitmapDirectory]) -> Predicate:
    """The parts of a predicate, joined by AND, that the bitmaps have not decided to the row."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return all_of(
        *(
            part
            for part in parts
            if any(opaque_parts(part)) or any(leaf.field.id not in directories for leaf in leaves_of(part))
        )
    )


def _rows(
    predicate: Predicate, segment: Segment, directories: Mapping[int, BitmapDirectory]
) -> BitMap | None:
    """The rows that may match; None where any may."""
    if isinstance(predicate, And):
        rows_of_parts = [_rows(part, segment, directories) for part in predicate.parts]
        known = [rows for rows in rows_of_parts if rows is not None]
        return reduce(BitMap.__and__, known) if known else None
    if isinstance(predicate, Or):
        rows_of_parts = [_rows(part, segment, directories) for part in predicate.parts]
        known = [rows for rows in rows_of_parts if rows is not None]
        return reduce(BitMap.__or__, known) if len(known) == len(rows_of_parts) else None
    if not isinstance(predicate, Leaf) or predicate.field.id not in directories:
        return None
    directory = directories[predicate.field.id]
    entries = true_entries(predicate, directory)
    found_rows = bitmaps_of(segment, predicate.field.id, entries)
    return BitMap.union(*found_rows) if found_rows else BitMap()


def true_entries(leaf: Leaf, directory: BitmapDirectory) -> list[int]:
    """Return the entries of a directory for whose value, or for null, a leaf is true."""
    kind = leaf.field.type
    values = from_bytes(kind, pa.array(directory.values, pa.binary()))
    entries = np.flatnonzero(true_values(leaf, values)).tolist()
    if true_values(leaf, pa.nulls(1, form_of(kind)))[0]:
        entries.append(directory.nulls)
    return entries
