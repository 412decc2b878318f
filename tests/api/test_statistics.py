"""`rookery.analyze` and `rookery.table(…).stats()`, called from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.analyze import AnalyzeReport
from rookery.api.lake import Lake
from rookery.api.statistics import StatsReport
from rookery.api.values import plain
from rookery.model import UsageError
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.usefixtures("shared_catalog")


@pytest.fixture
def letters(spark: SparkSession, own_table: NewTable) -> str:
    name = own_table("id bigint, `<b>letter</b>` string")
    spark.range(0, 20, 1, 1).selectExpr("id", "char(97 + id % 4) AS `<b>letter</b>`").writeTo(name).append()
    return name


def test_the_catalog_need_not_be_named(spark: SparkSession, letters: str) -> None:
    report = rookery.analyze(spark, letters)
    assert isinstance(report, AnalyzeReport)
    assert {column.name: column.ndv for column in report.columns} == {"id": 20, "<b>letter</b>": 4}
    stats = rookery.table(letters).stats()
    assert isinstance(stats, StatsReport)
    assert (stats.table, stats.rows, stats.files, stats.freshness) == (letters, 20, 1, "current")
    assert stats.columns == report.columns
    assert rookery.table(letters.removeprefix("lake.")).stats() == stats


def test_handles_show_the_table_as_it_is_now(spark: SparkSession, lake: Lake, letters: str) -> None:
    handle = rookery.table(letters, lake)
    assert handle.stats().freshness == "never analyzed"
    rookery.analyze(spark, letters, lake=lake)
    assert handle.stats().freshness == "current"
    spark.sql(f"DELETE FROM {letters} WHERE id < 10")
    assert handle.stats().freshness == "1 snapshot behind"
    assert handle.stats().columns[0].coverage == 0.0  # the one file has deletes now: it counts as changed
    assert rookery.analyze(spark, letters, lake=lake).columns[0].ndv == 10
    assert handle.stats().freshness == "current"


def test_html(spark: SparkSession, letters: str) -> None:
    for report in (rookery.analyze(spark, letters), rookery.table(letters).stats()):
        html = report._repr_html_()
        assert html.startswith(f"<p><b>{letters}")
        assert "<th>ndv</th>" in html
        assert '<td style="text-align:right">20</td>' in html
        assert "&lt;b&gt;letter&lt;/b&gt;" in html
        assert "<b>letter" not in html
    assert "nothing has changed" in rookery.analyze(spark, letters)._repr_html_()


def test_progress(spark: SparkSession, lake: Lake, letters: str) -> None:
    said: list[tuple[int, int, int, int]] = []
    rookery.analyze(spark, letters, progress=lambda *numbers: said.append(numbers))
    (file,) = lake.load(letters).inspect.files().to_pylist()
    size = file["file_size_in_bytes"]
    assert said == [(0, 1, 0, size), (1, 1, size, size)]


def test_unknown_names(spark: SparkSession, letters: str) -> None:
    with pytest.raises(UsageError, match=r"there is no table lake\.db\.nothing") as caught:
        rookery.analyze(spark, "db.nothing")
    assert caught.value.hint
    with pytest.raises(UsageError, match=r"there is no table lake\.db\.nothing"):
        rookery.table("db.nothing").stats()
    with pytest.raises(UsageError, match="no snapshot 5"):
        rookery.table(letters).stats(snapshot=5)


@pytest.mark.parametrize(
    "kind, value, expected",
    [
        ("date", -1, "1969-12-31"),
        ("time", 3_600_000_001, "01:00:00.000001"),
        ("timestamp", 0, "1970-01-01T00:00:00"),
        ("timestamptz", -1, "1969-12-31T23:59:59.999999+00:00"),
        ("timestamp_ns", 1_000_000_001, "1970-01-01T00:00:01.000000001"),
        ("timestamp_ns", 1_000_001_001, "1970-01-01T00:00:01.000001001"),
        ("timestamptz_ns", 1_000, "1970-01-01T00:00:00.000001+00:00"),
        ("date", 4_000_000, "+12921-08-18"),  # a year that Python has no word for
        ("long", 19844, 19844),
        ("binary", b"\x00\xff", "00ff"),
        ("string", None, None),
    ],
)
def test_plain_values(kind: str, value: object, expected: object) -> None:
    assert plain(kind, value) == expected
