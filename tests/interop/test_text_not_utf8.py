"""Bytes in a STRING column that are not UTF-8: Spark stores them, compares them and returns them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import rookery
from rookery.api.distributions import TopValue
from rookery.api.lake import Lake
from rookery.cli.app import run
from rookery.model.text import decodable
from tests.lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BAD = "CAST(X'ff61' AS STRING)"


@pytest.fixture(scope="module")
def name(spark: SparkSession, lake: Lake) -> Iterator[str]:
    """A table of eight files, one of which has such text, alone and within other types."""
    with tables(spark) as make:
        name = make("k int, s string, l array<string>, m map<string, string>, t struct<a: string>")
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ REPARTITION_BY_RANGE(8, k) */ k, s, array('x', s), map('x', s), "
            f"named_struct('a', s) FROM (SELECT id AS k, if(id = 3, {BAD}, 'w' || id) AS s FROM range(8))"
        )
        assert rookery.analyze(spark, name, lake=lake).rows_read == 0
        report = rookery.analyze(spark, name, lake=lake, histogram=["s"], top_k=["s"])
        assert (report.files_read, report.rows_read) == (0, 8)
        yield name


def test_statistics(lake: Lake, name: str) -> None:
    rows = next(column.rows for column in rookery.table(name, lake).stats().columns if column.name == "s")
    assert rows is not None
    assert rows.quantiles["1"] == "\\xffa"
    assert TopValue("\\xffa", 1, 1, 1) in rows.top


@pytest.mark.parametrize("output", ["text", "json"])
def test_rows_are_shown(name: str, capsys: pytest.CaptureFixture[str], output: str) -> None:
    assert run(["read", name, "k = 3", "--output", output]) == 0
    shown = capsys.readouterr().out
    if output == "json":
        bad = "\\xffa"
        assert json.loads(shown) == [{"k": 3, "s": bad, "l": ["x", bad], "m": [["x", bad]], "t": {"a": bad}}]
    else:
        assert shown.count("xffa") == 4


@pytest.mark.parametrize("where", ["s = 'w1'", "s > 'w7'", "s < 'x'", f"s = {BAD}", "s LIKE 'w%'"])
def test_rows_are_found(spark: SparkSession, lake: Lake, name: str, where: str) -> None:
    expected = sorted(row.k for row in spark.table(name).where(where).select("k").collect())
    table = rookery.table(name, lake)
    assert sorted(row.k for row in table.scan(spark, where).select("k").collect()) == expected
    if "CAST" not in where:
        assert sorted(table.read(where)["k"].to_pylist()) == expected


def test_as_the_key_of_a_join(spark: SparkSession, lake: Lake, name: str) -> None:
    text = f"SELECT a.k FROM {name} a JOIN {name} b ON a.s = b.s WHERE b.k IN (3, 4)"
    assert sorted(row.k for row in rookery.sql(spark, text, lake).collect()) == [3, 4]


def test_slices_of_nested_text() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(struct.pack("<4i", 0, 2, 4, 5)), pa.py_buffer(b"\xffaokz")]
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3], pa.int32()), text)
    with_null = pa.concat_arrays([lists, pa.array([None], lists.type), lists])
    expected = [["\\xffa"], ["ok", "z"], [], None, ["\\xffa"], ["ok", "z"], []]
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), text, text)
    for start in range(3):
        assert decodable(with_null[start:]).to_pylist() == expected[start:]
    assert decodable(maps[:1]).to_pylist() == [[("\\xffa", "\\xffa")]]
    assert decodable(pa.StructArray.from_arrays([text], ["a"])[:2]).to_pylist() == [
        {"a": "\\xffa"},
        {"a": "ok"},
    ]
