"""`spark.read.format("puffin")` shows what `rookery.puffin` reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from rookery.puffin import Blob, DeletionVector, Writer, open_puffin

COLUMNS = {
    "file": "string",
    "blob": "int",
    "type": "string",
    "fields": "array<int>",
    "snapshot_id": "bigint",
    "sequence_number": "bigint",
    "offset": "bigint",
    "length": "bigint",
    "codec": "string",
    "properties": "map<string,string>",
}


def write(path: Path, *blobs: Blob) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path) as writer:
        for blob in blobs:
            writer.add(blob)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(
        tmp_path / "a.puffin",
        Blob("one", b"payload " * 100, fields=(1, 2), snapshot_id=2**62, sequence_number=5),
        Blob("two", b"", codec="none", properties={"größe": "3 µm", "ndv": "7"}),
        DeletionVector.of([1, 2**40]).blob("file:/data/a.parquet"),
    )


@pytest.fixture
def folder(tmp_path: Path, file: Path) -> Path:
    """Three files, one of them nested, beside others that are none of ours."""
    write(tmp_path / "deep" / "er" / "b.stats", Blob("three", b"3"))
    write(tmp_path / "empty.puffin")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    (tmp_path / ".hidden.puffin").write_bytes(b"half a file")
    return tmp_path


def expected(path: Path, shown: str | None = None, *, payload: bool = False) -> list[dict[str, object]]:
    with open_puffin(path) as reader:
        return [
            {
                "file": shown or str(path),
                "blob": number,
                "type": blob.type,
                "fields": list(blob.fields),
                "snapshot_id": blob.snapshot_id,
                "sequence_number": blob.sequence_number,
                "offset": blob.offset,
                "length": blob.length,
                "codec": blob.codec,
                "properties": dict(blob.properties),
                **({"payload": reader.read(blob)} if payload else {}),
            }
            for number, blob in enumerate(reader.metadata.blobs)
        ]


def dicts(rows: list[Row]) -> list[dict[str, object]]:
    return sorted(
        ({**row.asDict(), **({"payload": bytes(row.payload)} if "payload" in row else {})} for row in rows),
        key=lambda row: (row["file"], row["blob"]),
    )


def test_one_file(spark: SparkSession, file: Path) -> None:
    frame = spark.read.format("puffin").load(str(file))
    assert {field.name: field.dataType.simpleString() for field in frame.schema} == COLUMNS
    assert dicts(frame.collect()) == expected(file)


def test_payloads_on_demand(spark: SparkSession, file: Path) -> None:
    frame = spark.read.format("puffin").option("payload", True).load(str(file))
    assert frame.schema["payload"].dataType.simpleString() == "binary"
    assert dicts(frame.collect()) == expected(file, payload=True)


def test_a_folder(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.format("puffin").load(str(folder))
    nested = folder / "deep" / "er" / "b.stats"
    assert dicts(frame.collect()) == expected(folder / "a.puffin") + expected(nested)


def test_a_file_without_blobs(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.format("puffin").option("payload", "true").load(str(folder / "empty.puffin"))
    assert frame.collect() == []


def test_a_folder_without_files(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.read.format("puffin").load(str(tmp_path)).collect() == []


def test_a_file_url(spark: SparkSession, file: Path) -> None:
    url = f"file://{file}"
    assert dicts(spark.read.format("puffin").load(url).collect()) == expected(file, url)


def test_many_blobs(spark: SparkSession, tmp_path: Path) -> None:
    """More blobs than fit one batch."""
    count = 10_000
    path = write(
        tmp_path / "many.puffin", *(Blob("t", b"x", fields=(n,), codec="none") for n in range(count))
    )
    frame = spark.read.format("puffin").load(str(path))
    assert frame.selectExpr("count(*)", "count(DISTINCT offset)", "sum(fields[0])").first() == (
        count,
        count,
        count * (count - 1) // 2,
    )


def test_sql(spark: SparkSession, file: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW blobs USING puffin OPTIONS (path '{file}', payload 'true')")
    try:
        rows = spark.sql("SELECT type, properties['ndv'] AS ndv, octet_length(payload) AS bytes FROM blobs")
        found = {row.type: (row.ndv, row.bytes) for row in rows.collect()}
        counted = spark.sql("SELECT count(*) FROM blobs WHERE codec = 'zstd'").first()[0]
    finally:
        spark.catalog.dropTempView("blobs")
    assert found["one"] == (None, 800)
    assert found["two"] == ("7", 0)
    assert counted == 1


def test_a_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no such file or folder"):
        spark.read.format("puffin").load(str(tmp_path / "nowhere")).collect()


def test_no_path(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="no path was given"):
        spark.read.format("puffin").load().collect()


def test_a_broken_file(spark: SparkSession, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PySparkException, match=r"a\.puffin, byte \d+: expected the magic b'PFA1' at the end"):
        spark.read.format("puffin").load(str(file)).collect()
