"""Histories that chance would seldom make, asked as the random ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import rookery
from tests.differential.columns import Column, schema_of
from tests.differential.conftest import Check
from tests.differential.history import World
from tests.differential.truth import rows_of
from tests.lakehouse import NewTable


def snapshot(world: World, name: str) -> int:
    current = world.lake.load(name).current_snapshot()
    assert current is not None
    return current.snapshot_id


def delete_equal(world: World, name: str, column: str, array: pa.Array) -> None:
    """Delete by equality, in a table without partitions."""
    loaded = world.lake.load(name)
    number = str(loaded.schema().find_field(column).field_id)
    kind = pa.field(column, array.type, metadata={"PARQUET:field_id": number})
    path = Path(loaded.location().removeprefix("file:")) / "data" / f"equality-{column}.parquet"
    pq.write_table(pa.Table.from_arrays([array], schema=pa.schema([kind])), path)
    world.java.commit_deletes(name, [world.java.equality_deletes(name, str(path), [column], len(array))])
    world.spark.catalog.refreshTable(name)


@pytest.mark.parametrize("kind", ["INT", "BIGINT"])
def test_truncation_wraps_around_at_the_least_number(
    world: World, new_table: NewTable, check: Check, kind: str
) -> None:
    least = -(2**31) if kind == "INT" else -(2**63)
    name = new_table(f"id {kind}, v STRING", partitioned="truncate(10, id)")
    world.spark.sql(
        f"INSERT INTO {name} VALUES ({least}, 'least'), (5, 'five'), ({-least - 1}, 'most'), (-7, 'x')"
    )
    asked = [f"id = {least}", "id < 0", f"id <= {least}", f"id > {least}", f"id IN ({least}, 3)", "id >= 0"]
    check(name, *asked, f"id < {least + 3}", f"id BETWEEN {least} AND -1")
    if kind == "INT":
        world.spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
        check(name, *asked, "id > 2147483640")


def test_decimals_of_all_their_digits(world: World, new_table: NewTable, check: Check) -> None:
    for partitioned in ("", "d", "bucket(4, d)", "truncate(7, d)"):
        name = new_table("id BIGINT, d DECIMAL(38, 10)", partitioned=partitioned)
        digits = ["1234567890123456789012345678.0123456789", "-9999999999999999999999999990.0000000001", "0"]
        for number, text in enumerate([*digits, "1234567890123456789012345678.0123456788"]):
            world.spark.sql(f"INSERT INTO {name} VALUES ({number}, CAST('{text}' AS DECIMAL(38, 10)))")
        asked = [
            f"d {op} CAST('{text}' AS DECIMAL(38, 10))" for text in digits for op in ("=", "<", ">=", "!=")
        ]
        check(name, *asked, "d IN (CAST('1234567890123456789012345678.0123456788' AS DECIMAL(38, 10)), 0BD)")


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_of_columns_that_changed_since(
    world: World, new_table: NewTable, check: Check, version: int
) -> None:
    name = new_table("id BIGINT, a INT, b STRING", format_version=version)
    world.spark.sql(f"INSERT INTO {name} SELECT id, CAST(id % 5 AS INT), concat('b', id % 3) FROM range(40)")
    delete_equal(world, name, "a", pa.array([1, None], pa.int32()))
    before = snapshot(world, name)
    delete_equal(world, name, "b", pa.array(["b2"]))
    rookery.analyze(world.spark, name, lake=world.lake)
    world.spark.sql(f"ALTER TABLE {name} RENAME COLUMN a TO c")
    check(name, "a = 1", "a = 2", "b = 'b2'", snapshot=before)
    world.spark.sql(f"ALTER TABLE {name} ALTER COLUMN c TYPE BIGINT")
    asked = ["id < 20", "c = 1", "c = 2", "b = 'b1'", "c IS NULL"]
    check(name, *asked)
    check(name, "a = 1", "a = 2", "b = 'b2'", snapshot=before)
    world.spark.sql(f"ALTER TABLE {name} DROP COLUMN b")
    world.spark.sql(f"INSERT INTO {name} VALUES (100, 1), (101, NULL)")
    check(name, "id < 20", "c = 1", "c = 2", "c IS NULL")


@pytest.mark.parametrize("version", [2, 3])
def test_back_to_a_snapshot_before_the_deletes(
    world: World, new_table: NewTable, check: Check, version: int
) -> None:
    """What was learned of a file with fewer rows must not be held against the same file with all of them."""
    name = new_table("id BIGINT, k STRING", format_version=version)
    world.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('k', id % 4) FROM range(40)")
    full = snapshot(world, name)
    handle = rookery.table(name, world.lake)
    handle.add_index("bitmap", "k")
    handle.add_index("bloom", "id")
    world.spark.sql(f"DELETE FROM {name} WHERE k = 'k1' OR id > 30")
    rookery.analyze(world.spark, name, lake=world.lake)
    asked = [
        "k = 'k1'",
        "id = 33",
        "k = 'k2'",
        "k != 'k1'",
        "id IN (5, 34)",
        "k = 'k1' OR id = 35",
        "id > 30",
    ]
    check(name, *asked)
    check(name, *asked, snapshot=full)
    short = name.removeprefix("lake.")
    world.spark.sql(f"CALL lake.system.rollback_to_snapshot('{short}', {full})")
    check(name, *asked)
    world.spark.sql(f"INSERT INTO {name} VALUES (33, 'k9')")
    check(name, *asked, "k = 'k9'")


def test_indexes_of_a_column_that_was_widened(world: World, new_table: NewTable, check: Check) -> None:
    name = new_table("id INT, f FLOAT, d DECIMAL(9, 2)")
    handle = rookery.table(name, world.lake)
    rows = "SELECT CAST(id AS INT), CAST(id / 7 AS FLOAT), CAST(id AS DECIMAL(9, 2)) FROM range(0, 30)"
    world.spark.sql(f"INSERT INTO {name} {rows}")
    for column in ("id", "f", "d"):
        handle.add_index("bloom", column)
        handle.add_index("bitmap", column)
    rookery.analyze(world.spark, name, lake=world.lake)
    asked = ["id = 5", "id = 99", "d = 7.00", "d = 7.5", "f = CAST(3 / 7 AS FLOAT)", "f > 2", "id IN (1, 40)"]
    check(name, *asked)
    for column, kind in (("id", "BIGINT"), ("f", "DOUBLE"), ("d", "DECIMAL(20, 2)")):
        world.spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {kind}")
    check(name, *asked)
    world.spark.sql(f"INSERT INTO {name} VALUES (40, 0.5D, 7.00), (3000000000, double('NaN'), 1e17BD)")
    check(name, *asked, "id = 3000000000", "isnan(f)", "f > 1e300D")
    rookery.analyze(world.spark, name, lake=world.lake)
    check(name, *asked, "id = 3000000000", "isnan(f)", "f > 1e300D", "f = 0.5")


def test_a_default_and_a_column_in_a_struct_that_is_null(
    world: World, new_table: NewTable, check: Check
) -> None:
    name = new_table("id BIGINT, s STRUCT<x: INT, y: STRUCT<z: STRING>>", format_version=3)
    world.spark.sql(f"INSERT INTO {name} VALUES (1, NULL), (2, named_struct('x', 1, 'y', NULL))")
    world.java.add_column_with_default(name, "added", 7)
    world.spark.sql(f"ALTER TABLE {name} ADD COLUMN s.w BIGINT")
    value = "named_struct('x', NULL, 'y', named_struct('z', 'a'), 'w', 5)"
    world.spark.sql(f"INSERT INTO {name} (id, s, added) VALUES (3, {value}, NULL), (4, NULL, 8)")
    asked = ["added = 7", "added != 7", "added IS NULL", "added IS NOT NULL", "s.x IS NULL", "s.x = 1"]
    asked += [
        "s.y.z = 'a'",
        "s.y.z IS NULL",
        "s.w = 5",
        "s.w IS NULL",
        "added > 7 OR s.w < 6",
        "added IN (7, 9)",
    ]
    check(name, *asked)
    rookery.analyze(world.spark, name, lake=world.lake)
    check(name, *asked)


def test_texts_around_their_cut_bounds(world: World, new_table: NewTable, check: Check) -> None:
    name = new_table("id BIGINT, s STRING, b BINARY")
    texts: list[Any] = ["a" * 16, "a" * 17, "a" * 15 + "\U0010ffff" * 3, "\U0010ffff" * 20, "", None, "z"]
    for number, text in enumerate(texts):
        data = None if text is None else text.encode() + b"\xff" * 20
        arrays = {
            "id": pa.array([number]),
            "s": pa.array([text], pa.string()),
            "b": pa.array([data], pa.binary()),
        }
        world.spark.createDataFrame(pa.table(arrays)).writeTo(name).append()
    asked = [f"s {op} '{text}'" for text in texts if text is not None for op in ("=", "<", ">", ">=")]
    asked += [f"s LIKE '{text[:cut]}%'" for text in texts if text for cut in (1, 15, 16, 17)]
    asked += ["s NOT LIKE 'a%'", "s IN ('', 'z')", "b = X'" + (b"z" + b"\xff" * 20).hex() + "'", "b > X'ff'"]
    asked += ["b >= X'" + (b"a" * 16 + b"\xff" * 20).hex() + "'", "b < X'61'"]
    check(name, *asked)


def test_decimals_of_all_their_digits_by_the_data_source(world: World, new_table: NewTable) -> None:
    digits = "2573683853137827923049702637.0523439896"
    name = new_table("id BIGINT, d DECIMAL(38, 10)")
    world.spark.sql(f"INSERT INTO {name} VALUES (1, CAST('{digits}' AS DECIMAL(38, 10))), (2, 0)")
    frame = world.spark.read.format("rookery").option("table", name).load()
    for asked in ("= {}", "IN ({}, 1BD)", ">= {}"):
        found = frame.where("d " + asked.format(f"CAST('{digits}' AS DECIMAL(38, 10))")).collect()
        assert [row.id for row in found] == [1], asked


UUIDS = [f"{first}0000000-0000-4000-8000-00000000000{last}" for first in "0f187" for last in "1f"]


def with_uuids(world: World, new_table: NewTable, partitioned: str = "", **properties: object) -> str:
    """A table of UUIDs in the order of the list, in one file if there are no partitions."""
    name = new_table("id BIGINT", **properties)
    world.java.add_column(name, schema_of([Column("u", "uuid")]))
    if partitioned:
        world.spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {partitioned}")
    rows = ", ".join(f"({place}, '{text}')" for place, text in enumerate(UUIDS))
    world.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}, (99, NULL)")
    return name


def about_uuids() -> list[str]:
    asked = [f"u {op} '{text}'" for text in UUIDS[::2] for op in ("=", "<", "<=", ">", ">=", "!=")]
    asked += [f"u IN ('{UUIDS[0]}', '{UUIDS[-1]}')", f"u BETWEEN '{UUIDS[2]}' AND '{UUIDS[6]}'", "u IS NULL"]
    return [*asked, f"NOT (u < '{UUIDS[3]}')"]


def test_partitions_of_uuids(world: World, new_table: NewTable, check: Check, check_files: Check) -> None:
    """Java takes the least and greatest partition of a manifest in an order of its own."""
    name = with_uuids(world, new_table, "u", write_distribution_mode="none")
    check(name, *about_uuids(), f"u = '{UUIDS[7].upper()}'", "u < '8'", by_spark=1)
    rookery.analyze(world.spark, name, lake=world.lake)
    check_files(name, *about_uuids())


def test_uuids_of_several_row_groups(
    world: World, new_table: NewTable, check: Check, check_files: Check
) -> None:
    """Java takes the least and greatest of row groups, which Parquet has ordered, in an order of its own."""
    few = {f"write.parquet.row-group-check-m{end}-record-count": 4 for end in ("in", "ax")}
    name = with_uuids(world, new_table, **few, **{"write.parquet.row-group-size-bytes": 1})
    check(name, *about_uuids(), by_spark=1)
    handle = rookery.table(name, world.lake)
    (known,) = [column for column in handle.stats().columns if column.name == "u"]
    assert (known.min, known.max) == ("00000000-0000-4000-0000-000000000000", None)
    assert (known.min_exact, known.nulls) == (False, 1)
    handle.add_index("bitmap", "u")
    rookery.analyze(world.spark, name, lake=world.lake)
    check_files(name, *about_uuids())


def test_uuids_and_fixed_lengths_within_others(world: World, new_table: NewTable, check: Check) -> None:
    name = new_table("id BIGINT")
    one, two = Column("u", "uuid"), Column("f", "fixed[4]")
    word = Column("key", "string")
    for column in (
        Column("s", "struct", children=[one, two]),
        Column("l", "list", children=[one]),
        Column("m", "map", children=[word, two]),
    ):
        world.java.add_column(name, schema_of([column]))
    first, other = UUIDS[0], UUIDS[-1]
    struct = f"named_struct('u', '{first}', 'f', X'01020304')"
    world.spark.sql(
        f"INSERT INTO {name} VALUES (1, {struct}, array('{first}', NULL), map('a', X'01020304')), "
        f"(2, NULL, NULL, NULL), (3, named_struct('u', NULL, 'f', NULL), array(), map()), "
        f"(4, named_struct('u', '{other}', 'f', X'ff000000'), array('{other}'), map('b', NULL))"
    )
    check(name, "id = 1", "id > 1", "id = 9", f"s.u = '{first}'", "s.f = X'ff000000'", by_spark=1)
    source = world.spark.read.format("rookery").option("table", name).load().toArrow()
    assert sorted(rows_of(source)) == sorted(rows_of(world.spark.table(name).toArrow()))


def test_times_before_1970_in_orc_of_others(
    world: World, new_table: NewTable, check_files: Check, tmp_path: Path
) -> None:
    """Of ORC that was not written by Java, Java reads them a second earlier than the file's bounds say."""
    name = new_table("id INT, t TIMESTAMP")
    for number, micros in enumerate((-31_505_390_860_964, -500_000, 0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        times = pa.array([micros], pa.int64()).cast(pa.timestamp("us", "UTC"))
        orc.write_table(pa.table({"id": pa.array([number], pa.int32()), "t": times}), folder / "a.orc")
        short = name.removeprefix("lake.")
        world.spark.sql(f"CALL lake.system.add_files(table => '{short}', source_table => '`orc`.`{folder}`')")
    world.spark.catalog.refreshTable(name)
    asked = [
        f"t {op} TIMESTAMP '{text}'"
        for text in ("1969-01-01 08:30:08.139036", "1969-01-01 08:30:09.139036", "1969-12-31 23:59:58.5")
        for op in ("=", "<", "<=", ">", ">=", "!=")
    ]
    check_files(name, *asked)
    rookery.analyze(world.spark, name, lake=world.lake)
    check_files(name, *asked)
