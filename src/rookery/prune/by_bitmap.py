"""The bitmap index: which rows have a value; AND and OR of several, to the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from rookery.model import And, Leaf, Or, Predicate, all_of, leaves_of, opaque_parts
from rookery.prune.fileset import FileSet, SegmentPosition
from rookery.sidecar import Index, IndexKind, Segment
from rookery.sketch.bitmap import cardinality_by_file, positions_of
from rookery.sketch.bitmap_directory import BitmapDirectory
from rookery.values.canonical import form_of, from_bytes
from rookery.values.row_filter import true_values

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Leave out files in which no row has the values asked for, and note the rows that do."""
    files, state = pruning.files, pruning.files.state
    keep = np.ones(len(files), bool)
    if state is None:
        return keep, "the table was never analysed"
    asked = {leaf.field.id for leaf in leaves_of(pruning.predicate)}
    indexes = bitmap_indexes(files, pruning.predicate)
    if not indexes:
        known = {index.field_id for index in state.header.indexes if index.kind is IndexKind.BITMAP}
        return keep, "not built yet" if known & asked else "no bitmap index on these columns"
    notes: list[str] = []
    for place in files.places:
        if not pruning.keep[place.numbers].any():
            continue
        try:
            rows = matching_rows(files, place, indexes, pruning.predicate)
        except Exception as error:  # noqa: BLE001  # of one segment: the others still serve
            notes.append(f"a segment could not be used: {error}")
            continue
        if rows is not None:
            keep[place.numbers] &= ~rows.covered[place.ordinals] | (rows.counts[place.ordinals] > 0)
            pruning.rows[place.segment] = rows
    return keep, "; ".join(notes)


def bitmap_indexes(files: FileSet, predicate: Predicate) -> dict[int, Index]:
    """The bitmap indexes that serve a predicate's columns, by field id."""
    assert files.state is not None
    types = {leaf.field.id: leaf.field.type for leaf in leaves_of(predicate)}
    built = {index for entry in files.state.header.segments for index in entry.indexes}
    return {
        index.field_id: index
        for index in built
        if index.kind is IndexKind.BITMAP and types.get(index.field_id) == index.type
    }


@dataclass(frozen=True, slots=True, eq=False)
class BitmapRows:
    """The rows of a segment's group that may match, as far as its bitmaps can tell."""

    rows: BitMap  # positions in the group
    bases: NDArray[np.uint32]  # where each file begins
    covered: NDArray[np.bool_]  # the files of which this is so
    counts: NDArray[np.int64]  # of positions in each file
    undecided: Predicate  # what must be true besides, for these rows to match

    def of_file(self, ordinal: int) -> NDArray[np.int64]:
        """Return the rows of one file."""
        start = int(self.bases[ordinal])
        first = self.rows.rank(start - 1) if start else 0
        count = int(self.counts[ordinal])
        return positions_of(self.rows[first : first + count]).astype(np.int64) - start


def matching_rows(
    files: FileSet, place: SegmentPosition, indexes: Mapping[int, Index], predicate: Predicate
) -> BitmapRows | None:
    """Return the rows of a segment's files that may match; None if its bitmaps say nothing."""
    assert files.state is not None
    built = files.state.header.segments[place.segment].indexes
    mine = {number: index for number, index in indexes.items() if index in built}
    segment = files.segment(place.segment)
    directories = {number: segment.bitmap_directory(number) for number in mine}
    usable = {number: directory for number, directory in directories.items() if directory is not None}
    if not usable:
        return None
    rows = _rows(predicate, segment, usable)
    if rows is None:
        return None
    covered = reduce(np.logical_and, (directory.covered for directory in usable.values()))
    bases = next(iter(usable.values())).bases
    counts = cardinality_by_file(rows, bases, np.ones(len(bases), bool))
    return BitmapRows(rows, bases, covered, counts, _undecided(predicate, usable))


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
        found = [_rows(part, segment, directories) for part in predicate.parts]
        known = [rows for rows in found if rows is not None]
        return reduce(BitMap.__and__, known) if known else None
    if isinstance(predicate, Or):
        found = [_rows(part, segment, directories) for part in predicate.parts]
        known = [rows for rows in found if rows is not None]
        return reduce(BitMap.__or__, known) if len(known) == len(found) else None
    if not isinstance(predicate, Leaf) or predicate.field.id not in directories:
        return None
    directory = directories[predicate.field.id]
    entries = true_entries(predicate, directory)
    found_rows = segment.bitmaps(predicate.field.id, entries)
    return BitMap.union(*found_rows) if found_rows else BitMap()


def true_entries(leaf: Leaf, directory: BitmapDirectory) -> list[int]:
    """Return the entries of a directory of whose value, or of null, a leaf is true."""
    kind = leaf.field.type
    values = from_bytes(kind, pa.array(directory.values, pa.binary()))
    entries = np.flatnonzero(true_values(leaf, values)).tolist()
    if true_values(leaf, pa.nulls(1, form_of(kind)))[0]:
        entries.append(directory.nulls)
    return entries
