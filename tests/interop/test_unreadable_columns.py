"""Columns that Spark cannot read: skipped with a reason where nobody can read them; the rest is collected."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.cli.app import run
from rookery.collect.readable import SPARK_READS
from rookery.io import local_path
from rookery.maintain.pipeline import NAMES, maintain_table
from rookery.maintain.steps.step import Outcome
from rookery.model import UsageError
from rookery.model.type_names import SKETCHED
from tests.interop.analysis import read_statistics, statistics_path
from tests.interop.unreadable import ROWS, Maker, made
from tests.lakehouse import tables
from tests.maintain.tending import BRISK, by_step, maintained_of

UNREAD = {"t", "s.t", "l.element", "m.key", "m.value"}
ALL = UNREAD | {"n", "s.x", "w"}
SKIPPED = {"orc": UNREAD, "avro": ALL}
FORMS = [
    ("time", "orc", False),
    ("time", "avro", True),
    ("time", "position deletes", False),
    ("time", "position deletes", True),
    ("time", "equality deletes", False),
    ("timestamp_ns", "avro", False),
    ("timestamptz_ns", "equality deletes", True),
]


def write_hard(table: Maker, form: str, start: int) -> int:
    """Write a file that only Iceberg's reader understands; return the row that is deleted, or -1."""
    if form in ("orc", "avro"):
        table.write(form, start)
        return -1
    path = table.write("parquet", start)
    if form == "position deletes":
        table.delete_position(path, 3)
    else:
        table.delete_number(start + 3)
    return start + 3


@pytest.mark.parametrize(("kind", "form", "partitioned"), FORMS)
def test_the_other_columns_are_analysed(
    spark: SparkSession, lake: Lake, kind: str, form: str, partitioned: bool
) -> None:
    with made(spark, kind, partitioned=partitioned) as table:
        deleted = write_hard(table, form, 0)
        table.write("parquet", ROWS)
        report = rookery.analyze(spark, table.name, lake=lake)

        skipped = SKIPPED.get(form, set())
        assert report.skipped.keys() == skipped
        for why in report.skipped.values():
            assert why.startswith("Spark cannot read ")
            assert why.endswith("; 1 file not covered")
        rows = 2 * ROWS - (deleted >= 0)
        exact = {"n": rows, "s.x": 3, "w": 5, "m.key": 2}
        exact |= dict.fromkeys(("t", "s.t", "l.element", "m.value"), 20)
        exact = {name: count for name, count in exact.items() if name not in skipped}
        stats = {column.name: column for column in rookery.table(table.name, lake).stats().columns}
        assert {name: stats[name].ndv for name in exact} == exact
        assert {name: column.coverage for name, column in stats.items()} == {
            name: 0.5 if name in skipped else 1.0 for name in stats
        }
        names = {field.id: field.name for field in rookery.table(table.name, lake).load()[0].fields()}
        if exact:
            registered = read_statistics(statistics_path(table.name, lake))
            assert {names[number] for number in registered} == exact.keys()
        else:
            assert not lake.load(table.name).metadata.statistics

        again = rookery.analyze(spark, table.name, lake=lake, dry_run=True)
        assert (again.files_to_read, again.skipped) == (0, report.skipped)
        assert not rookery.analyze(spark, table.name, lake=lake).committed


def test_row_statistics_and_groups(spark: SparkSession, lake: Lake) -> None:
    """A histogram of a part of the rows would pass for one of all."""
    with made(spark, "time") as table:
        write_hard(table, "position deletes", 0)
        column_sets = [["n", "w"], ["n", "t"]]
        report = rookery.analyze(
            spark, table.name, lake=lake, histogram=["n", "t"], top_k=["w", "t"], column_sets=column_sets
        )
        assert report.skipped.keys() == {"t"}
        assert report.skipped["t"].startswith("no histogram")
        stats = {column.name: column for column in rookery.table(table.name, lake).stats().columns}
        assert stats["n"].rows is not None
        assert stats["w"].rows is not None
        assert stats["t"].rows is None
        by_name = {column.name: column.ndv for column in report.columns}
        assert (by_name["n + w"], by_name["n + t"], by_name["t"]) == (ROWS - 1, ROWS - 1, 20)


def test_once_no_file_needs_spark_all_is_covered(spark: SparkSession, lake: Lake) -> None:
    with made(spark, "time") as table:
        write_hard(table, "orc", 0)
        table.write("parquet", 0)
        rookery.analyze(spark, table.name, lake=lake)
        loaded = lake.load(table.name)
        (orc,) = [task.file.file_path for task in loaded.scan().plan_files() if ".orc" in task.file.file_path]
        table.remove(orc)
        report = rookery.analyze(spark, table.name, lake=lake)
        assert report.skipped == {}
        assert {column.coverage for column in report.columns} == {1.0}
        assert {column.name: column.ndv for column in report.columns}["t"] == 20


@pytest.mark.parametrize("kind", ["time", "timestamp_ns"])
def test_what_spark_cannot_do_is_said_in_one_line(spark: SparkSession, lake: Lake, kind: str) -> None:
    with made(spark, kind) as table:
        table.write("parquet", 0)
        handle = rookery.table(table.name, lake)
        for call in (
            lambda: handle.scan(spark, "n = 5"),
            lambda: handle.scan(spark),
            lambda: rookery.sql(spark, f"SELECT * FROM {table.name} WHERE n = 5", lake),
            lambda: rookery.sql(spark, f"SELECT n FROM {table.name}", lake),
        ):
            with pytest.raises(UsageError, match="Spark cannot read ") as caught:
                call()
            assert "\n" not in str(caught.value)
            assert "table.read" in (caught.value.hint or "")
        if kind == "time":
            assert handle.read("n = 5").num_rows == 1


def test_maintenance_leaves_out_what_spark_cannot_rewrite(spark: SparkSession, lake: Lake) -> None:
    with made(spark, "time") as table:
        for number in range(6):
            path = table.write("parquet", ROWS * number)
            table.delete_position(path, 0)
        done = by_step(maintain_table(maintained_of(lake, table.name, spark, BRISK)))
        assert {name: step.error for name, step in done.items() if step.error} == {}
        for name in NAMES[2:5]:
            assert done[name].outcome is Outcome.NOT_NEEDED
            assert "Spark cannot read 't', a column of type time" in done[name].why
        assert done["refresh statistics"].outcome is Outcome.DONE


def test_one_table_that_fails_does_not_stop_the_next(
    spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    with tables(spark) as make:
        names = [make("id bigint, word string", name) for name in ("a", "b", "c", "d")]
        for name in names:
            spark.sql(f"INSERT INTO {name} SELECT id, 'w' FROM range(10)")
            spark.sql(f"DELETE FROM {name} WHERE id = 3")
        for task in lake.load(names[0]).scan().plan_files():  # which only Spark reads
            Path(local_path(task.file.file_path)).unlink()
        metadata = Path(local_path(lake.load(names[2]).metadata_location))
        text = metadata.read_text()
        metadata.write_text("{}")
        namespace = names[0].split(".")[1]
        assert run(["analyze", f"{namespace}.*", "--output", "json"]) == 1
        printed = capsys.readouterr()
        told = json.loads(printed.out)
        assert [table["table"] for table in told["tables"]] == [names[1], names[3]]
        assert [line.partition(":")[0] for line in told["failed"]] == [names[0], names[2]]
        assert "Traceback" not in printed.err
        assert "py4j" not in printed.err
        assert len([line for line in printed.err.splitlines() if line.startswith("error:")]) == 2
        metadata.write_text(text)  # so that it can be dropped


def test_the_types_that_spark_reads_are_those_that_iceberg_says(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    parse = jvm.org.apache.iceberg.types.Types.fromPrimitiveString
    convert = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert
    able = set()
    for name in SKETCHED:
        spelt = {"decimal": "decimal(9, 2)", "fixed": "fixed[5]"}.get(name, name)
        with suppress(UnsupportedOperationException):
            convert(parse(spelt))
            able.add(name)
    assert able == SPARK_READS
