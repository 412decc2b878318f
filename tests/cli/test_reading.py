"""`rookery index`, `explain`, `read`, `count`, `estimate`: what they print, return and refuse."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rookery as product
from rookery.api.lake import Lake
from tests.cli.conftest import Rookery
from tests.lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGES = [
    "catalog resolution", "manifest list scan", "partitions", "manifest file scan", "inverted theta",
    "bitmap", "bloom filter check", "row group pruning", "page pruning",
]  # fmt: skip
FIGURES = {"name", "files_in", "files_out", "bytes_in", "bytes_out", "index_bytes", "ms", "note"}


pytestmark = pytest.mark.usefixtures("shared_catalog")


@pytest.fixture(scope="module")
def name(spark: SparkSession, lake: Lake) -> Iterator[str]:
    """Eight files that are sorted by nothing; a Bloom index on `k`, a bitmap index on `s`."""
    with tables(spark) as make:
        name = make("k string, s string, v int, a array<int>", "kv")
        spark.range(0, 800, 1, 1).selectExpr(
            "md5(CAST(id AS string)) k", "concat('s', id % 4) s", "CAST(id AS int) v", "array(1) a"
        ).repartition(8).writeTo(name).append()
        table = product.table(name, lake)
        table.add_index("bloom", "k")
        table.add_index("bitmap", "s")
        product.analyze(spark, name, lake=lake)
        yield name


def key_of(spark: SparkSession, number: int) -> str:
    row = spark.sql(f"SELECT md5('{number}')").first()
    assert row is not None
    return str(row[0])


def test_the_funnel(rookery: Rookery, spark: SparkSession, name: str) -> None:
    where = f"k = '{key_of(spark, 5)}'"
    code, out, _ = rookery("explain", name, where, "--output", "json")
    found = json.loads(out)
    assert code == 0
    assert [stage["name"] for stage in found["stages"]] == STAGES
    assert all(stage.keys() >= FIGURES for stage in found["stages"])
    for before, after in zip(found["stages"], found["stages"][1:], strict=False):
        assert after["files_in"] == before["files_out"]
    assert found["stages"][0]["files_in"] == 8
    assert len(found["files"]) == found["stages"][-1]["files_out"] <= 2
    assert found["files"][0]["path"].endswith(".parquet")
    code, out, _ = rookery("explain", name, where)
    assert code == 0
    assert [line.split("  ")[0] for line in out.splitlines()[2:-1]] == STAGES
    assert "no bitmap index on these columns" in out


def test_what_is_not_understood_is_said(rookery: Rookery, name: str) -> None:
    code, out, _ = rookery("explain", name, "v = length(k)")
    assert code == 0
    assert "not understood, treated as true: v = LENGTH(k)" in out


def test_read(rookery: Rookery, spark: SparkSession, name: str) -> None:
    where = f"k IN ('{key_of(spark, 5)}', '{key_of(spark, 99)}', 'no')"
    code, out, _ = rookery("read", name, where, "--columns", "v,s", "--output", "json")
    assert (code, sorted(row["v"] for row in json.loads(out))) == (0, [5, 99])
    code, out, _ = rookery("read", name, "v < 3", "--columns", "v")
    assert sorted(out.split()) == ["0", "1", "2", "v"]
    assert len(json.loads(rookery("read", name, "--limit", "7", "--output", "json")[1])) == 7
    assert json.loads(rookery("read", name, "v < 0", "--output", "json")[1]) == []


@pytest.mark.parametrize("output", ["arrow", "parquet"])
def test_read_for_programs(name: str, output: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    from rookery.cli.app import run

    assert run(["read", name, "s = 's1'", "--output", output]) == 0
    data = capfdbinary.readouterr().out
    rows = pq.read_table(io.BytesIO(data)) if output == "parquet" else pa.ipc.open_stream(data).read_all()
    assert sorted(rows["v"].to_pylist()) == list(range(1, 800, 4))


def test_rows_are_no_metrics(rookery: Rookery, name: str) -> None:
    code, out, err = rookery("read", name, "--output", "prometheus")
    assert (code, out) == (2, "")
    assert "this cannot be printed as prometheus" in err


def test_count(rookery: Rookery, name: str) -> None:
    assert rookery("count", name, "s = 's1' OR s = 's2'")[:2] == (0, "400\n")
    assert json.loads(rookery("count", name, "--output", "json")[1])["count"] == 800


def test_index_list(rookery: Rookery, name: str) -> None:
    code, out, _ = rookery("index", "list", name, "--output", "json")
    assert code == 0
    assert [(each["kind"], each["column"], each["files_covered"]) for each in json.loads(out)["indexes"]] == [
        ("bloom", "k", 8),
        ("bitmap", "s", 8),
    ]


@pytest.mark.parametrize(
    "words, message, hint",
    [
        (["explain", "{t}", "kk = 1"], "no column 'kk' at column 1", "did you mean k?"),
        (["read", "{t}", "v = 'abc'"], "'abc'", ""),
        (["read", "{t}", "k = 5"], "", ""),
        (["read", "{t}", "v ="], "at line 1, column", ""),
        (["read", "{t}", "v = 1; v = 2"], "several statements", "AND"),
        (["explain", "{t}", "a = 1"], "a", ""),
        (["read", "{t}", "v = length(k)"], "cannot be decided on rows", "scan"),
        (["read", "{t}", "v = 1", "--columns", "nope"], "there is no column 'nope'", "the columns are"),
        (["read", "{t}", "v = 1", "--snapshot", "7"], "has no snapshot 7", "expired"),
        (["read", "{t}", "v = 1", "--limit", "-1"], "limit", ""),
        (["count", "{t}", ""], "empty", ""),
        (["explain", "db.nowhere", "v = 1"], "there is no table", "check the name"),
        (["explain", "{t}", "v = 1", "--output", "arrow"], "cannot be printed as arrow", "rookery read"),
        (["index", "add", "{t}", "btree", "k"], "there is no index 'btree'", "bitmap, bloom"),
        (["index", "add", "{t}", "bloom", "nope"], "there is no column 'nope'", "the columns are"),
        (["index", "add", "{t}", "bloom", "a.element"], "cannot be indexed", "one value per row"),
        (["index", "add", "{t}", "bloom", "k", "--fpp", "2"], "rate of 2", "between 0"),
        (["index", "add", "{t}", "bitmap", "s", "--fpp", "0.1"], "rate of 0.1", "a bitmap index has none"),
        (["index", "drop", "{t}", "bloom", "v"], "no bloom index on 'v'", "index list"),
    ],
)
def test_refused(rookery: Rookery, name: str, words: list[str], message: str, hint: str) -> None:
    code, out, err = rookery(*(word.format(t=name) for word in words))
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert len(lines) == 2
    assert lines[1].startswith("hint: ")
    assert hint in lines[1]


class TestEstimate:
    def test_each_condition_has_its_source(self, rookery: Rookery, name: str) -> None:
        code, out, _ = rookery("estimate", name, "s = 's1' AND v < 400", "--output", "json")
        found = json.loads(out)
        assert code == 0
        assert found["rows"]["low"] <= 100 <= found["rows"]["high"] <= 200
        assert {line["source"] for line in found["conditions"]} == {"bitmap index", "bounds"}
        code, out, _ = rookery("estimate", name, "s = 's1'")
        assert code == 0
        assert out.splitlines()[2].split()[:5] == ["rows", "200", "200", "200", "exact"]
        assert "bitmap index" in out

    def test_groups(self, rookery: Rookery, name: str) -> None:
        code, out, _ = rookery("estimate", name, "--group-by", "s,v", "--output", "json")
        found = json.loads(out)
        assert (code, found["group_by"]) == (0, ["s", "v"])
        assert found["rows"] == {"value": 800, "low": 800, "high": 800, "kind": "exact"}
        assert found["groups"]["value"] == 800

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("v = ",), "error:"),
            (("nothing = 1",), "nothing"),
            (("v = 1", "--group-by", "nothing"), "nothing"),
            (("v = 1", "--group-by", "s,s"), "a column is named twice"),
            (("v = 1", "--snapshot", "5"), "has no snapshot 5"),
        ],
    )
    def test_bad_input(self, rookery: Rookery, name: str, words: tuple[str, ...], message: str) -> None:
        code, out, err = rookery("estimate", name, *words)
        assert (code, out) == (2, "")
        assert message in err
        assert "hint:" in err

    def test_a_plan(self, rookery: Rookery, name: str) -> None:
        words = ("--sql", f"SELECT * FROM {name} WHERE v < 80", "--actual", "--output", "json")
        code, out, _ = rookery("estimate", *words)
        nodes = json.loads(out)["nodes"]
        assert (code, nodes[0]["name"], nodes[0]["rows"]) == (0, "Filter", 80)
        assert nodes[0]["attached"] == pytest.approx(80, abs=2)
        code, out, _ = rookery("estimate", "--sql", f"SELECT * FROM {name}")
        assert (code, out.split()[:3]) == (0, ["node", "alone", "attached"])

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "a table is missing"),
            (("{t}", "--actual"), "--actual belongs to --sql"),
            (("{t}", "--sql", "SELECT 1"), "--sql takes a whole query"),
            (("--sql", "DROP TABLE {t}"), "not a query"),
        ],
    )
    def test_words_that_do_not_fit(
        self, rookery: Rookery, name: str, words: tuple[str, ...], message: str
    ) -> None:
        code, out, err = rookery("estimate", *(word.format(t=name) for word in words))
        assert (code, out) == (2, "")
        assert message in err
        assert "hint:" in err
