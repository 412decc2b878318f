"""`rookery analyze` and `rookery stats`: what they print, what they return, what they refuse."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rookery import analyze
from rookery.api.lake import Lake
from tests.cli.conftest import Rookery
from tests.lakehouse import NewTable, distinct, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = {
    "name", "field_id", "ndv", "ndv_low", "ndv_high", "kind", "nulls", "min", "max", "snapshot_id", "coverage"
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("shared_catalog")


@pytest.fixture(scope="module")
def shared_table(spark: SparkSession) -> Iterator[NewTable]:
    """For tables that no test changes."""
    with tables(spark) as make:
        yield make


@pytest.fixture(scope="module")
def untouched(spark: SparkSession, shared_table: NewTable) -> str:
    name = shared_table("id bigint, name string, at struct<city: string, zip: int>", "people")
    append(spark, name, 0, 10)
    return name


@pytest.fixture
def people(spark: SparkSession, own_table: NewTable) -> str:
    """Ten rows in one file: an id, a name of which there are three, and a city that is null for half."""
    name = own_table("id bigint, name string, at struct<city: string, zip: int>", "people")
    append(spark, name, 0, 10)
    return name


def append(spark: SparkSession, name: str, start: int, end: int) -> None:
    rows = spark.range(start, end, 1, 1).selectExpr(
        "id",
        "concat('n', id % 3) AS name",
        "named_struct('city', if(id % 2 = 0, 'Ulm', null), 'zip', cast(id AS int)) AS at",
    )
    rows.writeTo(name).append()


def columns_of(rookery: Rookery, *words: object) -> dict[str, dict[str, Any]]:
    code, out, err = rookery(*words, "--output", "json")
    assert (code, err) == (0, "")
    return {column["name"]: column for column in json.loads(out)["columns"]}


def kept(lake: Lake, name: str) -> Path:
    return Path(lake.load(name).location().removeprefix("file://") + ".rookery")


class TestAnalyze:
    def test_report(self, rookery: Rookery, people: str) -> None:
        code, out, err = rookery("analyze", people)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == people
        assert lines[1].split() == ["column", "ndv", "low", "high", "kind"]
        assert [line.split() for line in lines[2:6]] == [
            ["id", "10", "10", "10", "exact"],
            ["name", "3", "3", "3", "exact"],
            ["at.city", "1", "1", "1", "exact"],
            ["at.zip", "10", "10", "10", "exact"],
        ]
        assert lines[6].startswith("read ")
        assert " of 1 file, 40 values, in " in lines[6]
        assert len(lines) == 7

    def test_how_it_was_read_with_debug(self, rookery: Rookery, people: str) -> None:
        code, _, err = rookery("analyze", people, "--debug")
        assert (code, err) == (0, f"{people}: column chunks read: 4 by pages\n")

    def test_json(self, rookery: Rookery, lake: Lake, people: str) -> None:
        code, out, _ = rookery("analyze", people, "--output", "json")
        report = json.loads(out)
        snapshot = lake.load(people).current_snapshot().snapshot_id
        assert code == 0
        assert (report["table"], report["snapshot_id"], report["committed"]) == (people, snapshot, True)
        assert (report["files"], report["files_read"], report["values"]) == (1, 1, 40)
        assert [column["name"] for column in report["columns"]] == ["id", "name", "at.city", "at.zip"]
        assert all(column.keys() >= FIELDS for column in report["columns"])
        city = report["columns"][2]
        assert {key: city[key] for key in FIELDS} == {
            "name": "at.city",
            "field_id": 4,
            "ndv": 1,
            "ndv_low": 1,
            "ndv_high": 1,
            "kind": "exact",
            "nulls": None,  # not every writer counts rows whose struct is null
            "min": "Ulm",
            "max": "Ulm",
            "snapshot_id": snapshot,
            "coverage": 1.0,
        }

    def test_nothing_changed(self, rookery: Rookery, lake: Lake, people: str) -> None:
        assert rookery("analyze", people)[0] == 0
        before = lake.load(people).metadata
        code, out, err = rookery("analyze", people)
        assert (code, out, err) == (0, f"{people}: nothing has changed, nothing was read\n", "")
        assert lake.load(people).metadata == before

    def test_only_new_files(self, rookery: Rookery, spark: SparkSession, people: str) -> None:
        rookery("analyze", people)
        append(spark, people, 10, 15)
        code, out, _ = rookery("analyze", people, "--output", "json")
        report = json.loads(out)
        assert code == 0
        assert (report["files"], report["files_read"], report["values"]) == (2, 1, 20)
        assert report["columns"][0]["ndv"] == 15

    def test_full(self, rookery: Rookery, people: str) -> None:
        rookery("analyze", people)
        report = json.loads(rookery("analyze", people, "--full", "--output", "json")[1])
        assert (report["files_read"], report["values"], report["committed"]) == (1, 40, True)

    @pytest.mark.parametrize(
        "words, expected",
        [
            (["--columns", "id,name"], ["id", "name"]),
            (["--columns", "name", "--columns", "id"], ["id", "name"]),
            (["--columns", "at"], ["at.city", "at.zip"]),
            (["--columns", "at.zip"], ["at.zip"]),
            (["--exclude", "at, name"], ["id"]),
            (["--columns", "id,at", "--exclude", "at.city"], ["id", "at.zip"]),
        ],
    )
    def test_choice(self, rookery: Rookery, people: str, words: list[str], expected: list[str]) -> None:
        assert list(columns_of(rookery, "analyze", people, *words)) == expected
        known = columns_of(rookery, "stats", people)
        assert [name for name, column in known.items() if column["ndv"] is not None] == expected

    def test_more_columns_later(self, rookery: Rookery, people: str) -> None:
        rookery("analyze", people, "--columns", "id")
        rookery("analyze", people, "--columns", "name")
        known = columns_of(rookery, "stats", people)
        assert (known["id"]["ndv"], known["name"]["ndv"], known["at.zip"]["ndv"]) == (10, 3, None)

    def test_snapshot(self, rookery: Rookery, spark: SparkSession, lake: Lake, people: str) -> None:
        first = lake.load(people).current_snapshot().snapshot_id
        append(spark, people, 10, 15)
        old = columns_of(rookery, "analyze", people, "--snapshot", first)["id"]
        assert (old["ndv"], old["max"], old["snapshot_id"]) == (10, 9, first)
        assert [file.snapshot_id for file in lake.load(people).metadata.statistics] == [first]
        assert columns_of(rookery, "analyze", people)["id"]["ndv"] == 15
        assert columns_of(rookery, "stats", people, "--snapshot", first)["id"]["ndv"] == 10
        assert columns_of(rookery, "stats", people)["id"]["ndv"] == 15

    def test_dry_run(self, rookery: Rookery, lake: Lake, people: str) -> None:
        before = lake.load(people).metadata
        code, out, err = rookery("analyze", people, "--dry-run")
        assert (code, err) == (0, "")
        assert out.startswith(f"{people}: 1 of 1 file would be read, at most ")
        report = json.loads(rookery("analyze", people, "--dry-run", "--output", "json")[1])
        (file,) = lake.load(people).inspect.files().to_pylist()
        assert (report["files_to_read"], report["bytes_to_read"]) == (1, file["file_size_in_bytes"])
        assert (report["files_read"], report["committed"], report["columns"]) == (0, False, [])
        assert lake.load(people).metadata == before
        assert not kept(lake, people).exists()

    def test_pattern(self, rookery: Rookery, spark: SparkSession, people: str, own_table: NewTable) -> None:
        namespace = people.split(".")[1]
        own_table("a int", "also")
        other = own_table("a int", "other")
        spark.sql(f"INSERT INTO {other} VALUES (1), (2)")
        code, out, err = rookery("analyze", f"{namespace}.*")
        assert (code, err) == (0, "")
        titles = [line for line in out.splitlines() if line.startswith("lake.")]
        assert titles[0].startswith(f"lake.{namespace}.also: the table is empty")
        assert titles[1:] == [f"lake.{namespace}.other", f"lake.{namespace}.people"]
        code, out, _ = rookery("analyze", f"lake.{namespace}.*e*", f"{namespace}.people", "--output", "json")
        assert code == 0
        reports = json.loads(out)
        assert [report["table"].rpartition(".")[2] for report in reports["tables"]] == ["other", "people"]
        assert reports["failed"] == []

    def test_one_of_several_fails(
        self, rookery: Rookery, spark: SparkSession, lake: Lake, people: str, own_table: NewTable
    ) -> None:
        bad = own_table("a int", "bad")
        spark.sql(f"INSERT INTO {bad} VALUES (1)")
        (file,) = lake.load(bad).inspect.files().to_pylist()
        Path(file["file_path"].removeprefix("file:")).unlink()
        namespace = people.split(".")[1]
        code, out, err = rookery("analyze", f"{namespace}.*", f"{namespace}.missing", "--output", "json")
        assert code == 1
        report = json.loads(out)
        assert [table["table"] for table in report["tables"]] == [people]
        assert [text.split(": ")[0] for text in report["failed"]] == [bad, f"lake.{namespace}.missing"]
        lines = err.splitlines()
        assert [line.startswith("error: lake.") for line in lines] == [True, True]
        assert f"there is no table lake.{namespace}.missing" in lines[1]
        assert lake.load(bad).metadata.statistics == []

    def test_what_a_column_is_called_is_shown_as_it_is(
        self, rookery: Rookery, spark: SparkSession, own_table: NewTable
    ) -> None:
        name = own_table("`[red]` string")
        spark.sql(f"INSERT INTO {name} VALUES ('[bold]x')")
        assert "\n[red]  " in rookery("analyze", name)[1]
        assert "  [bold]x  " in rookery("stats", name)[1]

    def test_unsupported_type(self, rookery: Rookery, spark: SparkSession, own_table: NewTable) -> None:
        name = own_table("id bigint, nothing void", format_version=3)
        spark.sql(f"INSERT INTO {name} SELECT 7, null")
        code, out, err = rookery("analyze", name)
        assert (code, err) == (0, "")
        assert out.splitlines()[-1] == "nothing: columns of type unknown are not analyzed"
        known = columns_of(rookery, "stats", name)
        assert (known["id"]["ndv"], known["nothing"]["ndv"]) == (1, None)
        code, out, _ = rookery("analyze", name, "--columns", "nothing")
        assert code == 0
        assert "nothing: columns of type unknown are not analyzed" in out


class TestStats:
    def test_report(self, rookery: Rookery, people: str) -> None:
        rookery("analyze", people)
        code, out, err = rookery("stats", people)
        assert (code, err) == (0, "")
        title, header, *rows = out.splitlines()
        assert title == f"{people}: 10 rows in 1 file, current"
        assert header.split() == [
            "column", "type", "ndv", "low", "high", "kind", "nulls", "min", "max", "size", "covered"
        ]  # fmt: skip
        name = rows[1].split()
        assert name[:9] == ["name", "string", "3", "3", "3", "exact", "0", "n0", "n2"]
        assert name[-1] == "100%"

    def test_never_analysed(self, rookery: Rookery, people: str) -> None:
        code, out, _ = rookery("stats", people)
        assert code == 0
        assert out.splitlines()[0] == f"{people}: 10 rows in 1 file, never analyzed"
        column = columns_of(rookery, "stats", people)["id"]
        assert (column["ndv"], column["snapshot_id"], column["coverage"]) == (None, None, 0.0)
        assert (column["nulls"], column["min"], column["max"]) == (0, 0, 9)  # metadata knows this much

    def test_freshness_and_coverage(self, rookery: Rookery, spark: SparkSession, people: str) -> None:
        rookery("analyze", people)
        append(spark, people, 10, 40)
        assert rookery("stats", people)[1].splitlines()[0].endswith(", 1 snapshot behind")
        column = columns_of(rookery, "stats", people)["id"]
        assert (column["coverage"], column["kind"]) == (0.25, "sketched")
        assert (column["ndv"], column["ndv_low"], column["ndv_high"]) == (10, 10, 40)
        assert column["max"] == 39
        append(spark, people, 40, 41)
        assert rookery("stats", people)[1].splitlines()[0].endswith(", 2 snapshots behind")
        rookery("analyze", people)
        assert rookery("stats", people)[1].splitlines()[0].endswith("41 rows in 3 files, current")
        assert columns_of(rookery, "stats", people)["id"]["coverage"] == 1.0

    def test_after_a_rollback(self, rookery: Rookery, spark: SparkSession, lake: Lake, people: str) -> None:
        first = lake.load(people).current_snapshot().snapshot_id
        append(spark, people, 10, 40)
        rookery("analyze", people)
        spark.sql(f"CALL lake.system.rollback_to_snapshot('{people.removeprefix('lake.')}', {first})")
        title = rookery("stats", people)[1].splitlines()[0]
        assert title.endswith(", of a snapshot that is no ancestor of this one")
        column = columns_of(rookery, "stats", people)["id"]
        assert (column["ndv"], column["coverage"]) == (10, 1.0)

    def test_a_table_made_anew_knows_nothing_of_the_old(
        self, rookery: Rookery, spark: SparkSession, people: str, own_table: NewTable
    ) -> None:
        rookery("analyze", people)
        spark.sql(f"DROP TABLE {people} PURGE")
        name = own_table("id bigint", "people")
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        assert name == people
        assert rookery("stats", people)[1].splitlines()[0].endswith(", never analyzed")
        assert columns_of(rookery, "analyze", people)["id"]["ndv"] == 1

    def test_human_values(self, rookery: Rookery, spark: SparkSession, own_table: NewTable) -> None:
        name = own_table("d date, t timestamp, n timestamp_ntz, m decimal(9, 2), b binary, u boolean")
        spark.sql(
            f"INSERT INTO {name} VALUES (date'2024-05-01', timestamp'2024-05-01 10:00:00', "
            "timestamp_ntz'2024-05-01 10:00:00.123456', 12.30, X'00ff', true), "
            "(date'1960-02-29', timestamp'1960-02-29 00:00:00', "
            "timestamp_ntz'1960-02-29 00:00:00.000001', -0.05, X'00', false)"
        )
        found = columns_of(rookery, "stats", name)
        assert {key: (column["min"], column["max"]) for key, column in found.items()} == {
            "d": ("1960-02-29", "2024-05-01"),
            "t": ("1960-02-29T00:00:00+00:00", "2024-05-01T10:00:00+00:00"),
            "n": ("1960-02-29T00:00:00.000001", "2024-05-01T10:00:00.123456"),
            "m": ("-0.05", "12.30"),
            "b": ("00", "00ff"),
            "u": (False, True),
        }
        assert "2024-05-01T10:00:00.123456  " in rookery("stats", name)[1]

    def test_no_jvm(self, people: str, rookery: Rookery) -> None:
        """A process of its own that has no Java to start and may not import pyspark."""
        rookery("analyze", people)
        code = (
            "import sys\n"
            "sys.modules['pyspark'] = None\n"  # an import now fails
            "from rookery.cli.app import run\n"
            f"assert run(['stats', {people!r}]) == 0\n"
            "assert not [name for name in sys.modules if name.startswith(('pyspark.', 'py4j'))]\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"},
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert f"{people}: 10 rows in 1 file, current" in ran.stdout

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            ([], 0, "nothing has changed, nothing was read"),
            (["--dry-run"], 0, "0 of 1 file would be read"),
            (["--dry-run", "--full"], 0, "1 of 1 file would be read"),
            (["--full"], 0, "of 1 file, 40 values"),
            (["--full", "--engine", "spark"], 2, "Spark needs Java"),
        ],
    )
    def test_a_jvm_is_started_when_spark_has_something_to_do(
        self, people: str, rookery: Rookery, words: list[str], code: int, said: str
    ) -> None:
        rookery("analyze", people)
        ran = subprocess.run(
            [sys.executable, "-m", "rookery", "analyze", people, *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"},
        )
        assert ran.returncode == code
        assert said in ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake, shared_table: NewTable) -> str:
    """Partitioned in many ways, then in others, with rows deleted from most files; analysed."""
    name = shared_table(
        "id bigint, cat string, word string, at timestamp",
        partitioned="cat, bucket(3, id), truncate(2, word), day(at)",
    )
    append_events(spark, name, 0, 60)
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD bucket(3, id)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD hours(at)")
    append_events(spark, name, 60, 80)
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    analyze(spark, name, lake=lake)
    return name


def append_events(spark: SparkSession, name: str, start: int, end: int) -> None:
    spark.range(start, end, 1, 1).selectExpr(
        "id",
        "if(id % 5 = 0, null, concat('c', id % 2)) AS cat",
        "concat(element_at(array('ab', 'cd'), cast(id % 2 + 1 AS int)), id % 9) AS word",
        "timestamp'2024-05-01 10:00:00' + make_interval(0, 0, 0, cast(id % 2 AS int)) AS at",
    ).writeTo(name).append()


class TestPartitions:
    @pytest.mark.parametrize(
        "partition, where",
        [
            ("cat=c0", "cat = 'c0'"),
            ("cat=null", "cat IS NULL"),
            ("word_trunc=ab", "word LIKE 'ab%'"),
            ("at_day=2024-05-02", "to_date(at) = '2024-05-02'"),
            ("cat=c1, at_day=2024-05-02", "cat = 'c1' AND to_date(at) = '2024-05-02'"),
            ("id_bucket=1", "id < 60 AND lake.system.bucket(3, id) = 1"),  # of the older spec only
            ("at_hour=2024-05-01-10", "id >= 60 AND at < '2024-05-01 11:00:00'"),  # of the newer one
            ("cat=nobody", "false"),
        ],
    )
    def test_distinct_values(
        self, rookery: Rookery, spark: SparkSession, events: str, partition: str, where: str
    ) -> None:
        found = columns_of(rookery, "stats", events, "--partition", partition)
        expected = distinct(spark, events, ["id", "cat", "word", "at"], where)
        assert {name: column["ndv"] or 0 for name, column in found.items()} == expected
        if where != "false":
            assert expected["id"] > 0
            assert {column["kind"] for column in found.values()} == {"exact"}
            assert {column["coverage"] for column in found.values()} == {1.0}

    def test_title(self, rookery: Rookery, events: str) -> None:
        title = rookery("stats", events, "--partition", "cat=c1")[1].splitlines()[0]
        assert title.startswith(f"{events} where cat=c1: ")

    @pytest.mark.parametrize(
        "partition, message, hint",
        [
            ("id=1", "is not partitioned by 'id'", "at_day, at_hour, cat, id_bucket, word_trunc"),
            ("cat", "'cat' does not name a partition", "field=value"),
            ("=x", "'=x' does not name a partition", "field=value"),
        ],
    )
    def test_bad_partition(
        self, rookery: Rookery, events: str, partition: str, message: str, hint: str
    ) -> None:
        code, out, err = rookery("stats", events, "--partition", partition)
        assert (code, out) == (2, "")
        error, advice = err.splitlines()
        assert message in error
        assert hint in advice


class TestBadInput:
    @pytest.mark.parametrize(
        "words, message, hint",
        [
            (["analyze", "{table}", "--columns", "nope"], "there is no column 'nope'", "id, name, at.city"),
            (["analyze", "{table}", "--exclude", "nope"], "there is no column 'nope'", "the columns are"),
            (["analyze", "{table}", "--columns", "id", "--exclude", "id"], "no column is left", "fewer"),
            (["analyze", "{table}", "--snapshot", "7"], "has no snapshot 7", "--snapshot"),
            (["analyze", "{table}", "--snapshot", "x"], "Invalid value for '--snapshot'", "--help"),
            (["analyze", "{table}", "--conf", "x"], "'x' is not key=value", "--conf"),
            (["analyze", "{table}x"], "there is no table {table}x", "did you mean"),
            (["analyze", "nowhere.t"], "there is no table lake.nowhere.t", "check the name"),
            (["analyze", "nowhere.*"], "no table of lake matches 'nowhere.*'", "'*'"),
            (["analyze", "orders"], "'orders' does not name a table", "namespace.table"),
            (["analyze"], "Missing argument", "rookery analyze --help"),
            (["stats", "{table}x"], "there is no table {table}x", "did you mean"),
            (["stats", "{table}", "--snapshot", "7"], "has no snapshot 7", "--snapshot"),
            (["stats", "{table}", "--catalog", "nope"], "there is no catalog 'nope'", ".pyiceberg.yaml"),
        ],
    )
    def test_one_line_and_a_hint(
        self, rookery: Rookery, untouched: str, words: list[str], message: str, hint: str
    ) -> None:
        code, out, err = rookery(*(word.format(table=untouched) for word in words))
        assert (code, out) == (2, "")
        error, advice = err.splitlines()
        assert error.startswith("error: ")
        assert message.format(table=untouched) in error
        assert advice.startswith("hint: ")
        assert hint in advice

    @pytest.mark.parametrize("command", ["analyze", "stats"])
    def test_view(self, rookery: Rookery, spark: SparkSession, untouched: str, command: str) -> None:
        view = f"{untouched}_seen"
        spark.sql(f"CREATE VIEW {view} AS SELECT id FROM {untouched}")
        try:
            code, out, err = rookery(command, view)
        finally:
            spark.sql(f"DROP VIEW {view}")
        assert (code, out) == (2, "")
        assert err.splitlines() == [f"error: {view} is a view", "hint: name the tables that it reads"]

    def test_empty_table(self, rookery: Rookery, lake: Lake, own_table: NewTable) -> None:
        name = own_table("a int")
        code, out, err = rookery("analyze", name)
        assert (code, err) == (0, "")
        assert out == f"{name}: the table is empty, there is nothing to analyze\n"
        assert rookery("stats", name)[1].splitlines()[0] == f"{name}: 0 rows in 0 files, never analyzed"
        assert not kept(lake, name).exists()

    @pytest.mark.parametrize("analysed_before", [False, True])
    def test_no_files_left(
        self, rookery: Rookery, spark: SparkSession, own_table: NewTable, analysed_before: bool
    ) -> None:
        name = own_table("a int")
        spark.sql(f"INSERT INTO {name} VALUES (1), (2)")
        if analysed_before:
            assert rookery("analyze", name)[0] == 0
        spark.sql(f"DELETE FROM {name}")
        code, _, err = rookery("analyze", name)
        assert (code, err) == (0, "")
        column = columns_of(rookery, "stats", name)["a"]
        assert (column["ndv"], column["kind"], column["min"], column["coverage"]) == (0, "exact", None, 1.0)

    def test_a_type_that_pyiceberg_does_not_know(
        self, rookery: Rookery, spark: SparkSession, own_table: NewTable
    ) -> None:
        name = own_table("id bigint, v variant", format_version=3)
        spark.sql(f"INSERT INTO {name} SELECT 7, parse_json('{{}}')")
        code, out, err = rookery("analyze", name)
        assert (code, err) == (0, "")
        assert "columns of type variant are not analyzed" in out

    @pytest.mark.parametrize("command", ["analyze", "stats"])
    def test_unreachable_catalog(
        self, rookery: Rookery, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TOKEN", "t0ken-s3cret")
        code, out, err = rookery(
            command, "db.t", "--catalog", "prod", "--uri", f"http://me:pw@127.0.0.1:{port}"
        )
        assert (code, out) == (2, "")
        error, hint = err.splitlines()
        assert error.startswith("error: catalog 'prod' cannot be opened: ")
        assert "s3cret" not in error
        assert "me:pw" not in error
        assert "nothing answers at its address" in hint
