"""Analysis of every type, held against exact counts, Iceberg's own statistics and Spark's optimizer."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    FixedType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    UUIDType,
)
from pyspark.sql import DataFrame, SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.puffin import THETA_V1, Blob, Writer, open_puffin
from rookery.sketch import K, ThetaSketch
from rookery.tables.iceberg.jvm import register_statistics
from tests.interop.analysis import (
    all_exact,
    blobs_of,
    compute_table_stats,
    read_statistics,
    same_below,
    statistics_path,
)
from tests.interop.conftest import NewTable

STANDARD_ERROR = 1 / K**0.5
NOTHING = ThetaSketch(np.empty(0, np.uint64))  # as which a column without values is not registered
NAN = float("nan")
ROWS = 400

TYPES = """
  `boolean` boolean, `int` int, `long` bigint, `float` float, `double` double, `date` date,
  `timestamp` timestamp_ntz, `timestamptz` timestamp, `string` string, `binary` binary,
  d2 decimal(2, 1), d9 decimal(9, 2), d18 decimal(18, 3), d19 decimal(19, 0), d38 decimal(38, 10),
  `always null` string, `never null` int NOT NULL, `a b` string,
  s struct<x: int, `in`: struct<y: string, z: decimal(20, 2)>>, l array<double>, m map<string, bigint>,
  ls array<struct<p: bigint, q: array<string>>>, ms map<int, struct<r: string, t: timestamp>>
"""
TEXTS = ["", " ", "a", "ä", "日本語", "🐧", "a" * 300, "x\0y", "exactly 16 bytes"]


def row(n: int) -> dict[str, Any]:
    """A row in which each column goes its own way around, with nulls and the values that are easy to miss."""
    moment = datetime(1969, 12, 31, 23, 59) + timedelta(seconds=n // 2, microseconds=n % 3)
    text = TEXTS[n % 12] if n % 12 < len(TEXTS) else f"text {n % 150}"
    return {
        "boolean": None if n % 5 == 0 else n % 3 == 0,
        "int": None if n % 7 == 0 else (n % 90) - 45,
        "long": (n % 111) * 10**15 * (-1) ** n,
        "float": [0.0, -0.0, NAN, float("inf"), n % 60 / 8][n % 5],
        "double": [None, -0.0, NAN, 0.0, n / 7, float("-inf")][n % 6],
        "date": date(1960, 1, 1) + timedelta(days=n % 77),
        "timestamp": moment,
        "timestamptz": moment.replace(tzinfo=UTC),
        "string": text,
        "binary": text.encode("utf-16-le"),
        "d2": Decimal(n % 50 - 25) / 10,
        "d9": Decimal(n % 300 - 150) / 100,
        "d18": Decimal((n % 70) * 10**13) / 1000 * (-1) ** n,
        "d19": Decimal((n % 65) * 10**17) * (-1) ** n,
        "d38": None if n % 11 == 0 else Decimal(n % 40 * 10**27).scaleb(-5) * (-1) ** n,
        "always null": None,
        "never null": n,
        "a b": f"word {n % 13}",
        "s": None if n % 6 == 0 else {"x": n % 33, "in": {"y": TEXTS[n % 9], "z": Decimal(n % 21)}},
        "l": [None, [], [1.5, None], [n % 12 / 4, -0.0]][n % 4],
        "m": [None, {}, {f"k{n % 31}": n % 17}, {"same": None, text: n}][n % 4],
        "ls": [[{"p": n % 25, "q": [text, None]}, None], [], [{"p": None, "q": []}]][n % 3],
        "ms": None if n % 3 else {n % 19: {"r": f"r{n % 23}", "t": moment.replace(tzinfo=UTC)}},
    }


def fill(spark: SparkSession, name: str, files: int = 2) -> None:
    schema = spark.table(name).schema
    for number in range(files):
        rows = [row(n) for n in range(number * ROWS // files, (number + 1) * ROWS // files)]
        frame = spark.createDataFrame([tuple(r.values()) for r in rows], schema)  # type: ignore[type-var]
        frame.coalesce(1).writeTo(name).append()


def agree_with_icebergs_own(spark: SparkSession, lake: Lake, name: str, exceptions: set[str]) -> None:
    """The same hashes as compute_table_stats for every column that it knows, but those named."""
    ours = read_statistics(statistics_path(name, lake))
    theirs = read_statistics(compute_table_stats(spark, name))
    schema = lake.load(name).schema()
    assert theirs.keys() == {field.field_id for field in schema.fields if field.field_type.is_primitive}
    differing = {
        schema.find_field(number).name
        for number, sketch in theirs.items()
        if not same_below(ours.get(number, NOTHING), sketch)
    }
    assert differing == exceptions


# -- every type


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_type_written_by_spark(
    spark: SparkSession, lake: Lake, new_table: NewTable, version: int
) -> None:
    name = new_table(TYPES, version)
    fill(spark, name)
    report = rookery.analyze(spark, name, lake=lake)
    assert report.files_read == 2
    assert not report.skipped
    assert set(report.chunks) == {"pages", "arrow"}
    assert all_exact(spark, name, lake) == 29
    agree_with_icebergs_own(spark, lake, name, exceptions=set())


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_other_formats_go_by_the_engine(
    spark: SparkSession, lake: Lake, new_table: NewTable, form: str
) -> None:
    name = new_table(TYPES)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='{form}')")
    fill(spark, name)
    report = rookery.analyze(spark, name, lake=lake)
    assert report.chunks == {"engine": 2 * 29}
    all_exact(spark, name, lake)
    agree_with_icebergs_own(spark, lake, name, exceptions=set())
    assert not rookery.analyze(spark, name, lake=lake).files_read


def test_formats_mixed_in_one_table(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint, word string")
    for number, form in enumerate(["parquet", "orc", "avro"]):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='{form}')")
        frame = spark.range(number * 50, number * 50 + 100, 1, 1)
        frame.selectExpr("id", "concat('w', id % 7) AS word").writeTo(name).append()
    report = rookery.analyze(spark, name, lake=lake)
    assert report.chunks == {"pages": 2, "engine": 4}
    all_exact(spark, name, lake)


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_names_with_dots(spark: SparkSession, lake: Lake, new_table: NewTable, form: str) -> None:
    """Iceberg's own action fails on these."""
    name = new_table("`x.y` bigint, a struct<b: int, `c.d`: boolean>, `x.y.z` string, `e``f` boolean")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='{form}')")
    spark.range(0, 50, 1, 1).selectExpr(
        "id", "named_struct('b', CAST(id % 5 AS int), 'c.d', id % 2 = 0)", "concat('t', id % 7)", "id % 2 = 1"
    ).toDF("x.y", "a", "x.y.z", "e`f").writeTo(name).append()
    report = rookery.analyze(spark, name, lake=lake)
    assert [column.ndv for column in report.columns] == [50, 5, 2, 7, 2]
    rookery.analyze(
        spark, name, histogram=["x.y"], top_k=["x.y.z"], column_sets=[["x.y", "x.y.z"]], lake=lake
    )
    columns = {column.name: column for column in rookery.table(name, lake).stats().columns}
    assert columns["x.y"].rows is not None
    assert columns["x.y.z"].rows is not None
    assert columns["x.y + x.y.z"].ndv == 50


# -- types that Spark lacks


def uuids(count: int, offset: int = 0) -> list[bytes]:
    return [uuid.uuid5(uuid.NAMESPACE_OID, str(n + offset)).bytes for n in range(count)]


@pytest.fixture
def by_pyiceberg(lake: Lake) -> Iterator[Any]:
    """Make tables through PyIceberg, of a schema and of an Arrow table; they are dropped at the end."""
    made: list[str] = []

    def make(schema: Schema, *batches: pa.Table, **properties: str) -> str:
        name = f"db.p_{uuid.uuid4().hex[:12]}"
        table = lake.catalog.create_table(name, schema, properties=properties)
        made.append(name)
        for batch in batches:
            table.append(batch)
        return f"lake.{name}"

    yield make
    for name in made:
        lake.catalog.drop_table(name)


FOREIGN = Schema(
    NestedField(1, "u", UUIDType()),
    NestedField(2, "f", FixedType(5)),
    NestedField(3, "s", StringType()),
    NestedField(4, "b", BinaryType()),
    NestedField(5, "t", TimestampType()),
    NestedField(6, "d", DecimalType(25, 4)),
    NestedField(
        7,
        "n",
        StructType(NestedField(8, "u", UUIDType()), NestedField(9, "l", ListType(10, FixedType(3), False))),
    ),
)


def foreign(start: int, rows: int = 100) -> pa.Table:
    n = range(start, start + rows)
    fixed = [f"{v % 31:05}".encode() for v in n]
    nested = [None if v % 4 == 0 else {"u": uuids(1, v % 20)[0], "l": [f"{v % 9:03}".encode()]} for v in n]
    kind = pa.struct([("u", pa.binary(16)), ("l", pa.list_(pa.binary(3)))])
    return pa.table(
        {
            "u": pa.array([None if v % 9 == 0 else uuids(1, v % 70)[0] for v in n], pa.binary(16)),
            "f": pa.array(fixed, pa.binary(5)),
            "s": pa.array([TEXTS[v % 9] for v in n]),
            "b": pa.array(fixed, pa.binary()),
            "t": pa.array([v % 44 - 22 for v in n], pa.timestamp("us")),
            "d": pa.array([Decimal(v % 55 - 20) * 10**15 for v in n], pa.decimal128(25, 4)),
            "n": pa.array(nested, kind),
        }
    )


def expected_foreign(rows: int) -> dict[str, int]:
    table = foreign(0, rows)
    flat = {name: pc.count_distinct(table[name]).as_py() for name in ("u", "f", "b", "t", "d")}
    present = table["n"].combine_chunks().drop_null()
    nested = {
        "n.u": pc.count_distinct(present.field("u")).as_py(),
        "n.l.element": pc.count_distinct(present.field("l").flatten()).as_py(),
    }
    return {**flat, "s": len(TEXTS) - 1, **nested}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_types_written_by_pyiceberg(spark: SparkSession, lake: Lake, by_pyiceberg: Any, version: int) -> None:
    written = "1" if version == 1 else "2"  # PyIceberg writes no version 3, but a table can be raised to it
    name = by_pyiceberg(FOREIGN, foreign(0), foreign(100), **{"format-version": written})
    if version == 3:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    report = rookery.analyze(spark, name, lake=lake)
    assert {column.name: column.ndv for column in report.columns} == expected_foreign(200)
    assert lake.load(name).metadata.format_version == version
    # Iceberg's Spark action goes by Spark's types, which have UUIDs as text; the specification says 16 bytes.
    agree_with_icebergs_own(spark, lake, name, exceptions={"u"})
    theirs = read_statistics(statistics_path(name, lake))
    assert len(theirs[1].hashes) == expected_foreign(200)["u"]


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_uuids_and_fixed_by_the_engine(spark: SparkSession, lake: Lake, by_pyiceberg: Any, form: str) -> None:
    """Spark shows UUIDs as text and fixed as binary; both are turned back."""
    name = by_pyiceberg(FOREIGN, foreign(0), **{"write.delete.mode": "merge-on-read"})
    if form == "parquet":
        spark.sql(f"DELETE FROM {name} WHERE t = timestamp_ntz'1970-01-01 00:00:00'")
    else:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='{form}')")
        spark.sql(
            f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
        )
    report = rookery.analyze(spark, name, lake=lake)
    assert set(report.chunks) == {"engine"}
    found = {column.name: column.ndv for column in report.columns}
    gone = 2 if form == "parquet" else 0  # two rows of that time, one of them with a UUID of its own
    assert found == {
        **expected_foreign(100),
        "t": 44 - gone // 2,
        "u": expected_foreign(100)["u"] - gone // 2,
    }


def test_a_type_that_spark_cannot_read(spark: SparkSession, lake: Lake, by_pyiceberg: Any) -> None:
    """Spark has no such time of day; the files are read without it, and the result is registered."""
    schema = Schema(NestedField(1, "t", TimeType()), NestedField(2, "n", LongType()))
    rows = pa.table({"t": pa.array([time(n % 24) for n in range(60)]), "n": pa.array(range(60))})
    name = by_pyiceberg(schema, rows)
    report = rookery.analyze(spark, name, lake=lake)
    assert [column.ndv for column in report.columns] == [24, 60]
    assert sorted(read_statistics(statistics_path(name, lake))) == [1, 2]


# -- large numbers


def test_more_than_a_sketch_holds(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint, word string, number double, price decimal(12, 2), few int")
    frame = spark.range(0, 60_000, 1, 3).selectExpr(
        "id", "concat('word ', id)", "id / 7", "CAST(id % 20000 AS decimal(12, 2))", "CAST(id % 4000 AS int)"
    )
    frame.toDF("id", "word", "number", "price", "few").writeTo(name).append()
    report = rookery.analyze(spark, name, lake=lake)
    for column, exact in zip(report.columns, (60_000, 60_000, 60_000, 20_000, 4_000), strict=True):
        if exact < K:
            assert (column.ndv, column.kind) == (exact, "exact")
        else:
            assert column.ndv == pytest.approx(exact, rel=3 * STANDARD_ERROR)
            assert column.kind == "sketched"
            assert column.ndv_low < exact <= column.ndv_high
    agree_with_icebergs_own(spark, lake, name, exceptions=set())


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    program = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run(
        [program, "parquet", "-s", "0.01", f"--output-dir={folder}"], check=True, capture_output=True
    )
    return folder


def test_all_tables_of_tpch(spark: SparkSession, lake: Lake, tpch: Path, new_table: NewTable) -> None:
    files = sorted(tpch.glob("*.parquet"))
    assert len(files) == 8
    for file in files:
        exact = pq.read_table(file)
        frame = spark.read.parquet(str(file))
        name = new_table(", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema))
        frame.writeTo(name).append()
        report = rookery.analyze(spark, name, lake=lake)
        assert [column.name for column in report.columns] == exact.column_names
        for column in report.columns:
            count = len(pc.unique(exact[column.name]))
            if count < K:
                assert (column.ndv, column.kind) == (count, "exact"), column.name
            else:
                assert column.ndv == pytest.approx(count, rel=3 * STANDARD_ERROR), column.name


# -- seen by others


def planned_rows(frame: DataFrame) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().rowCount().get()))


def words(spark: SparkSession, name: str, start: int = 0, count: int = 900) -> None:
    frame = spark.range(start, start + count, 1, 1).selectExpr("id", "concat('w', id % 9) AS word")
    frame.writeTo(name).append()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_optimizer_uses_it(
    spark: SparkSession, lake: Lake, new_table: NewTable, cost_based: None, version: int
) -> None:
    name = new_table("id bigint, word string", version)
    words(spark, name)
    query = f"SELECT * FROM {name} WHERE word = 'w1'"
    assert planned_rows(spark.sql(query)) == 900
    rookery.analyze(spark, name, lake=lake)
    assert planned_rows(spark.sql(query)) == 100
    assert "rowCount=100" in spark.sql(f"EXPLAIN COST {query}").first()[0]
    words(spark, name, 900)
    assert planned_rows(spark.sql(query)) == 1800  # Spark asks for the very snapshot
    rookery.analyze(spark, name, lake=lake)
    assert planned_rows(spark.sql(query)) == 200


def test_icebergs_analysis_before_and_after(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint, word string, s struct<x: int>")
    spark.range(0, 300, 1, 1).selectExpr(
        "id", "'w' AS word", "named_struct('x', CAST(id % 5 AS int)) AS s"
    ).writeTo(name).append()
    first = compute_table_stats(spark, name)
    report = rookery.analyze(spark, name, lake=lake)
    assert report.committed
    ours = statistics_path(name, lake)
    assert ours != first
    assert len(blobs_of(ours)) == 3  # each column once
    assert Path(first.removeprefix("file:")).exists()
    second = compute_table_stats(spark, name)
    assert statistics_path(name, lake) == second
    again = rookery.analyze(spark, name, lake=lake)  # the nested column is missing there
    assert not again.files_read
    assert again.committed
    assert not rookery.analyze(spark, name, lake=lake).committed
    all_exact(spark, name, lake)
    assert len(lake.load(name).metadata.statistics) == 1


def test_where_iceberg_says_the_same_nothing_is_registered(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("id bigint, word string")
    words(spark, name)
    rookery.analyze(spark, name, lake=lake)
    theirs = compute_table_stats(spark, name)
    assert not rookery.analyze(spark, name, lake=lake).committed
    assert statistics_path(name, lake) == theirs


def test_blobs_of_others_are_carried(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """What another writer keeps in the file, unregistered, and a sketch of a column that is left out here."""
    name = new_table("id bigint, word string")
    words(spark, name)
    loaded = lake.load(name)
    snapshot = loaded.current_snapshot()
    assert snapshot is not None
    ids = (snapshot.snapshot_id, snapshot.sequence_number or 0)
    theirs = ThetaSketch(np.array([5, 6, 7], np.uint64))
    with Writer(f"{loaded.location()}/metadata/foreign.stats") as writer:
        writer.add(Blob("somebodys-histogram-v1", b"of theirs", (1,), *ids, properties={"a": "b"}))
        writer.add(Blob(THETA_V1, theirs.encode(), (1,), *ids, properties={"ndv": "3"}))
    register_statistics(spark, lake.table_name(name), snapshot.snapshot_id, writer.written)
    rookery.analyze(spark, name, columns=["word"], lake=lake)
    path = statistics_path(name, lake)
    assert [(blob.type, blob.fields) for blob in blobs_of(path)] == [
        (THETA_V1, (2,)),
        ("somebodys-histogram-v1", (1,)),
        (THETA_V1, (1,)),
    ]
    with open_puffin(path) as reader:
        carried = reader.metadata.blobs[1]
        assert (reader.read(carried), carried.properties) == (b"of theirs", {"a": "b"})
    assert read_statistics(path)[1] == theirs
    rookery.analyze(spark, name, lake=lake)  # now the column is ours, and theirs is replaced
    assert len(read_statistics(statistics_path(name, lake))[1].hashes) == 900
    assert [blob.type for blob in blobs_of(statistics_path(name, lake))].count(THETA_V1) == 2
    assert "somebodys-histogram-v1" in [blob.type for blob in blobs_of(statistics_path(name, lake))]
