"""Numbers that `stats` shows and registers, held against what Spark counts over all rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.api.statistics import ColumnStats
from rookery.puffin import THETA_V1
from tests.interop.analysis import blobs_of, statistics_path
from tests.interop.exact_numbers import (
    contradictions,
    exact_numbers,
    registered_ndvs,
    row_contradictions,
)
from tests.interop.java import IcebergJava
from tests.lakehouse import NewTable, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    with tables(spark) as make:
        yield make


def column_of(name: str, lake: Lake, column: str, **options: Any) -> ColumnStats:
    (found,) = [each for each in rookery.table(name, lake).stats(**options).columns if each.name == column]
    return found


# -- random histories

COLUMNS = {
    "id": "bigint",
    "i": "int",
    "f": "double",
    "t": "string",
    "b": "binary",
    "d": "decimal(9, 2)",
    "day": "date",
    "ts": "timestamp",
}
VALUES = {
    "id": "id + {start}",
    "i": "IF(id % 5 = 0, NULL, CAST((id * 7919) % 41 - {start} AS int))",
    "f": "elt(id % 5 + 1, '0.0', '-0.0', 'NaN', string({start} / 7D), '-1e300')",
    "t": "elt(id % 4 + 1, '', 'short', concat('a long text that is cut off ', id), NULL)",
    "b": "elt(id % 2 + 1, '', concat('some bytes at length ', {start}))",
    "d": "CAST((id - 20) * 1.25 - {start} AS decimal(9, 2))",
    "day": "date_add(DATE '1969-06-01', CAST(id * 11 + {start} AS int))",
    "ts": "TIMESTAMP '2020-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, 0, 0, id * 0.000123)",
    "late": "concat('late ', id % 3)",
    "defaulted": "CAST(id % 4 AS int)",
}
MODES = ("none", "counts", "truncate(4)", "truncate(16)", "full")
ICEBERG = {"bigint": "long", "timestamp": "timestamptz"}


class History:
    """A table that random things happen to."""

    def __init__(
        self, spark: SparkSession, lake: Lake, name: str, seed: int, folder: Path, layouts: list[str]
    ) -> None:
        self.spark, self.lake, self.name, self.folder, self.layouts = spark, lake, name, folder, layouts
        self.random = random.Random(seed)
        self.columns = dict(COLUMNS)
        self.start = 0
        self.told: list[str] = []

    def select(self, columns: list[str]) -> str:
        """A query for some rows."""
        self.start += 100
        values = ", ".join(
            f"CAST({VALUES[each].format(start=self.start)} AS {self.columns.get(each, 'string')}) AS {each}"
            for each in columns
        )
        return f"SELECT /*+ COALESCE(1) */ {values} FROM range({self.random.randint(1, 60)})"

    def append(self) -> None:
        kind = self.random.choice(["parquet", "parquet", *self.layouts])
        said = (
            f"'write.metadata.metrics.default'='{self.random.choice(MODES)}', 'write.format.default'='{kind}'"
        )
        self.spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({said})")
        self.spark.sql(
            f"INSERT INTO {self.name} ({', '.join(self.columns)}) {self.select(list(self.columns))}"
        )

    def import_files(self) -> None:
        """Files without field ids, that may hold columns which the table has not, or will have later."""
        folder = self.folder / f"import{self.start}"
        chosen = [*COLUMNS, "late"]
        if self.random.random() < 0.5:
            chosen.remove(self.random.choice(["f", "t", "d", "late"]))
        self.spark.sql(self.select(chosen)).write.parquet(str(folder))
        self.spark.sql(
            f"CALL lake.system.add_files(table => '{self.name}', source_table => '`parquet`.`{folder}`')"
        )

    def delete(self) -> None:
        self.spark.sql(f"DELETE FROM {self.name} WHERE id % 7 = {self.random.randint(0, 6)}")

    def overwrite(self) -> None:
        self.spark.sql(f"DELETE FROM {self.name}")
        self.append()

    def add_column(self) -> None:
        if "late" not in self.columns:
            self.spark.sql(f"ALTER TABLE {self.name} ADD COLUMN late string")
            self.columns["late"] = "string"

    def add_default(self) -> None:
        if "defaulted" not in self.columns:
            IcebergJava(self.spark).add_column_with_default(self.name, "defaulted", 42)
            self.columns["defaulted"] = "int"

    def promote(self) -> None:
        self.spark.sql(f"ALTER TABLE {self.name} ALTER COLUMN i TYPE bigint")
        self.columns["i"] = "bigint"

    def compact(self) -> None:
        self.spark.sql(f"CALL lake.system.rewrite_data_files(table => '{self.name}')")

    def analyze(self) -> None:
        known = [each for each in ("late", "defaulted") if each in self.columns]
        groups = [["i", "t"], *(["i", each] for each in known)]
        histogram = ["i", "f", "d", "t", *known]
        top = ["i", "t", *known]
        rookery.analyze(
            self.spark, self.name, lake=self.lake, histogram=histogram, top_k=top, column_sets=groups
        )
        stats = rookery.table(self.name, self.lake).stats()
        found = list(row_contradictions(self.spark, self.name, self.lake, histogram, top))
        stated = registered_ndvs(self.name, self.lake)
        for column in stats.columns:
            assert column.ndv is not None, self.said(column.name)
            if stated.get(column.field_id, 0) != column.ndv and column.field_id > 0:
                found.append(f"{column.name}: {stated.get(column.field_id)} is registered, not {column.ndv}")
        counts = ", ".join(f"count(DISTINCT {first}, {second})" for first, second in groups)
        counted = self.spark.sql(f"SELECT {counts} FROM {self.name}").collect()[0]
        for (first, second), exact in zip(groups, counted, strict=True):
            (group,) = [each for each in stats.columns if set(each.name.split(" + ")) == {first, second}]
            if group.ndv != exact:
                found.append(f"{group.name}: {group.ndv} is not {exact}")
        assert not found, self.said(*found)

    def check(self) -> None:
        """No number of the report is wrong, whether the table was analysed of late or not."""
        kinds = {column: ICEBERG.get(kind, kind) for column, kind in self.columns.items()}
        exact = exact_numbers(self.spark, self.name, kinds)
        found = list(contradictions(rookery.table(self.name, self.lake).stats(), exact))
        assert not found, self.said(*found)

    def said(self, *found: str) -> str:
        return "\n".join([", ".join(self.told), *found])

    def live(self, steps: list[str]) -> None:
        for step in steps:
            self.told.append(step)
            getattr(self, step)()
            self.check()


STEPS = ["append"] * 2 + ["import_files"] * 2 + ["delete", "add_column", "promote", "overwrite", "compact"]
STEPS += ["analyze"] * 2


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
def test_no_number_is_wrong_whatever_has_happened(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path, seed: int
) -> None:
    version = 2 + seed % 2
    name = new_table(
        ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items()), format_version=version
    )
    layouts = ["avro", "orc"] if version == 2 else ["avro"]  # Iceberg reads no defaults from ORC
    history = History(spark, lake, name, seed, tmp_path, layouts)
    steps = [*STEPS, *(["add_default"] if version == 3 else [])]
    history.random.shuffle(steps)
    history.live(["append", *steps, "analyze"])


# -- least and greatest


@pytest.mark.parametrize("mode", ["none", "counts", "avro"])
def test_a_file_without_bounds_leaves_the_ends_unknown(
    spark: SparkSession, lake: Lake, new_table: NewTable, mode: str
) -> None:
    name = new_table("x int, only_null int")
    spark.sql(f"INSERT INTO {name} SELECT id, NULL FROM range(1, 3, 1, 1)")
    said = "'write.format.default'='avro'" if mode == "avro" else f"'write.metadata.metrics.default'='{mode}'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({said})")
    spark.sql(f"INSERT INTO {name} SELECT id * 500, NULL FROM range(-1, 2, 1, 1)")
    for analysed in (False, True):
        if analysed:
            rookery.analyze(spark, name, lake=lake)
        column = column_of(name, lake, "x")
        assert (column.min, column.max, column.min_exact, column.max_exact) == (None, None, None, None)
        assert column.unknown["min"] == column.unknown["max"] == "1 of 2 files without bounds"
        assert column.nulls == (0 if mode == "counts" else None)
        (sheet, *_) = rookery.table(name, lake).stats().sheets()
        assert any("min, max of x" in note for note in sheet.notes)
    if mode == "counts":  # nulls need no bounds
        assert column_of(name, lake, "only_null").unknown == {}


@pytest.mark.parametrize("length", [1, 4, 16])
def test_cut_off_texts_are_marked(spark: SparkSession, lake: Lake, new_table: NewTable, length: int) -> None:
    """Though the table's mode is another by now, and though bounds are short."""
    name = new_table("t string, b binary, short string")
    mode = f"'write.metadata.metrics.default'='truncate({length})'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({mode})")
    spark.sql(
        f"INSERT INTO {name} SELECT concat('2014-01-01T04:00:1', id), "
        "CAST(concat('2014-01-01T04:00:1', id) AS binary), 'q' FROM range(0, 9, 1, 1)"
    )
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.metadata.metrics.default'='full')")
    for analysed in (False, True):
        if analysed:
            rookery.analyze(spark, name, lake=lake)
        for column in ("t", "b"):
            found = column_of(name, lake, column)
            assert (found.min_exact, found.max_exact) == (False, False)
        (sheet, *_) = rookery.table(name, lake).stats().sheets()
        assert [row[7][:2] + row[8][:2] for row in sheet.rows[:2]] == ["≥ ≤ "] * 2
        short = column_of(name, lake, "short")
        assert (short.min, short.min_exact, short.max_exact) == ("q", True, True)


def test_what_the_sketch_holds_is_exact(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Bounds that were not cut off, and those of files with deletes, where a live row still has the value."""
    name = new_table("x int, t string, p int", partitioned="p")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('text ', 10 + id), id % 2 FROM range(0, 20, 1, 1)")
    before = column_of(name, lake, "t")
    assert (before.min, before.min_exact, before.max_exact) == ("text 10", False, False)
    rookery.analyze(spark, name, lake=lake)
    after = column_of(name, lake, "t")
    assert (after.min, after.min_exact, after.max, after.max_exact) == ("text 10", True, "text 29", True)
    spark.sql(f"DELETE FROM {name} WHERE x IN (0, 10)")
    for column in ("x", "t"):
        assert column_of(name, lake, column).min_exact is False  # it may be gone
        even = column_of(name, lake, column, partition="p=0")
        assert (even.min_exact, even.max_exact) == (False, False)
        odd = column_of(name, lake, column, partition="p=1")
        assert (odd.min_exact, odd.max_exact) == (True, True)
    rookery.analyze(spark, name, lake=lake)
    for column, least, greatest in (("x", 0, 19), ("t", "text 10", "text 29")):
        found = column_of(name, lake, column)
        assert (found.min, found.min_exact) == (least, False)  # it is gone
        assert (found.max, found.max_exact) == (greatest, True)


def test_nulls_among_deleted_rows_are_not_counted(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("x int, y int")
    spark.sql(f"INSERT INTO {name} SELECT id, IF(id % 2 = 0, NULL, id) FROM range(0, 10, 1, 1)")
    assert column_of(name, lake, "y").nulls == 5
    spark.sql(f"DELETE FROM {name} WHERE x = 2")
    assert column_of(name, lake, "x").nulls == 0
    assert column_of(name, lake, "y").unknown["nulls"] == "1 of 1 file with deleted rows"


# -- columns that files lack, or have under a name


def imported(spark: SparkSession, name: str, folder: Path, query: str) -> None:
    spark.sql(query).coalesce(1).write.parquet(str(folder))
    spark.sql(f"CALL lake.system.add_files(table => '{name}', source_table => '`parquet`.`{folder}`')")


def test_rows_of_imported_files_count(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path
) -> None:
    name = new_table("x int")
    spark.sql(f"INSERT INTO {name} SELECT 1000 FROM range(10)")
    imported(spark, name, tmp_path / "a", "SELECT CAST(7 AS int) AS x FROM range(901)")
    rookery.analyze(spark, name, lake=lake, histogram=["x"], top_k=["x"])
    spread = column_of(name, lake, "x").rows
    assert spread is not None
    assert [(item.value, item.count) for item in spread.top] == [("7", 901), ("1000", 10)]
    assert (spread.rows, spread.quantiles["0"], spread.quantiles["0.5"]) == (911, 7, 7)


def test_a_column_added_after_an_import_is_found_by_its_name(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path
) -> None:
    name = new_table("x int")
    imported(spark, name, tmp_path / "a", "SELECT CAST(id AS int) AS x, id % 5 AS y FROM range(20)")
    rookery.analyze(spark, name, lake=lake)
    spark.sql(f"ALTER TABLE {name} ADD COLUMN y bigint")
    before = column_of(name, lake, "y")
    assert (before.ndv, before.coverage) == (None, 0.0)
    rookery.analyze(spark, name, lake=lake)
    after = column_of(name, lake, "y")
    assert (after.ndv, after.coverage) == (5, 1.0)


def test_a_column_group_with_a_default(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("x int", format_version=3)
    spark.sql(f"INSERT INTO {name} SELECT id FROM range(0, 10, 1, 1)")
    IcebergJava(spark).add_column_with_default(name, "y", 42)
    spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(0, 10, 1, 1)")
    rookery.analyze(spark, name, lake=lake, column_sets=[["x", "y"]], histogram=["y"], top_k=["y"])
    assert column_of(name, lake, "x + y").ndv == 20
    spread = column_of(name, lake, "y").rows
    assert spread is not None
    assert [(item.value, item.count) for item in spread.top] == [("1", 10), ("42", 10)]
    assert (spread.quantiles["0"], spread.quantiles["1"]) == (1, 42)


def test_the_ends_of_a_histogram_are_the_ends(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Far out values that no sketch would retain, and numbers that a double cannot hold; merged too."""
    name = new_table("x bigint")
    for start in (0, 50_000):
        spark.range(start, start + 50_000, 1, 1).selectExpr(
            "IF(id % 50000 = 0, 9223372036854000123 + id, id % 400) AS x"
        ).writeTo(name).append()
        spark.sql(f"INSERT INTO {name} VALUES ({-43 - start})")
        rookery.analyze(spark, name, lake=lake, histogram=["x"])
        spread = column_of(name, lake, "x").rows
        assert spread is not None
        assert (spread.quantiles["0"], spread.quantiles["1"]) == (-43 - start, 9223372036854000123 + start)
        assert sum(spread.histogram) == pytest.approx(1.0)


# -- distinct values


CHANGES: dict[str, Callable[[SparkSession, str], Any]] = {
    "compaction": lambda spark, name: spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    ),
    "a delete": lambda spark, name: spark.sql(f"DELETE FROM {name} WHERE x = 3"),
    "an overwrite": lambda spark, name: spark.sql(f"INSERT OVERWRITE {name} SELECT x + 1, t FROM {name}"),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_the_last_known_number_is_shown_when_every_file_has_changed(
    spark: SparkSession, lake: Lake, new_table: NewTable, change: str
) -> None:
    name = new_table("x int, t string")
    spark.sql(f"INSERT INTO {name} SELECT id, IF(id < 30, NULL, '') FROM range(0, 40, 1, 1)")
    rookery.analyze(spark, name, lake=lake)
    CHANGES[change](spark, name)
    x, t = (column_of(name, lake, column) for column in "xt")
    assert (x.ndv, x.kind, x.coverage) == (40, "stale", 0.0)
    assert (x.ndv_low, x.ndv_high) == (0, 40)
    assert t.ndv is None
    rookery.analyze(spark, name, lake=lake)
    assert column_of(name, lake, "x").kind == "exact"


def test_not_more_distinct_values_than_values(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Of many columns of different values, half of the estimates are too high."""
    names = [f"c{number}" for number in range(12)]
    name = new_table(", ".join(f"{column} bigint" for column in names) + ", listed array<bigint>")
    values = [f"IF(id % {2 + number} = 0, NULL, id * 8 + {number})" for number in range(12)]
    spark.range(0, 20_000, 1, 2).selectExpr(
        *(f"{value} AS {column}" for value, column in zip(values, names, strict=True)),
        "array(id, -id) AS listed",
    ).writeTo(name).append()
    report = rookery.analyze(spark, name, lake=lake)
    stated = registered_ndvs(name, lake)
    counts = spark.sql(f"SELECT {', '.join(f'count({column})' for column in names)} FROM {name}").first()
    assert counts is not None
    for column, count in zip(report.columns, counts, strict=False):
        assert column.ndv == stated[column.field_id]
        assert column.ndv <= count
        assert column.ndv_high is not None
        assert column.ndv <= column.ndv_high <= count
    assert any(column.ndv == count for column, count in zip(report.columns, counts, strict=False))
    assert report.columns[-1].ndv == stated[report.columns[-1].field_id] > 20_000  # two values a row
    assert not rookery.analyze(spark, name, lake=lake).committed


def test_no_number_is_registered_that_is_0(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Engines conclude from it that no row matches, but sketches pass over the empty text."""
    name = new_table("x int, empty string, bytes binary, nothing int")
    spark.sql(f"INSERT INTO {name} SELECT id, '', X'', NULL FROM range(0, 10, 1, 1)")
    rookery.analyze(spark, name, lake=lake)
    assert registered_ndvs(name, lake) == {1: 10}
    assert [blob.fields for blob in blobs_of(statistics_path(name, lake)) if blob.type == THETA_V1] == [(1,)]
    assert not rookery.analyze(spark, name, lake=lake).committed
    (status,) = rookery.table(name, lake).status().tables
    assert [
        (visibility.columns, visibility.of, visibility.current) for visibility in status.engine_visibility
    ] == [(1, 1, True)] * 2
    assert status.breaches == ()


def test_nothing_is_registered_of_nothing(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("t string")
    spark.sql(f"INSERT INTO {name} SELECT '' FROM range(0, 10, 1, 1)")
    assert not rookery.analyze(spark, name, lake=lake).committed
    assert lake.load(name).metadata.statistics == []
    (status,) = rookery.table(name, lake).status().tables
    assert status.breaches == ()
    spark.sql(f"CALL lake.system.compute_table_stats(table => '{name}')")
    assert registered_ndvs(name, lake) == {1: 0}
    assert rookery.analyze(spark, name, lake=lake).committed
    assert registered_ndvs(name, lake) == {}
    assert not rookery.analyze(spark, name, lake=lake).committed
