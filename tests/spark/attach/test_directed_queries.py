"""Queries of every form return, attached, what Spark returns over copies that nothing can be pruned of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import tables
from tests.spark.attach.ways import WAYS, files_read, sessions_of_all_ways

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = [
    # keys and fields inside structs
    "SELECT a.id FROM {d} d JOIN {a} a ON d.s.k = a.id WHERE d.k = 3",
    "SELECT a.id FROM {d} d, {a} a WHERE s.k = a.id AND d.k < 3",
    "SELECT a.id FROM {d} s JOIN {a} a ON s.k = a.id WHERE s.k = 3",
    "SELECT d.k FROM {d} d WHERE d.s.k = 9 AND d.k < 50",
    "SELECT k.k FROM {d} k WHERE k.s.k = 9",
    "SELECT a.id FROM {a} a JOIN {d} d ON a.id = d.m['k'] WHERE d.k = 3",
    # sides whose rows may be missing
    "SELECT a.id, c.id c FROM {a} a LEFT JOIN {b} b ON a.id = b.id AND b.x < 0 JOIN {c} c "
    "ON b.x IS NULL AND a.id = c.id WHERE a.id < 6",
    "SELECT a.id FROM {a} a LEFT JOIN {b} b ON a.id = b.id WHERE b.id IS NULL AND a.id < 9",
    "SELECT a.id, b.x FROM {a} a LEFT JOIN {b} b ON a.id = b.id AND a.id = 5 WHERE a.id < 9",
    "SELECT a.id, b.x FROM {a} a LEFT JOIN {b} b ON a.id = b.id AND b.x = 5 JOIN {c} c ON b.x = c.id",
    "SELECT a.id, b.id i FROM {a} a RIGHT JOIN {b} b ON a.id = b.id AND a.x = 5 WHERE b.id < 9",
    "SELECT a.id, b.id i FROM {a} a FULL JOIN {b} b ON a.id = b.id AND a.x = 5 AND b.x = 5",
    "SELECT a.id FROM {a} a LEFT ANTI JOIN {b} b ON a.id = b.id AND b.id < 70 AND a.id > 5",
    "SELECT a.id FROM {a} a LEFT SEMI JOIN {b} b ON a.id = b.id AND b.id < 9 JOIN {c} c ON a.x = c.id",
    "SELECT id FROM {a} NATURAL JOIN {b} WHERE x = 5",
    "SELECT id, b.x FROM {a} a LEFT JOIN {b} b USING (id) WHERE id < 9",
    "SELECT count(*) FROM {a} a, {b} b LEFT JOIN {c} c ON b.id = c.id AND c.id = 3 "
    "WHERE a.id = b.id AND a.x < 9",
    "SELECT a.id FROM {a} a JOIN ({b} b JOIN {c} c ON b.id = c.id) ON a.id = b.id WHERE b.x = 5",
    # blocks, and what comes before the filter
    "FROM {a} |> LIMIT 0 |> WHERE x = 5",
    "SELECT * FROM {a} |> WHERE x = 5 |> SELECT id",
    "FROM {a} |> AGGREGATE count(*) AS x |> WHERE x = 80",
    "FROM {a} SELECT id WHERE x = 5",
    "SELECT count(*) FROM (SELECT * FROM {a} ORDER BY id LIMIT 9) t WHERE x = 5",
    "SELECT * FROM (SELECT x, count(*) n, max(id) id FROM {a} GROUP BY x) t WHERE id = 79",
    "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) x FROM {a}) t WHERE x = 5",
    "SELECT id, count(*) OVER () n FROM {a} WHERE x = 5",
    "SELECT x + 1 AS id FROM {a} WHERE id = 5",
    "WITH a AS (SELECT id + 1 id, x FROM {a} WHERE id < 5) SELECT * FROM a WHERE id = 5",
    "SELECT id FROM {a} WHERE id = 5 UNION ALL SELECT id FROM {a} WHERE id = 60 UNION ALL SELECT id FROM {a}",
    "SELECT id FROM {a} WHERE id < 9 EXCEPT SELECT id FROM {a} WHERE x = 5",
    "SELECT id FROM {a} WHERE id NOT IN (SELECT id FROM {b} WHERE x = 5)",
    "SELECT id FROM {a} o WHERE EXISTS (SELECT 1 FROM {b} WHERE x = o.x AND id = 5)",
    "SELECT id FROM {a} o WHERE id = (SELECT max(i.id) FROM {a} i WHERE i.x = o.x)",
    "SELECT id, n FROM {a} a, LATERAL (SELECT a.x + 1 AS n) WHERE id = 5",
    "SELECT id, n FROM {a} LATERAL VIEW explode(array(1, 2)) e AS n WHERE id = 5",
    "SELECT * FROM (SELECT id, x FROM {a}) PIVOT (count(id) FOR x IN (1, 5))",
    "SELECT p FROM {a} AS t(x, p) WHERE p = 5",
    "SELECT /*+ BROADCAST(b) */ a.id FROM {a} a JOIN {b} b ON a.id = b.id WHERE b.id = 5",
    # names
    "SELECT a.id FROM {a} a JOIN {a} b ON a.id = b.x WHERE b.id = 5",
    "SELECT x FROM {a} x WHERE x = 5",
    "SELECT `a`.`ID` FROM {a} AS `A` WHERE `a`.ID = 5",
    "SELECT id FROM {a} WHERE 5 = ID AND NOT x != 5",
    "SELECT id FROM {a} WHERE id = 5 AND exists(array(70, 71), id -> id = 70)",
    "SELECT * FROM {a} WHERE id = 5 -- WHERE id = 6",
]


@pytest.fixture(scope="module")
def names(spark: SparkSession, lake: Lake) -> Iterator[dict[str, str]]:
    """Four tables in several files each, and their copies, named in upper case."""
    with tables(spark) as make:
        found = {name: make("id bigint, x bigint", name) for name in "abc"}
        for name, table in found.items():
            spark.range(0, 80, 1, 1).selectExpr("id", f"id % {7 + ord(name) % 5} x").repartitionByRange(
                8, "id"
            ).writeTo(table).append()
        found["d"] = make("k bigint, s struct<k: bigint>, m map<string, bigint>", "d")
        spark.range(0, 80, 1, 1).selectExpr(
            "id k", "named_struct('k', 79 - id) s", "map('k', 79 - id) m"
        ).repartitionByRange(8, "k").writeTo(found["d"]).append()
        for name, table in found.items():
            rookery.analyze(spark, table, lake=lake)
            spark.table(table).localCheckpoint().createOrReplaceTempView(f"copy_of_{name}")
        yield found
        for name in found:
            spark.catalog.dropTempView(f"copy_of_{name}")


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> Iterator[dict[str, SparkSession]]:
    with sessions_of_all_ways(spark) as made:
        yield made


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("query", QUERIES)
def test_queries(
    spark: SparkSession, sessions: dict[str, SparkSession], names: dict[str, str], query: str
) -> None:
    expected = rows(spark.sql(query.format(**{name: f"copy_of_{name}" for name in names})))
    for way, session in sessions.items():
        assert rows(session.sql(query.format(**names))) == expected, way


@pytest.mark.parametrize("way", WAYS)
def test_plain_queries_are_pruned(sessions: dict[str, SparkSession], names: dict[str, str], way: str) -> None:
    read = {
        "SELECT * FROM {a} WHERE id = 5": {"a": [1]},
        "SELECT count(*) FROM {a} WHERE id = 5 OR id = 60": {"a": [2]},
        "SELECT * FROM {a} a, {b} b WHERE a.id = b.id AND a.id = 5": {"a": [1], "b": [1]},
        "SELECT * FROM {a} a LEFT JOIN {b} b ON a.id = b.id AND b.id < 9 WHERE a.id = 5": {
            "a": [1],
            "b": [1],
        },
        "SELECT * FROM {a} WHERE id IN (SELECT id FROM {b} WHERE id = 5)": {"a": [1], "b": [1]},
        "WITH t AS (SELECT * FROM {a} WHERE id = 5) SELECT * FROM t JOIN {c} c ON t.id = c.id": {
            "a": [1],
            "c": [1],
        },
    }
    found = {query: files_read(sessions[way], query.format(**names)) for query in read}
    assert found == read
