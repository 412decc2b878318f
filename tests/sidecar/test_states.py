"""States: their bytes, their order, what they know of which column."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model import Field
from rookery.sidecar import DistributionHeader, Index, SegmentEntry, Store, default_location
from rookery.sidecar.state import State, parse_state_name, read_header, read_state, state_name
from tests.sidecar.builders import segment, sketch, state, store_in

TYPES = {1: "long", 5: "decimal(9, 2)", 900: "string"}


def same(one: State, other: State) -> bool:
    return (
        one.header == other.header
        and one.files.equals(other.files)
        and dict(one.thetas) == dict(other.thetas)
    )


def test_round_trip(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entries = [SegmentEntry("segment-a.puffin", 2, (1, 5), 7), SegmentEntry("segment-b.puffin", 1, (900,))]
    thetas = {1: sketch(), 5: sketch(4), 900: sketch(*range(1, 3000))}
    written = state(entries, [(1, 0, 0), (2, 0, 1), (3, 1, 0)], thetas=thetas, types=TYPES)
    name = store.write_state(written)
    found = read_state(store.path(name))
    assert same(found, written)
    assert found.header.types == TYPES
    assert [found.live(number).tolist() for number in (0, 1)] == [[True, True], [True]]


def test_a_state_of_an_empty_table(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    written = state(thetas={})
    assert same(read_state(store.path(store.write_state(written))), written)


@given(st.integers(0, 2**40), st.integers(1, 2**63 - 1))
def test_names(sequence_number: int, snapshot_id: int) -> None:
    name = state_name(state(snapshot_id=snapshot_id, sequence_number=sequence_number).header)
    assert parse_state_name(name) == (sequence_number, snapshot_id)


@pytest.mark.parametrize(
    "name", ["state-1-2-3.puffin", "state-0000000001-2.puffin", "segment-x.puffin", "state-a-b-c.puffin", ""]
)
def test_names_of_others(name: str) -> None:
    assert parse_state_name(name) is None


def test_a_state_of_version_1_knows_no_file_but_what_is_declared() -> None:
    """It was written when files were known by path and deletes alone."""
    golden = Path(__file__).parent / "golden" / "state-version-1.puffin"
    found = read_state(str(golden))
    assert found.files.num_rows == 0
    assert (found.header.segments, found.header.data_manifests, dict(found.thetas)) == ((), (), {})
    assert found.header.types == {-5: "joint(1:long, 2:string)"}
    assert found.header.rows == DistributionHeader((1,), (2,), 0, 0, 0)
    assert found.header.indexes == (Index("bloom", 1, "long", 0.01),)
    assert [entry.name for entry in read_header(str(golden)).segments] == ["segment-a.puffin"]


# -- which one is the best


def written(store: Store, *snapshots: tuple[int, int]) -> list[str]:
    """Write states of (snapshot, sequence number), in this order."""
    return [store.write_state(state(snapshot_id=s, sequence_number=n)) for s, n in snapshots]


def order(store: Store, *preferred: int) -> list[int]:
    return [found.header.snapshot_id for _, found in store.newest(preferred)]


def test_ancestors_come_first_and_the_nearest_of_them(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    written(store, (30, 3), (10, 1), (50, 5), (20, 2), (40, 4))
    assert order(store, 40, 20, 10) == [40, 20, 10, 50, 30]
    assert order(store) == [50, 40, 30, 20, 10]
    assert order(store, 999) == [50, 40, 30, 20, 10]


def test_version_1_has_no_sequence_numbers(tmp_path: Path) -> None:
    """Snapshot ids are random: neither they nor the numbers tell what is newer, but ancestry and time do."""
    store = store_in(tmp_path)
    written(store, (900, 0), (100, 0), (500, 0))
    assert order(store, 500, 100, 900) == [500, 100, 900]
    assert order(store, 100, 900) == [100, 900, 500]
    assert order(store) == [500, 100, 900]


def test_of_one_snapshot_the_later_is_newer(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    first, second = written(store, (10, 1), (10, 1))
    assert [name for name, _ in store.newest([10])] == [second, first]


def test_a_damaged_state_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = store_in(tmp_path)
    *_, newest = written(store, (10, 1), (20, 2))
    Path(store.path(newest)).write_bytes(Path(store.path(newest)).read_bytes()[:-9])
    with caplog.at_level(logging.WARNING):
        assert order(store, 20, 10) == [10]
    assert newest in caplog.text


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert order(store_in(tmp_path)) == []
    assert store_in(tmp_path).names("state-", ".puffin") == []


def test_where_it_is_kept() -> None:
    assert default_location("s3://b/db/t/", {}) == "s3://b/db/t.rookery"
    assert default_location("s3://b/db/t", {"rookery.location": "s3://other/x/"}) == "s3://other/x"


# -- what a state must be


@pytest.mark.parametrize(
    "files",
    [[(1, 1, 0)], [(1, -1, 0)], [(1, 0, 2)], [(1, 0, -1)]],
    ids=["segment", "-1", "ordinal", "-1 too"],
)
def test_files_outside_the_segments(tmp_path: Path, files: list[tuple[int, int, int]]) -> None:
    store = store_in(tmp_path)
    store.write_state(state([SegmentEntry("segment-a.puffin", 2, (1,))], files))
    assert order(store) == []


def test_a_version_to_come(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    found = state()
    store.write_state(replace(found, header=replace(found.header, version=99)))
    assert order(store) == []


# -- what is known of which column


def column(number: int, *, filled: bool = False, kind: str = "long") -> Field:
    return Field(number, f"c{number}", kind, filled=filled)


def test_a_segment_describes_its_columns_and_those_that_came_later() -> None:
    entry = SegmentEntry("a", 1, (1, 2), 4)
    assert [entry.describes(column(number)) for number in range(1, 7)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert not entry.describes(column(5, filled=True))  # old rows have a default in it
    assert not SegmentEntry("a", 1, (1, 2)).describes(column(5))


def test_complete_columns() -> None:
    entries = [SegmentEntry("a", 2, (1,), 3), SegmentEntry("b", 1, (1, 2), 3), SegmentEntry("c", 2, (2,), 4)]
    # The first two files are in the first segment for one column, and in the last for the other.
    files = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (1, 2, 0), (2, 2, 1)]
    found = state(entries, files, types={1: "long", 2: "long"})
    columns = [column(number) for number in range(1, 6)]
    assert found.complete(columns) == {1, 2, 4, 5}  # all were read before column 4 came
    without = state(
        entries, files[:4], types={1: "long", 2: "long"}
    )  # of the second file a column is missing
    assert without.complete(columns) == {1, 4, 5}
    assert found.complete([column(1, kind="decimal(9, 2)")]) == set()  # it has another type now


def test_whole_or_not() -> None:
    assert state(thetas={1: sketch()}, types={1: "long"}).is_whole
    assert not state(thetas={1: sketch()}, types={1: "long", 2: "long"}).is_whole


def test_segments_that_are_named_are_there(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = segment(store, {1: [sketch(1)]})
    store.check(state([entry]))
    Path(store.path(entry.name)).unlink()
    with pytest.raises(ValueError, match="no such file"):
        store.check(state([entry]))
