"""The same name, another file: what was learned of one must not be held against the other."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rookery
from rookery.model import RookeryError
from rookery.model.cache import clear_caches
from rookery.sidecar import FILES_SCHEMA, State, Store
from rookery.sidecar.state import write_state
from tests.differential.conftest import Check
from tests.differential.test_directed import delete_equal, snapshot
from tests.differential.world import World
from tests.lakehouse import NewTable

ASKED = (
    "id >= 50000",
    "id = 7",
    "id = 50007",
    "id < 100",
    "k = 'k1'",
    "k = 'n1'",
    "id IN (3, 50003)",
    "k IS NULL",
    "k = 'k1' OR id = 50002",
)
ROWS = 200
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("k", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ]
)
LAYOUT: dict[str, Any] = {
    "compression": "none",
    "use_dictionary": False,
    "write_page_index": True,
    "max_rows_per_page": 20,
    "write_batch_size": 10,
}


def write(folder: Path, first: int, kind: str, files: int = 2) -> list[str]:
    """Write files that are as long whatever their values, so that only their content differs."""
    folder.mkdir(exist_ok=True)
    paths = []
    for number in range(files):
        path = folder / f"part-{number}.parquet"
        start = first + number * ROWS
        texts = [None if n % 10 == 9 else f"{kind}{n % 4}" for n in range(ROWS)]
        arrays = [pa.array(range(start, start + ROWS), pa.int64()), pa.array(texts)]
        pq.write_table(pa.table(arrays, schema=SCHEMA), path, **LAYOUT)
        paths.append(str(path))
    return paths


def sizes(paths: Sequence[str]) -> list[int]:
    return [os.path.getsize(path) for path in paths]


def add(world: World, name: str, folder: Path, *, check: bool = True) -> None:
    short = name.removeprefix("lake.")
    world.spark.sql(
        f"CALL lake.system.add_files(table => '{short}', source_table => '`parquet`.`{folder}`', "
        f"check_duplicate_files => {str(check).lower()})"
    )
    world.spark.catalog.refreshTable(name)


def learn(world: World, name: str, snapshot: int | None = None) -> int:
    """Analyze with every kind of index; return how many files were read."""
    handle = rookery.table(name, world.lake)
    handle.add_index("bloom", "id")
    handle.add_index("bitmap", "k")
    return rookery.analyze(world.spark, name, lake=world.lake, snapshot=snapshot).files_read


@pytest.mark.parametrize("version", [1, 3])
def test_names_that_are_written_anew(
    world: World, new_table: NewTable, check: Check, tmp_path: Path, version: int
) -> None:
    name = new_table("id BIGINT, k STRING", format_version=version)
    before = sizes(write(tmp_path / "in", 0, "k"))
    add(world, name, tmp_path / "in")
    assert learn(world, name) == 2
    check(name, *ASKED)
    world.spark.sql(f"DELETE FROM {name}")
    assert sizes(write(tmp_path / "in", 50_000, "n")) == before
    add(world, name, tmp_path / "in")
    check(name, *ASKED)  # by what was learned of the files before, and of none
    assert rookery.analyze(world.spark, name, lake=world.lake).files_read == 2
    check(name, *ASKED)
    (found,) = [each for each in rookery.table(name, world.lake).stats().columns if each.name == "id"]
    assert (found.min, found.max) == (50_000, 50_000 + 2 * ROWS - 1)


def test_names_that_are_written_anew_after_a_rollback(
    world: World, new_table: NewTable, check: Check, tmp_path: Path
) -> None:
    name = new_table("id BIGINT, k STRING")
    world.spark.sql(f"INSERT INTO {name} VALUES (-1, 'first')")
    first = snapshot(world, name)
    write(tmp_path / "in", 0, "k")
    add(world, name, tmp_path / "in")
    learn(world, name)
    check(name, *ASKED)
    world.spark.sql(f"CALL lake.system.rollback_to_snapshot('{name.removeprefix('lake.')}', {first})")
    write(tmp_path / "in", 50_000, "n")
    add(world, name, tmp_path / "in")
    check(name, *ASKED)
    assert rookery.analyze(world.spark, name, lake=world.lake).files_read == 2
    check(name, *ASKED)


def test_a_dropped_table_leaves_nothing_in_memory(
    world: World, new_table: NewTable, check: Check, tmp_path: Path
) -> None:
    """Two tables that take over files of the same names, sizes and sequence numbers."""
    for first, kind in ((0, "k"), (50_000, "n")):
        name = new_table("id BIGINT, k STRING")
        paths = write(tmp_path / "in", first, kind)
        world.spark.sql(f"INSERT INTO {name} SELECT id, concat('{kind}', id % 4) FROM range(3)")
        files = [(path, ROWS) for path in paths]
        world.java.append_manifest(name, str(tmp_path / f"{kind}-m.avro"), files)
        check(name, *ASKED)
        world.spark.sql(f"DROP TABLE {name}")


def test_a_manifest_that_is_committed_again(
    world: World, new_table: NewTable, check: Check, tmp_path: Path
) -> None:
    """Its files are others by then, and so are the deletes that apply to them."""
    name = new_table("id BIGINT, k STRING")
    world.spark.sql(f"INSERT INTO {name} VALUES (-1, 'first')")
    paths = write(tmp_path / "in", 0, "k")
    manifest = str(tmp_path / "again-m.avro")
    world.java.append_manifest(name, manifest, [(path, ROWS) for path in paths])
    learn(world, name)
    check(name, *ASKED)
    world.spark.sql(f"DELETE FROM {name}")
    delete_equal(world, name, "k", pa.array(["k1", "n1"]))
    write(tmp_path / "in", 50_000, "n")
    world.java.append_manifest(name, manifest)
    check(name, *ASKED)
    assert rookery.analyze(world.spark, name, lake=world.lake).files_read == 2
    check(name, *ASKED)


def staged(world: World, name: str, insert: str) -> int:
    """Write a snapshot that is not published, and return its id."""
    world.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    world.spark.conf.set("spark.wap.id", f"wap-{name}")
    try:
        world.spark.sql(insert)
    finally:
        world.spark.conf.unset("spark.wap.id")
    known = world.lake.load(name).metadata.snapshots
    (found,) = [each for each in known if each.summary and each.summary.additional_properties.get("wap.id")]
    return found.snapshot_id


@pytest.mark.parametrize(("version", "analyzed_again"), [(2, False), (3, True)])
def test_a_staged_snapshot_that_is_picked_after_deletes(
    world: World, new_table: NewTable, check: Check, version: int, analyzed_again: bool
) -> None:
    """Picked, its files are younger than the deletes: none of their rows is deleted."""
    name = new_table("id BIGINT, k STRING", format_version=version)
    rows = "SELECT /*+ COALESCE(1) */ id, concat('k', id % 5) FROM range({}, {})"
    world.spark.sql(f"INSERT INTO {name} {rows.format(0, 20)}")
    of = staged(world, name, f"INSERT INTO {name} {rows.format(20, 40)}")
    learn(world, name, of)
    delete_equal(world, name, "k", pa.array(["k1", "k2"]))
    if analyzed_again:
        learn(world, name)
    short = name.removeprefix("lake.")
    world.spark.sql(f"CALL lake.system.cherrypick_snapshot('{short}', {of})")
    asked = ["k = 'k1'", "k = 'k2' AND id >= 20", "id >= 20", "id = 21", "id = 1", "k = 'k3'"]
    check(name, *asked)
    learn(world, name)
    check(name, *asked)


@pytest.mark.parametrize(("version", "layout"), [(2, "parquet"), (3, "parquet"), (3, "orc")])
def test_deletes_that_are_taken_back(
    world: World, new_table: NewTable, check: Check, version: int, layout: str
) -> None:
    name = new_table("id BIGINT, k STRING", format_version=version, **{"write.format.default": layout})
    world.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('k', id) FROM range(30)")
    world.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('k', id) FROM range(30, 60)")
    world.spark.sql(f"DELETE FROM {name} WHERE id IN (7, 33)")
    learn(world, name)
    asked = ["id = 7", "k = 'k7'", "k IN ('k33', 'k8')", "id > 32"]
    if layout == "parquet":
        check(name, *asked)
    world.java.take_back_deletes(name)
    handle = rookery.table(name, world.lake)
    for each in asked:
        truth = world.spark.sql(f"SELECT id FROM {name} WHERE {each}").count()
        assert handle.scan(world.spark, each).count() == truth, each
    if layout == "parquet":
        check(name, *asked)


def test_a_file_that_is_committed_twice(
    world: World, new_table: NewTable, check: Check, tmp_path: Path
) -> None:
    """Its rows are there twice, and deletes by position take both."""
    name = new_table("id BIGINT, k STRING")
    write(tmp_path / "in", 0, "k")
    add(world, name, tmp_path / "in")
    add(world, name, tmp_path / "in", check=False)
    check(name, *ASKED)
    learn(world, name)
    check(name, *ASKED)
    report = rookery.table(name, world.lake).stats()
    assert report.rows == 4 * ROWS
    world.spark.sql(f"DELETE FROM {name} WHERE id = 7")
    check(name, *ASKED)
    learn(world, name)
    check(name, *ASKED)


def test_a_state_that_knows_files_by_their_names(
    world: World, new_table: NewTable, check: Check, tmp_path: Path
) -> None:
    """As version 1 of the format did: of files it is not believed, what it declares is kept."""
    name = new_table("id BIGINT, k STRING")
    write(tmp_path / "in", 0, "k")
    add(world, name, tmp_path / "in")
    learn(world, name)
    rookery.analyze(
        world.spark, name, lake=world.lake, column_sets=[["id", "k"]], histogram=["id"], top_k=["k"]
    )
    _, store = rookery.table(name, world.lake).load()
    for written, state in list(store.newest([])):
        (Path(store.location.removeprefix("file:")) / written).unlink()
        write_state(store.path(written), as_version_1(store, state), store.io_properties)
    clear_caches()
    world.spark.sql(f"DELETE FROM {name}")
    write(tmp_path / "in", 50_000, "n")
    add(world, name, tmp_path / "in")
    check(name, *ASKED)
    assert rookery.analyze(world.spark, name, lake=world.lake).files_read == 2
    check(name, *ASKED)
    found = {each.name: each for each in rookery.table(name, world.lake).stats().columns}
    assert found["id + k"].ndv is not None
    assert found["id"].rows is not None
    assert found["k"].rows is not None
    listed = rookery.table(name, world.lake).indexes().indexes
    assert {(each.kind, each.column, each.files_covered) for each in listed} == {
        ("bloom", "id", 2),
        ("bitmap", "k", 2),
    }


def as_version_1(store: Store, state: State) -> State:
    """The same state as it was written before files were known by more than path and deletes."""
    keys = {}
    for number, entry in enumerate(state.header.segments):
        with store.open_segment(entry) as segment:
            for ordinal, file in enumerate(segment.files.to_pylist()):
                text = f"{file['path']}\0{file['deletes']}".encode()
                keys[number, ordinal] = hashlib.blake2b(text, digest_size=16).digest()
    places = zip(state.files["segment"].to_pylist(), state.files["ordinal"].to_pylist(), strict=True)
    old = pa.array([keys[place] for place in places], pa.binary(16))
    header = replace(
        state.header,
        data_manifests=tuple(each.split("#")[0] for each in state.header.data_manifests),
        version=1,
    )
    return replace(state, header=header, files=state.files.set_column(0, FILES_SCHEMA.field("key"), old))


@pytest.mark.parametrize("stated", [ROWS - 1, ROWS])
def test_a_file_that_is_not_the_one_that_was_committed(
    world: World, new_table: NewTable, tmp_path: Path, stated: int
) -> None:
    """Overwritten without a commit, it is refused if its size or its rows are not those of the metadata."""
    name = new_table("id BIGINT, k STRING")
    (path,) = write(tmp_path / "in", 0, "k", files=1)
    world.java.append_manifest(name, str(tmp_path / "overwritten-m.avro"), [(path, stated)])
    if stated == ROWS:
        pq.write_table(pq.read_table(path).slice(0, 10), path)
    with pytest.raises(RookeryError, match=Path(path).name):
        rookery.table(name, world.lake).read("id >= 0")
    with pytest.raises(RookeryError, match=Path(path).name):
        rookery.analyze(world.spark, name, lake=world.lake)
