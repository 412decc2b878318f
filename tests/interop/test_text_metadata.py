"""Bytes that are not UTF-8 in the metadata of Iceberg, where U+FFFD stands for them: no row is lost by it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import NewTable, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = b"x" * 15
VALID = [
    text.encode()
    for text in ("", "a", "plain", "zzz", "café", "caf\u9fff", "caf\ufffd", "caf\ufffdx", "\ufffd", "\ufffe")
]
VALID += [text.encode() for text in ("\U0001f600", "\U0001f600\ufffd", r"\xff", "é", "\uffff")]
VALID += [LONG, LONG + "\ufffdy".encode(), LONG + "\U0001f600z".encode(), LONG + b"xx"]
BAD = [b"\xff", b"\xffa", b"\xfe", b"\x80", b"\xc0\x80", b"caf\xe9", b"caf\xe9x", b"\xe9", b"\xe2\x82"]
BAD += [
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
    b"a\xed\xbfb",
    LONG + b"\xfftail",
    LONG + b"x\xff",
    LONG * 2 + b"\xff",
]
ONE_ROW = "write.parquet.row-group-check-m{}-record-count"
SMALL_GROUPS = {"write.parquet.row-group-size-bytes": 1, ONE_ROW.format("in"): 1, ONE_ROW.format("ax"): 1}
PARTITIONS = ("", "s", "truncate(4, s)", "bucket(4, s)")


@pytest.fixture(scope="module")
def make(spark: SparkSession) -> Iterator[NewTable]:
    with tables(spark) as make:
        yield make


def insert(spark: SparkSession, name: str, values: list[bytes], files: int) -> None:
    """Write the values, numbered, to so many files, or to more where there are partitions."""
    rows = ", ".join(f"({place}, CAST(X'{value.hex()}' AS STRING))" for place, value in enumerate(values))
    spark.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION({files}, id) */ * FROM VALUES {rows} AS v(id, s)")


def table_of(spark: SparkSession, make: NewTable, by: str, values: list[bytes], *, files: int) -> str:
    more = {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}
    name = make("id int, s string", partitioned=by, **SMALL_GROUPS, **more)
    insert(spark, name, values, files)
    return name


def predicates(rng: random.Random, count: int) -> list[str]:
    return [predicate(rng) for _ in range(count)]


def predicate(rng: random.Random) -> str:
    texts = [value.decode() for value in VALID] + [
        "caf\u9ffe",
        "\U0001f601",
        LONG.decode() + "\ufffe",
        "caf",
        "b",
    ]
    one, two, three = (f"'{text}'".replace("\\", "\\\\") for text in rng.sample(texts, 3))
    part = rng.choice(("caf", "\ufffd", "x", "a", "\U0001f600", "é", "\ufffdx", LONG.decode()))
    return rng.choice(
        (
            f"s {rng.choice(('=', '!=', '<', '<=', '>', '>=', '<=>'))} {one}",
            f"s {rng.choice(('<', '>', '!='))} {one}",
            f"NOT s {rng.choice(('<', '>', '='))} {one}",
            f"s BETWEEN {one} AND {two}",
            f"s {rng.choice(('IN', 'NOT IN'))} ({one}, {two}, {three})",
            f"s {rng.choice(('LIKE', 'NOT LIKE'))} '{part}%'",
            f"s LIKE '%{part}%'",
            f"s LIKE '{part}{rng.choice(('_', '_%', '%_', '%%'))}'",
            f"s {rng.choice(('LIKE', 'NOT LIKE'))} '{rng.choice(('_', '_%a', '%_a%', '___', '%%'))}'",
            f"s > {one} OR s = {two}",
            f"s IS NOT NULL AND s <= {one}",
        )
    )


def truths(spark: SparkSession, name: str, wanted: list[str]) -> list[list[int]]:
    """The rows that match, by Spark, with nothing pushed down to Iceberg."""
    spark.table(name).localCheckpoint().createOrReplaceTempView("as_read")
    found = spark.sql(f"SELECT id, {', '.join(f'({text})' for text in wanted)} FROM as_read").collect()
    return [sorted(row[0] for row in found if row[place]) for place in range(1, len(wanted) + 1)]


def check(
    spark: SparkSession, lake: Lake, name: str, wanted: list[str], true: list[list[int]], by_spark: int
) -> None:
    """Compare each way to read with the truth; Iceberg itself may lose rows, so what it has is the least."""
    table = rookery.table(name, lake)
    for place, (where, truth) in enumerate(zip(wanted, true, strict=True)):
        assert sorted(table.read(where, columns=["id"])["id"].to_pylist()) == truth, where
        assert table.count(where) == len(truth), where
        if place < by_spark:
            frames = (
                spark.read.format("rookery").option("table", name).option("where", where).load(),
                spark.table(name).where(where),
                table.scan(spark, where),
            )
            source, least, scanned = ids_of(frames)
            assert source == truth, where
            by_sql = rookery.sql(spark, f"SELECT id FROM {name} WHERE {where}", lake).collect()
            for found in (scanned, [row.id for row in by_sql]):
                assert set(least) <= set(found) <= set(truth), where


def ids_of(frames: Sequence[DataFrame]) -> list[list[int]]:
    """The column id of each of the frames, which one job reads."""
    numbered = [frame.selectExpr(f"{place} AS way", "id") for place, frame in enumerate(frames)]
    rows = reduce(DataFrame.union, numbered).collect()
    return [sorted(row.id for row in rows if row.way == place) for place in range(len(frames))]


@pytest.mark.parametrize("by", PARTITIONS)
@pytest.mark.parametrize("seed", range(2))
def test_random_text(spark: SparkSession, lake: Lake, make: NewTable, by: str, seed: int) -> None:
    rng = random.Random(f"{by} {seed}")
    name = table_of(spark, make, by, [rng.choice(VALID + BAD * 2) for _ in range(48)], files=16)
    wanted = predicates(rng, 60)
    true = truths(spark, name, wanted)
    check(spark, lake, name, wanted, true, 3)
    table = rookery.table(name, lake)
    table.add_index("bloom", "s")
    table.add_index("bitmap", "s")
    rookery.analyze(spark, name, lake=lake)
    check(spark, lake, name, wanted, true, 3)
    insert(spark, name, [rng.choice(BAD) for _ in range(2)], 1)  # files that no segment knows
    check(spark, lake, name, wanted[:20], truths(spark, name, wanted[:20]), 0)


def test_bounds_of_several_row_groups(spark: SparkSession, lake: Lake, make: NewTable) -> None:
    """Iceberg takes the least and greatest of row groups after it has replaced what is not UTF-8."""
    for values, where in (
        ([b"\xff", "\U0001f600".encode()], "s > '\U0001f600'"),
        ([b"caf\xe9", "caf\u9fff".encode()], "s < 'caf\u9ffe'"),
    ):
        for by in ("", "truncate(2, s)", "truncate(4, s)"):
            name = table_of(spark, make, by, values, files=1)
            check(spark, lake, name, [where], truths(spark, name, [where]), 1)


@pytest.mark.parametrize("by", PARTITIONS)
def test_statistics(spark: SparkSession, lake: Lake, make: NewTable, by: str) -> None:
    """What is exact occurs, and nothing lies beyond it; values that differ are counted apart."""
    values = [b"\xff"] * 10 + [rb"\xff"] * 5 + ["\U0001f600".encode(), b"a"]
    name = table_of(spark, make, by, values, files=4)
    for collected in (False, True):
        if collected:
            rookery.analyze(spark, name, lake=lake, histogram=["s"], top_k=["s"])
        column = next(each for each in rookery.table(name, lake).stats().columns if each.name == "s")
        assert column.max is None or column.max_exact is False or by == "s"
        assert column.min is None or column.min_exact is False or column.min == r"\xff"
    assert column.rows is not None
    bad = "\ufffd" if by == "s" else r"\xff"
    assert [(top.value, top.count) for top in column.rows.top][:2] == [(bad, 10), (r"\xff", 5)]
    ends = (column.rows.quantiles["0"], column.rows.quantiles["1"])
    assert ends == (r"\xff", "\U0001f600" if by == "s" else r"\xff")
