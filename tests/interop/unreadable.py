"""Tables with columns that Spark cannot read, made by Iceberg's Java library, as Trino or Flink would."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from rookery.io import local_path
from tests.interop.java import IcebergJava

ROWS = 40
_POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
)


def columns(kind: str) -> str:
    """A schema as JSON: columns of *kind* at the top, in a struct, in a list and in a map, and others."""

    def field(number: int, name: str, of: object) -> dict[str, object]:
        return {"id": number, "name": name, "required": False, "type": of}

    inner = {"type": "struct", "fields": [field(4, "t", kind), field(5, "x", "string")]}
    items = {"type": "list", "element-id": 7, "element": kind, "element-required": False}
    entries = {
        "type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": kind, "value-required": False,
    }  # fmt: skip
    fields = [
        field(1, "n", "int"), field(2, "t", kind), field(3, "s", inner), field(6, "l", items),
        field(8, "m", entries), field(11, "w", "string"),
    ]  # fmt: skip
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


class Maker:
    """Makes one table, and writes files to it."""

    def __init__(self, spark: SparkSession, kind: str, partitioned: bool = False) -> None:
        self.spark, self.kind = spark, kind
        self.name = f"lake.db.u_{uuid.uuid4().hex[:12]}"
        self._jvm: Any = spark._jvm
        self._iceberg = self._jvm.org.apache.iceberg
        self._identifier = self._iceberg.catalog.TableIdentifier.parse(self.name.removeprefix("lake."))
        schema = self._iceberg.SchemaParser.fromJson(columns(kind))
        spec = self._iceberg.PartitionSpec.builderFor(schema)
        properties = self._jvm.java.util.HashMap()
        properties.put("format-version", "2" if kind == "time" else "3")
        self._catalog = self._iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, "lake")
        spec = spec.bucket("t", 2) if partitioned else spec
        self._catalog.createTable(self._identifier, schema, spec.build(), properties)

    def write(self, form: str, start: int = 0) -> str:
        """Append a file of forty rows, numbered from *start*; return where it is."""
        table = self._table()
        schema = table.schema()
        path = f"{table.location()}/data/{uuid.uuid4().hex}.{form}"
        out = table.io().newOutputFile(path)
        sealed = self._iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(out)
        kind = self._iceberg.FileFormat.fromString(form)
        factory = self._iceberg.data.GenericFileWriterFactory.Builder(table).dataFileFormat(kind).build()
        partition = None
        if table.spec().isPartitioned():
            partition = self._iceberg.data.GenericRecord.create(table.spec().partitionType())
            partition.setField("t_bucket", 1)
        writer = factory.newDataWriter(sealed, table.spec(), partition)
        for number in range(start, start + ROWS):
            writer.write(self._record(schema, number))
        writer.close()
        file = writer.toDataFile()
        table.newAppend().appendFile(file).commit()
        return str(file.location())

    def _record(self, schema: Any, number: int) -> Any:
        generic = self._iceberg.data.GenericRecord
        record = generic.create(schema)
        inner = generic.create(schema.findType("s").asStructType())
        inner.setField("t", self._value(number))
        inner.setField("x", f"x{number % 3}")
        items, entries = self._jvm.java.util.ArrayList(), self._jvm.java.util.HashMap()
        items.add(self._value(number))
        entries.put(f"k{number % 2}", self._value(number))
        values = {"n": number, "t": self._value(number), "s": inner, "l": items, "m": entries}
        for name, value in {**values, "w": f"w{number % 5}"}.items():
            record.setField(name, value)
        return record

    def _value(self, number: int) -> Any:
        clock = self._jvm.java.time
        if self.kind == "time":
            return clock.LocalTime.of(number % 20, 0)
        moment = clock.LocalDateTime.of(2024, 1, 1 + number % 20, 0, 0)
        return moment if self.kind == "timestamp_ns" else moment.atOffset(clock.ZoneOffset.UTC)

    def delete_position(self, path: str, position: int) -> None:
        """Delete a row of a file by its position."""
        table = self._table()
        file = f"{table.location()}/data/{uuid.uuid4().hex}-deletes.parquet"
        rows = pa.table({"file_path": [path], "pos": [position]}, schema=_POSITION_DELETES)
        pq.write_table(rows, local_path(file))
        built = (
            self._iceberg.FileMetadata.deleteFileBuilder(table.spec())
            .ofPositionDeletes()
            .withPath(file)
            .withFormat("parquet")
            .withFileSizeInBytes(table.io().newInputFile(file).getLength())
            .withRecordCount(1)
        )
        if table.spec().isPartitioned():
            built = built.withPartitionPath("t_bucket=1")
        table.newRowDelta().addDeletes(built.build()).commit()

    def delete_number(self, number: int) -> None:
        """Delete rows by equality, as Flink does."""
        table = self._table()
        file = local_path(f"{table.location()}/data/{uuid.uuid4().hex}-equality.parquet")
        schema = pa.schema([pa.field("n", pa.int32(), True, {"PARQUET:field_id": "1"})])
        pq.write_table(pa.table({"n": [number]}, schema=schema), file)
        java, partition = IcebergJava(self.spark), "t_bucket=1" if table.spec().isPartitioned() else ""
        java.commit_deletes(self.name, [java.equality_deletes(self.name, file, ["n"], 1, partition)])

    def remove(self, path: str) -> None:
        """Delete a data file from the table."""
        table = self._table()
        tasks = table.newScan().planFiles().iterator()
        while (file := tasks.next().file()).location() != path:
            pass
        table.newDelete().deleteFile(file).commit()

    def drop(self) -> None:
        self._catalog.dropTable(self._identifier)

    def _table(self) -> Any:
        return self._catalog.loadTable(self._identifier)


@contextmanager
def made(spark: SparkSession, kind: str, *, partitioned: bool = False) -> Iterator[Maker]:
    """Give a table, which is dropped at the end."""
    maker = Maker(spark, kind, partitioned)
    try:
        yield maker
    finally:
        maker.drop()
