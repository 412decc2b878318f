"""States and segments of no table in particular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rookery.sidecar import (
    FILES_SCHEMA,
    Contents,
    SegmentEntry,
    State,
    StateHeader,
    Store,
    ZoneMap,
    write_segment,
)
from rookery.sketch import InvertedTheta, ThetaSketch, union
from rookery.tables import FILE_SCHEMA


def store_in(folder: Path) -> Store:
    return Store(str(folder / "kept"), {})


def sketch(*hashes: int) -> ThetaSketch:
    return ThetaSketch(np.array(sorted(hashes), np.uint64))


def zone_map(files: int, first: int = 0) -> ZoneMap:
    """What manifests might say of so many files, and of a column, 7, that every second of them has."""
    listed = [
        {
            "path": f"file-{number}",
            "rows": 10 * (number + 1),
            "lower_bounds": {7: str(number).encode()} if number % 2 else {},
            "null_counts": {7: number} if number % 2 else {},
        }
        for number in range(first, first + files)
    ]
    return ZoneMap.of(pa.Table.from_pylist(listed, FILE_SCHEMA))


def segment(
    store: Store, thetas: Mapping[int, Sequence[ThetaSketch]], *, first: int = 0, last_column_id: int = 9
) -> SegmentEntry:
    """Write a segment of a sketch a file, for each column."""
    (files,) = {len(sketches) for sketches in thetas.values()}
    inverted = {
        number: InvertedTheta.merge([InvertedTheta.of(one, n, files) for n, one in enumerate(sketches)])
        for number, sketches in thetas.items()
    }
    location = store.segment_path()
    contents = Contents(zone_map(files, first), inverted)
    write_segment(location, contents, snapshot_id=1, sequence_number=1, io_properties={})
    return SegmentEntry(location.rpartition("/")[2], files, tuple(sorted(thetas)), last_column_id)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def state(
    segments: Sequence[SegmentEntry] = (),
    files: Sequence[tuple[int, int, int]] = (),
    *,
    snapshot_id: int = 7,
    sequence_number: int = 3,
    thetas: Mapping[int, ThetaSketch] | None = None,
    types: Mapping[int, str] | None = None,
) -> State:
    """A state of these segments; *files* are (number, segment, ordinal)."""
    rows = [
        {"key": key(number), "segment": in_segment, "ordinal": ordinal, "manifest": 0, "rows": 10}
        for number, in_segment, ordinal in files
    ]
    thetas = {1: sketch(1, 2, 3)} if thetas is None else thetas
    index = StateHeader(
        "uuid",
        snapshot_id,
        sequence_number,
        1_700_000_000_000,
        9,
        tuple(segments),
        ("manifest.avro",),
        (),
        dict.fromkeys(thetas, "long") if types is None else types,
    )
    return State(index, pa.Table.from_pylist(rows, FILES_SCHEMA), thetas)


def union_of(store: Store, found: State, number: int) -> ThetaSketch:
    """A column's sketch over the live files, from the segments."""
    parts = []
    for place, entry in enumerate(found.header.segments):
        with store.open_segment(entry) as opened:
            if number in entry.field_ids:
                parts.append(opened.thetas(frozenset({number}))[number].sketch(found.live(place)))
    return union(parts)
