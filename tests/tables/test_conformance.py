"""What every table format must do, shown on Iceberg and on a format that is unlike it."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from rookery.api.estimate import estimate
from rookery.api.explain import explain
from rookery.api.indexes import add_index
from rookery.api.statistics import stats
from rookery.api.where import bind
from rookery.collect.analyze import analyze
from rookery.discover.confidence import unique_confidence
from rookery.discover.describe import describe_table
from rookery.io import open_source
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import Policy
from rookery.maintain.status import TableStatus, table_status
from rookery.maintain.steps.step import MaintainedTable, Outcome
from rookery.model import MachineError, RookeryError, Snapshot, StorageError, UsageError
from rookery.parquet import read_footer
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.puffin import THETA_V1, Blob, Writer
from rookery.read.table_reader import count_rows, read_table
from rookery.sidecar import Store, store_of
from rookery.tables import FILE_SCHEMA, Table, identities
from rookery.tables.partitioning import TransformKind
from tests.collect.plain import NO_SPARK
from tests.tables.iceberg_format import IcebergWriter
from tests.tables.memory_format import MemoryWriter

COLUMNS = {"id": "long", "n": "long", "word": "string"}
Row = Mapping[str, Any]


class FormatWriter(Protocol):
    """A table of some format that can be written to; every append makes a file a partition."""

    def open(self) -> Table: ...
    def append(self, rows: Sequence[Row]) -> None: ...
    def delete_rows(self, ids: set[int]) -> None: ...
    def remove_file_of(self, row_id: int) -> None: ...
    def add_column(self, name: str, kind: str) -> None: ...
    def rename_column(self, old: str, new: str) -> None: ...
    def tag(self, name: str) -> None: ...
    def branch(self, name: str) -> None: ...
    def sort_by(self, column: str) -> None: ...
    def aim_for(self, file_size: int) -> None: ...
    def drop(self) -> None: ...


class Format:
    """Makes tables of a format."""

    def __init__(self, make: Callable[[str | None], FormatWriter], spark: Any) -> None:
        self.make = make
        self.spark = spark


@pytest.fixture(params=["iceberg", "memory"])
def format_(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Format]:
    if request.param == "memory":
        yield Format(lambda partition: MemoryWriter(tmp_path, COLUMNS, partition), NO_SPARK)
        return
    spark, lake = request.getfixturevalue("spark"), request.getfixturevalue("lake")
    made: list[str] = []

    def make(partition: str | None) -> FormatWriter:
        made.append(f"lake.db.f_{uuid.uuid4().hex[:12]}")
        return IcebergWriter(spark, lake, made[-1], COLUMNS, partition)

    yield Format(make, spark)
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def rows_of(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "n": number % 7 if number % 5 else None, "word": f"w{number % 3}"}
        for number in range(start, start + count)
    ]


def current(table: Table) -> Snapshot:
    found = table.snapshot()
    assert found is not None
    return found


def files_of(table: Table, snapshot: Snapshot, *, data: bool = True) -> Any:
    lists = [each for each in table.file_lists(snapshot) if each.is_data is data]
    return table.read_files(lists)


def read(table: Table, where: str | None = None, snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
    at = snapshot or current(table)
    rows = read_table(table, store_of(table), at, bind(where, table, at, "UTC")).rows.to_pylist()
    return sorted(rows, key=lambda row: row["id"])


# -- snapshots


def test_a_table_without_rows_has_no_snapshot(format_: Format) -> None:
    table = format_.make(None).open()
    assert table.snapshot() is None
    assert table.at(None) is None
    assert not table.snapshots


def test_snapshots_follow_each_other(format_: Format) -> None:
    writer = format_.make(None)
    for number in range(3):
        writer.append(rows_of(10 * number, 10))
    table = writer.open()
    line = list(table.ancestors(current(table)))
    assert [each.id for each in line] == [current(table).id, line[0].parent_id, line[1].parent_id]
    assert line[-1].parent_id is None
    assert {each.id for each in line} == set(table.snapshots)
    numbers = [each.sequence_number for each in reversed(line)]
    assert numbers == sorted(numbers)
    pinned = table.at(line[-1].id)
    assert pinned is not None
    assert (pinned.id, pinned.pinned) == (line[-1].id, True)
    with pytest.raises(UsageError, match="no snapshot 1234567"):
        table.snapshot(1234567)


def test_a_table_stays_as_it_was_loaded(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    table = writer.open()
    before = current(table).id
    writer.append(rows_of(10, 10))
    assert current(table).id == before
    assert current(writer.open()).parent_id == before
    assert writer.open().uuid == table.uuid


def test_a_version_of_the_metadata_has_one_name(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    first = writer.open().version
    assert writer.open().version == first
    writer.append(rows_of(10, 10))
    assert first is None or writer.open().version != first


def test_branches_and_tags_stay_where_they_were_made(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    before = writer.open()
    assert not before.tags
    writer.tag("first")
    writer.branch("side")
    writer.append(rows_of(10, 10))
    table = writer.open()
    assert dict(table.tags) == {"first": current(before).id}
    assert table.branches["side"] == current(before).id
    assert set(table.branches) - {"side"} == set(before.branches)
    assert len(read(table, None, table.at(table.tags["first"]))) == 10
    assert not before.tags


def test_snapshots_state_what_they_have_changed(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    writer.append(rows_of(10, 15))
    writer.delete_rows({3, 4})
    writer.remove_file_of(10)
    table = writer.open()
    line = list(table.ancestors(current(table)))[::-1]
    assert [each.operation for each in line[:2]] == ["append", "append"]
    assert "replace" not in {each.operation for each in line}
    stated = [table.changes_of(each) for each in line]
    assert all(each.files for each in stated)
    rows = [each.rows for each in stated if each.rows is not None]
    assert [(each.added, each.removed) for each in rows] == [(10, 0), (15, 0), (0, 0), (0, 15)]
    assert [each.deletes_added - each.deletes_removed for each in rows] == [0, 0, 2, 0]
    assert [each.value_deletes_added for each in rows] == [0, 0, 0, 0]


# -- files


def test_live_and_removed_files(format_: Format) -> None:
    writer = format_.make(None)
    for number in range(3):
        writer.append(rows_of(10 * number, 10))
    first = writer.open()
    before = files_of(first, current(first))
    writer.remove_file_of(15)
    table = writer.open()
    after = files_of(table, current(table))
    assert before.schema.names[: len(FILE_SCHEMA)] == FILE_SCHEMA.names
    assert (before.num_rows, after.num_rows) == (3, 2)
    kept = set(identities(after).to_pylist())
    assert len(kept & set(identities(before).to_pylist())) == 2
    assert len(kept) == 2
    assert [row["id"] for row in read(table)] == [*range(10), *range(20, 30)]
    # What the old snapshot consists of has not changed.
    assert set(identities(files_of(table, current(first))).to_pylist()) == set(identities(before).to_pylist())


def test_a_list_names_the_same_files_wherever_it_stands(format_: Format) -> None:
    writer = format_.make(None)
    named: dict[str, set[str]] = {}
    for number in range(4):
        writer.append(rows_of(10 * number, 10))
        if number == 2:
            writer.delete_rows({3, 24})
        table = writer.open()
        for snapshot in table.snapshots.values():
            lists = table.file_lists(snapshot)
            assert len({each.path for each in lists}) == len(lists)
            for each in lists:
                found = table.read_files([each])
                assert each.live_files in (None, found.num_rows)
                assert set(found["file_list"].to_pylist()) <= {each.path}
                assert named.setdefault(each.identity, set(identities(found).to_pylist())) == set(
                    identities(found).to_pylist()
                )


def test_bounds_hold_what_a_file_has(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(10, 20))
    table = writer.open()
    ids = {field.name: field.id for field in table.fields()}
    (file,) = files_of(table, current(table)).to_pylist()
    nulls = dict(file["null_counts"])
    assert (file["rows"], nulls.get(ids["n"], 4)) == (20, 4)
    lower, upper = dict(file["lower_bounds"]), dict(file["upper_bounds"])
    assert lower.get(ids["id"], bytes(8)) <= (10).to_bytes(8, "little")
    assert upper.get(ids["word"], b"w2") >= b"w2"


def test_target_sizes(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    table = writer.open()
    assert table.target_file_size > 1000
    assert table.target_list_size > 0
    writer.aim_for(1000)
    assert writer.open().target_file_size == 1000
    assert status_of(writer.open(), store_of(table)).layout.target_size == 1000


# -- deletes


def test_deletes_are_part_of_what_a_file_is(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    writer.append(rows_of(10, 10))
    seen: list[list[str]] = []
    for gone in ({3}, {3, 4}):
        writer.delete_rows(gone)
        table = writer.open()
        data, deletes = (files_of(table, current(table), data=data) for data in (True, False))
        attached = table.attached_deletes(data, deletes)
        by_file = table.deletes_by_file(data, deletes)
        assert [bool(text) for text in attached] == [number in by_file for number in range(2)]
        assert sorted(map(bool, attached)) == [False, True]
        seen.append(sorted(attached))
        assert [row["id"] for row in read(table)] == [number for number in range(20) if number not in gone]
    assert seen[0] != seen[1]
    table = writer.open()
    without = current(table)
    for _ in range(2):
        assert without.parent_id is not None
        without = table.snapshots[without.parent_id]
    assert table.attached_deletes(files_of(table, without), files_of(table, without, data=False)) == ["", ""]
    assert len(read(table, None, table.at(without.id))) == 20


# -- columns


def test_columns_are_known_by_their_ids(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    old = current(writer.open())
    writer.rename_column("n", "m")
    writer.add_column("n", "long")
    writer.append([{"id": 10, "m": 1, "word": "x", "n": 99}])
    table = writer.open()
    fields = {field.name: field for field in table.fields()}
    assert list(fields) == ["id", "m", "word", "n"]
    assert fields["n"].id > fields["m"].id
    assert table.last_column_id >= fields["n"].id
    assert table.column_types[fields["n"].id] == fields["n"].type == "long"
    assert [column.id for column in table.schema().columns] == [field.id for field in fields.values()]
    found = read(table)
    assert [row["m"] for row in found] == [row["n"] for row in rows_of(0, 10)] + [1]
    assert [row["n"] for row in found] == [None] * 10 + [99]
    assert [row["id"] for row in read(table, "n = 99")] == [10]
    assert [row["id"] for row in read(table, "m = 1")] == [1, 8, 10]
    pinned = table.at(old.id)
    assert pinned is not None
    assert [field.name for field in table.fields(pinned)] == ["id", "n", "word"]
    assert read(table, None, pinned) == rows_of(0, 10)
    written = table.written_schema(pinned)
    assert written is not None
    assert [column.name for column in written.columns] == ["id", "n", "word"]


def test_columns_of_a_file_are_found(format_: Format) -> None:
    """By the ids that they have in the table, whatever they were called when the file was written."""
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    before = {field.name: field.id for field in writer.open().fields()}
    writer.rename_column("n", "m")
    writer.add_column("n", "long")
    table = writer.open()
    (file,) = files_of(table, current(table)).to_pylist()
    with open_source(file["path"], table.io_properties) as source:
        leaves = read_footer(source, file["size"]).leaves
    found = table.column_mapping(file["path"]).with_ids(leaves)
    assert {leaf.path[0]: leaf.field_id for leaf in found} == before


def test_sort_order(format_: Format) -> None:
    writer = format_.make(None)
    assert not writer.open().sort_order
    writer.sort_by("word")
    table = writer.open()
    (part,) = table.sort_order
    assert part.source_id == next(field.id for field in table.fields() if field.name == "word")
    assert part.transform.kind is TransformKind.IDENTITY
    assert (part.direction, part.nulls) == ("ASC", "NULLS FIRST")


# -- partitions


def test_partitions_are_pruned(format_: Format) -> None:
    writer = format_.make("word")
    writer.append(rows_of(0, 30))
    table = writer.open()
    (spec,) = (spec for spec in table.specs.values() if spec)
    (part,) = spec
    assert part.source_id == next(field.id for field in table.fields() if field.name == "word")
    assert part.transform.kind is TransformKind.IDENTITY
    assert sorted(files_of(table, current(table))["partition"].to_pylist()) == ['["w0"]', '["w1"]', '["w2"]']
    found = pruned(table, "word = 'w1'")
    assert (len(found.files), len(found.numbers)) == (3, 1)
    assert read(table, "word = 'w1'") == [row for row in rows_of(0, 30) if row["word"] == "w1"]


def pruned(table: Table, where: str) -> Pruning:
    at = current(table)
    store = store_of(table)
    return prune(table, at, file_set(table, store, at), bind(where, table, at, "UTC"))


# -- statistics


def test_statistics_are_registered_and_read_back(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    table = writer.open()
    at = current(table)
    (column,) = (field for field in table.fields() if field.name == "id")
    assert not table.statistics
    path = f"{table.statistics_folder}/{at.id}-{uuid.uuid4()}.stats"
    with Writer(path, io_properties=table.io_properties) as made:
        for kind in (THETA_V1, "another-type-v1"):
            blob = Blob(kind, b"payload", (column.id,), at.id, at.sequence_number, properties={"ndv": "10"})
            made.add(blob)
    table.register_statistics(format_.spark, at.id, made.written, lambda blob: blob.type == THETA_V1)
    (found,) = writer.open().statistics
    assert (found.snapshot_id, found.path, found.size) == (at.id, path, made.written.size)
    assert found.footer_size == made.written.footer_size
    (named,) = found.blobs
    assert (named.type, named.fields, named.snapshot_id) == (THETA_V1, (column.id,), at.id)
    assert named.properties["ndv"] == "10"
    assert list(writer.open().statistics_paths) == [path]


# -- engines


def test_a_table_that_is_gone_is_not_loadable(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    table = writer.open()
    assert table.not_loadable is None
    table.check_loadable(format_.spark)
    writer.drop()
    with pytest.raises(RookeryError):
        table.check_loadable(format_.spark)


def test_an_engine_reads_the_files_that_are_staged(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    writer.append(rows_of(10, 10))
    writer.delete_rows({3})
    table = writer.open()
    if format_.spark is NO_SPARK:
        with pytest.raises(MachineError):  # a format without an engine states that
            table.for_engine(format_.spark)
        return
    engine = table.for_engine(format_.spark)
    assert (engine.uuid, engine.version) == (table.uuid, table.version)
    writer.append(rows_of(20, 10))
    assert engine.frame().count() == 19  # of the metadata that it was loaded with
    at = current(table)
    (path,) = (
        file["path"]
        for file in files_of(table, at).to_pylist()
        if dict(file["lower_bounds"])[1] == bytes(8)  # the file with row 0
    )
    staged = engine.staged(at.id, [path])
    assert staged is not None
    assert sorted(row.id for row in staged.collect()) == [0, 1, 2, *range(4, 10)]
    word = next(field for field in table.fields() if field.name == "word")
    only = engine.staged(at.id, [path], [word.id])
    assert only is not None
    assert only.columns == ["word"]
    assert only.count() == 9
    assert engine.staged(at.id, []) is None


# -- all of it together


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_history_is_analysed_and_read(format_: Format, seed: int) -> None:
    """Whatever is indexed, and when, rows are those that were written and not deleted."""
    rng = random.Random(seed)
    writer = format_.make(rng.choice([None, "word"]))
    rows: dict[int, dict[str, Any]] = {}
    skipped = 0
    for step in range(4):
        added = rows_of(20 * step, 20)
        writer.append(added)
        rows |= {row["id"]: row for row in added}
        if step == 0:
            table = writer.open()
            store = store_of(table)
            add_index(table, store, "bloom", "id", None)
            add_index(table, store, "bitmap", "n", None)
        if step in (0, 2):
            assert analyze(lambda: format_.spark, writer.open(), store).files_to_read
        if step == 1:
            gone = set(rng.sample(sorted(rows), 5))
            if format_.spark is NO_SPARK:  # files with deletes are read by an engine, which this one lacks
                analyze(lambda: format_.spark, writer.open(), store)
            writer.delete_rows(gone)
            rows = {number: row for number, row in rows.items() if number not in gone}
            if format_.spark is NO_SPARK:
                break
        skipped += _agree(writer.open(), store, rows, rng)
    skipped += _agree(writer.open(), store, rows, rng)
    assert skipped


def _agree(table: Table, store: Store, rows: Mapping[int, Row], rng: random.Random) -> int:
    """Compare reads with the rows; return how many files were skipped."""
    at = current(table)
    value = rng.randrange(80)
    cases: list[tuple[str, Callable[[Row], bool]]] = [
        (f"id = {value}", lambda row: row["id"] == value),
        ("n = 3", lambda row: row["n"] == 3),
        ("n IS NULL", lambda row: row["n"] is None),
        ("word = 'w1' AND id < 30", lambda row: row["word"] == "w1" and row["id"] < 30),
        ("id > 1000", lambda row: False),
    ]
    skipped = 0
    for where, matches in cases:
        predicate = bind(where, table, at, "UTC")
        expected = [rows[number] for number in sorted(rows) if matches(rows[number])]
        found = read_table(table, store, at, predicate)
        assert sorted(found.rows.to_pylist(), key=lambda row: row["id"]) == expected, where
        assert count_rows(table, store, at, predicate)[0] == len(expected), where
        report = explain(table, store, where, resolved_ms=0.0)
        skipped += report.stages[0].files_in - len(report.files)
    return skipped


def test_status_stats_and_estimates(format_: Format) -> None:
    """What is said of a table without reading its data, before and after a commit of another writer."""
    writer = format_.make("word")
    rows = rows_of(0, 60)
    writer.append(rows)
    store = store_of(writer.open())
    assert status_of(writer.open(), store).statistics.freshness == "never"
    assert status_of(writer.open(), store).breaches == ("statistics were never collected",)
    analyze(lambda: format_.spark, writer.open(), store)
    table = writer.open()
    now = status_of(table, store)
    assert (now.statistics.freshness, now.statistics.health, now.breaches) == ("current", 1.0, ())
    assert (now.layout.rows, now.layout.files, now.layout.partitions, now.expirable_snapshots) == (
        60,
        3,
        3,
        0,
    )
    assert {(column.name, column.ndv) for column in now.columns} == {("id", 60.0), ("n", 7.0), ("word", 3.0)}

    known = {column.name: column for column in stats(table, store).columns}
    assert (known["id"].min, known["id"].max, known["id"].nulls) == (0, 59, 0)
    assert known["n"].nulls == sum(row["n"] is None for row in rows)

    facts = describe_table(table, store)
    assert {column.name for column in facts.columns if unique_confidence(column) >= 0.99} == {"id"}

    writer.append(rows_of(60, 30))
    rows += rows_of(60, 30)
    behind = status_of(writer.open(), store)
    assert (behind.statistics.freshness, behind.statistics.snapshots_behind) == ("stale", 1)
    assert behind.statistics.changed_rows == 30
    for where, matches in (
        ("id < 30", lambda row: row["id"] < 30),
        ("n = 3", lambda row: row["n"] == 3),
        ("n IS NULL", lambda row: row["n"] is None),
        ("word = 'w1' AND id >= 70", lambda row: row["word"] == "w1" and row["id"] >= 70),
    ):
        said = estimate(writer.open(), store, where).rows
        assert said.low <= sum(map(matches, rows)) <= said.high, where


def status_of(table: Table, store: Store) -> TableStatus:
    return table_status(table, store, Policy(), now=time.time(), columns=True)


def test_maintenance_takes_the_steps_of_the_format(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    table = writer.open()
    maintained = MaintainedTable(
        table.name, lambda: (table, store_of(table)), lambda: format_.spark, Policy(), time.time
    )
    reports = {report.step: report for report in maintain_table(maintained, dry_run=True).steps}
    assert reports["refresh statistics"].outcome is Outcome.PLANNED
    others = [report for report in reports.values() if "not a step for tables of this format" in report.why]
    assert len(others) == (len(reports) - 1 if format_.spark is NO_SPARK else 0)


def test_files_that_do_not_stand_alone_are_not_skipped(tmp_path: Path) -> None:
    """The newest row of a key replaces older ones: without its file, one of those would come back."""
    writer = MemoryWriter(tmp_path, COLUMNS, key="id")
    writer.append([{"id": 1, "n": 5, "word": "old"}])
    writer.append([{"id": 1, "n": 6, "word": "new"}])
    table = writer.open()
    store = store_of(table)
    add_index(table, store, "bloom", "n", None)
    analyze(lambda: NO_SPARK, table, store)
    for where in ("n = 5", "n = 6", "n > 100", "word = 'old'"):
        assert pruned(table, where).numbers.tolist() == [0, 1], where
        with pytest.raises(StorageError, match="merged with those of other files"):
            read(table, where)
        with pytest.raises(StorageError, match="merged with those of other files"):
            count_rows(table, store, current(table), bind(where, table, current(table), "UTC"))
    assert not table.stands_alone(files_of(table, current(table))).any()


def test_all_files_of_iceberg_stand_alone(format_: Format) -> None:
    writer = format_.make(None)
    writer.append(rows_of(0, 10))
    writer.delete_rows({3})
    table = writer.open()
    found = table.stands_alone(files_of(table, current(table)))
    assert found.dtype == np.bool_
    assert found.all()
