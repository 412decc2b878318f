"""Lengths in segments: their bytes, segments of earlier versions, and what later versions may add."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.collect.tiers import FAN, merge_tiers
from rookery.puffin import open_puffin
from rookery.sidecar import Contents, SegmentEntry, Store, open_segment, write_segment
from rookery.sidecar.checksums import DamagedError
from rookery.sidecar.lengths import LENGTHS_SCHEMA, LENGTHS_V1, lengths_table
from rookery.sidecar.zone_map import COLUMN_SCHEMA
from rookery.sketch import InvertedTheta
from rookery.sketch.lengths import Lengths
from tests.sidecar.builders import segment, sketch, state, store_in, zone_map

GOLDEN = Path(__file__).parent / "golden" / "segment-without-lengths.puffin"
SOME = {0: Lengths(3, 12, 6), 2: Lengths(1, 1 << 70, 1 << 65)}


def with_lengths(store: Store, lengths: Mapping[int, pa.Table], files: int, first: int = 0) -> SegmentEntry:
    sketches = [InvertedTheta.of(sketch(n + 1), n, files) for n in range(files)]
    contents = Contents(zone_map(files, first), {1: InvertedTheta.merge(sketches)}, lengths)
    location = store.segment_path()
    write_segment(location, contents, snapshot_id=1, sequence_number=1, io_properties={})
    return SegmentEntry(location.rpartition("/")[2], files, (1,), 9)


def test_round_trip(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    written = {1: lengths_table(SOME, 3), 5: lengths_table({}, 3)}
    with store.open_segment(with_lengths(store, written, 3)) as found:
        assert found.lengths() == written
        assert found.lengths([5, 6]) == {5: written[5]}
        assert found.lengths()[1]["values"].to_pylist() == [3, None, 1]
        assert found.zone_column(7).schema == COLUMN_SCHEMA  # which earlier versions rely on


def test_a_segment_of_an_earlier_version_has_none() -> None:
    with open_segment(str(GOLDEN)) as found:
        assert found.files.num_rows == 2
        assert found.field_ids == {1, 2}
        assert found.lengths() == {}
        assert found.lengths([1, 2]) == {}


def test_columns_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    table = lengths_table(SOME, 3)
    more = table.append_column("median", pa.array([1, 2, 3]))
    with store.open_segment(with_lengths(store, {1: more}, 3)) as found:
        assert found.lengths() == {1: table}


@pytest.mark.parametrize(
    "table",
    [
        lengths_table(SOME, 4),
        lengths_table(SOME, 3).drop_columns(["bytes"]),
        lengths_table({}, 3).cast(pa.schema([(name, pa.float64()) for name in LENGTHS_SCHEMA.names])),
    ],
    ids=["files", "column", "type"],
)
def test_a_table_that_does_not_fit_is_damaged(tmp_path: Path, table: pa.Table) -> None:
    store = store_in(tmp_path)
    with (
        store.open_segment(with_lengths(store, {1: table}, 3)) as found,
        pytest.raises(DamagedError, match="lengths in 3 files"),
    ):
        found.lengths()


def test_segments_that_are_merged_keep_the_lengths_of_live_files(tmp_path: Path) -> None:
    """Some of them are of an earlier version."""
    store = store_in(tmp_path)
    entries, alive, expected = [], [], []
    for number in range(FAN):
        known = {0: Lengths(number, number, number), 1: Lengths(1, 1, 1)}
        tables = {1: lengths_table(known, 2), 8: lengths_table(known, 2)} if number % 3 else {}
        entries.append(with_lengths(store, tables, 2, first=2 * number))
        ordinals = (0, 1) if number == 4 else (0,)
        alive += [(2 * number + ordinal, number, ordinal) for ordinal in ordinals]
        expected += [known[ordinal].values if tables else None for ordinal in ordinals]
    (merged,) = merge_tiers(store, state(entries, alive)).header.segments
    with store.open_segment(merged) as found:
        lengths = found.lengths()
        assert lengths.keys() == {1}  # column 8 has no distinct values, so it was collected anew elsewhere
        assert lengths[1]["values"].to_pylist() == expected
        assert lengths[1].schema == LENGTHS_SCHEMA


def test_segments_of_earlier_versions_are_merged_as_before(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entries = [segment(store, {1: [sketch(n + 1)]}, first=n) for n in range(FAN)]
    (merged,) = merge_tiers(store, state(entries, [(n, n, 0) for n in range(FAN)])).header.segments
    with open_puffin(store.path(merged.name)) as reader:
        assert LENGTHS_V1 not in {blob.type for blob in reader.metadata.blobs}


def test_a_segment_of_an_earlier_version_can_be_merged(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    Path(store.location).mkdir()
    shutil.copy(GOLDEN, store.path("segment-old.puffin"))
    old = SegmentEntry("segment-old.puffin", 2, (1,), 9)
    entries = [replace(old)] + [
        with_lengths(store, {1: lengths_table(SOME, 3)}, 3, first=10 * n) for n in range(1, FAN)
    ]
    alive = [(n, n, 0) for n in range(FAN)]
    (merged,) = merge_tiers(store, state(entries, alive)).header.segments
    with store.open_segment(merged) as found:
        assert found.lengths()[1]["values"].to_pylist() == [None, *[3] * (FAN - 1)]
