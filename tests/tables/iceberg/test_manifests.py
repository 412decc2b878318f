"""Manifests and manifest lists of real writers, against PyIceberg's decoder and Iceberg's metadata tables."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.tables.iceberg import IcebergTable, manifest_list
from rookery.tables.iceberg.files import read_files
from rookery.tables.iceberg.manifest_list import Manifest
from tests.interop.conftest import NewTable
from tests.tables.iceberg import test_files
from tests.tables.iceberg.test_avro import READERS, use
from tests.tables.iceberg.test_files import COLUMNS, fill, load

Row = dict[str, Any]


def both_readers() -> Iterator[None]:
    """One round with the interpreter in plain Python, and one with the compiled one."""
    for reader in READERS:
        with pytest.MonkeyPatch.context() as patch:
            use(reader, patch)
            yield


def theirs(io: Any, manifests: Sequence[Manifest | ManifestFile]) -> Iterator[Row]:
    """The live files as PyIceberg decodes them, without the values of their partitions."""
    for manifest in manifests:
        with AvroFile[ManifestEntry](
            io.new_input(manifest.manifest_path),
            MANIFEST_ENTRY_SCHEMAS[3],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as entries:
            live = [entry for entry in entries if entry.status != ManifestEntryStatus.DELETED]
        for entry in live:
            file, sequence = entry.data_file._data, entry.sequence_number
            added = manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id
            yield {
                "path": file[1],
                "content": int(file[0] or 0),
                "format": str(getattr(file[2], "value", file[2])).lower(),
                "size": file[5],
                "rows": file[4],
                "spec_id": manifest.partition_spec_id,
                "sequence_number": manifest.sequence_number if sequence is None else sequence,
                "added_snapshot_id": added,
                **{name: None if file[at] is None else list(file[at].items()) for at, name in MAPS},
                "referenced_data_file": file[17],
                "content_offset": file[18],
                "content_size": file[19],
                "equality_ids": file[14],
                "file_list": manifest.manifest_path,
                "row_groups": len(file[13] or ()) or None,
            }


MAPS = list(
    enumerate(
        ("column_sizes", "value_counts", "null_counts", "nan_counts", "lower_bounds", "upper_bounds"), 6
    )
)


def agree(table: IcebergTable) -> pa.Table:
    """Compare the lists and all files of all snapshots; return the files of the last."""
    for snapshot in table.snapshots.values():
        found = table.table.snapshot_by_id(snapshot.id)
        assert found is not None
        for _ in both_readers():
            manifests = table.file_lists(snapshot)
            same_lists(manifests, list(read_manifest_list(table.io.new_input(found.manifest_list))))
            files = read_files(table.io, manifests)
            files.validate(full=True)
            assert files.drop_columns("partition").to_pylist() == list(theirs(table.io, manifests))
    return files


def same_lists(ours: list[Manifest], others: list[ManifestFile]) -> None:
    same = [name for name in Manifest.__dataclass_fields__ if name != "partitions"]
    for manifest, other in zip(ours, others, strict=True):
        assert {name: getattr(manifest, name) for name in same} == {n: getattr(other, n) for n in same}
        assert [
            (field.contains_null, field.contains_nan, field.lower, field.upper)
            for field in manifest.partitions
        ] == [
            (field.contains_null, field.contains_nan, field.lower_bound, field.upper_bound)
            for field in other.partitions or ()
        ]


# -- written by Iceberg's Java


@pytest.mark.parametrize("version", [1, 2, 3])
def test_java(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    name = new_table(COLUMNS, version)
    if version == 1:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode'='copy-on-write')")
    fill(spark, name, 0)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD part")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(1, word)")
    fill(spark, name, 100)
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    spark.sql(f"DELETE FROM {name} WHERE part = 1 AND id > 100")
    assert agree(load(lake, name)).num_rows > 3


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_codecs_of_java(spark: SparkSession, lake: Lake, new_table: NewTable, codec: str) -> None:
    name = new_table(COLUMNS, 2)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.manifest.compression-codec'='{codec}')")
    fill(spark, name, 0)
    table = load(lake, name)
    for _ in both_readers():  # PyIceberg reads snappy only with a package of its own
        assert test_files.agree(spark, lake, name).num_rows == 1
    (manifest,) = table.file_lists(next(iter(table.snapshots.values())))
    data = Path(manifest.manifest_path.removeprefix("file:")).read_bytes()
    header = {"gzip": b"deflate", "zstd": b"zstandard", "snappy": b"snappy", "uncompressed": b"null"}[codec]
    assert b"avro.codec" + bytes([2 * len(header)]) + header in data


KINDS = {
    "flag": ("boolean", "true", True),
    "small": ("int", "-5", -5),
    "large": ("bigint", str(1 << 40), 1 << 40),
    "real": ("float", "float(0.5)", 0.5),
    "double": ("double", "double(-1.25)", -1.25),
    "nan": ("double", "double('NaN')", math.nan),
    "day": ("date", "DATE'2024-05-01'", (date(2024, 5, 1) - date(1970, 1, 1)).days),
    "moment": (
        "timestamp",
        "TIMESTAMP'2024-05-01 10:00:00.000001Z'",
        int(datetime(2024, 5, 1, 10, tzinfo=UTC).timestamp()) * 1_000_000 + 1,
    ),
    "local": ("timestamp_ntz", "TIMESTAMP_NTZ'1969-12-31 23:59:59'", -1_000_000),
    "word": ("string", "'Löwe'", "Löwe"),
    "bytes": ("binary", "X'00ff'", "00ff"),
    "price": ("decimal(12, 2)", "1234567.89", 123456789),
    "tax": ("decimal(12, 2)", "-0.05", -5),
    "long_price": (
        "decimal(38, 10)",
        "-1234567890123456789012345678.0000000001",
        -12345678901234567890123456780000000001,
    ),
}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_kind_of_partition(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    """Among them two of one decimal type, whose second use refers to the first by name."""
    name = new_table(", ".join(f"{column} {kind}" for column, (kind, _, _) in KINDS.items()), version)
    for column in KINDS:
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {column}")
    values = ", ".join(f"CAST({text} AS {kind})" for kind, text, _ in KINDS.values())
    spark.sql(f"INSERT INTO {name} SELECT {values}")
    spark.sql(f"INSERT INTO {name} SELECT {', '.join('NULL' for _ in KINDS)}")
    table = load(lake, name)
    snapshot = table.snapshot()
    assert snapshot is not None
    full = json.dumps([value for _, _, value in KINDS.values()])
    for _ in both_readers():
        manifests = table.file_lists(snapshot)
        found = set(read_files(table.io, manifests)["partition"].to_pylist())
        assert found == {full, json.dumps([None] * len(KINDS))}
        assert {len(manifest.partitions) for manifest in manifests} == {len(KINDS)}


# -- written by PyIceberg

PYICEBERG_KINDS = [
    (BooleanType(), True, True),
    (IntegerType(), -1, -1),
    (LongType(), 1 << 62, 1 << 62),
    (FloatType(), 0.25, 0.25),
    (DoubleType(), -math.inf, -math.inf),
    (DateType(), 19844, 19844),
    (TimeType(), 7, 7),
    (TimestampType(), 8, 8),
    (TimestamptzType(), 9, 9),
    (StringType(), "text", "text"),
    (BinaryType(), b"\x01\xff", "01ff"),
    (FixedType(3), b"abc", "616263"),
    (UUIDType(), uuid.UUID(int=5), uuid.UUID(int=5).hex),
    (DecimalType(9, 2), Decimal("-1.50"), -150),
]


def data_file(path: str, partition: Record) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.ORC,
        partition=partition,
        record_count=3,
        file_size_in_bytes=4,
        column_sizes={1: 2, 3: 1 << 40},
        value_counts={},
        null_value_counts=None,
        nan_value_counts={1: 0},
        lower_bounds={1: b"", 2: b"a" * 300},
        upper_bounds={1: b"x"},
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=None,
    )


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2"])
@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg(tmp_path: Path, version: Any, codec: Any) -> None:
    io = PyArrowFileIO()
    kinds = [NestedField(n, f"c{n}", kind) for n, (kind, _, _) in enumerate(PYICEBERG_KINDS, 1)]
    fields = [PartitionField(f.field_id, 1000 + f.field_id, IdentityTransform(), f.name) for f in kinds]
    spec = PartitionSpec(*fields, spec_id=4)
    full, none = Record(*[value for _, value, _ in PYICEBERG_KINDS]), Record(*[None for _ in fields])
    with write_manifest(
        version, spec, Schema(*kinds), io.new_output(str(tmp_path / "m")), 7, codec
    ) as writer:
        for n in range(20):
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=7,
                data_file=data_file(f"f{n}", full if n % 3 else none),
            )
            writer.add_entry(entry)
    written = writer.to_manifest_file()
    with write_manifest_list(version, io.new_output(str(tmp_path / "l")), 7, None, 3, codec) as lists:
        lists.add_manifests([written])
    texts = [json.dumps([value for _, _, value in PYICEBERG_KINDS]), json.dumps([None for _ in fields])]
    for _ in both_readers():
        ours = manifest_list.read_manifest_list(io, str(tmp_path / "l"))
        same_lists(ours, list(read_manifest_list(io.new_input(str(tmp_path / "l")))))
        found = read_files(io, ours)
        assert found.drop_columns("partition").to_pylist() == list(theirs(io, ours))
        assert found["partition"].to_pylist() == [texts[n % 3 == 0] for n in range(20)]
