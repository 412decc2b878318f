"""Iceberg's own Java classes, driven through Spark's gateway; bulk data crosses as bytes, not by item."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from rookery.puffin import Blob, BlobMetadata, FileMetadata, WrittenFile


@dataclass(frozen=True)
class JavaFile:
    """A Puffin file that Java wrote, and the sizes that its writer reports."""

    data: bytes
    size: int
    footer_size: int


@dataclass(frozen=True)
class JavaSketch:
    """What Java says of a compact theta sketch."""

    estimate: float
    theta: int
    retained: int
    bounds: Mapping[int, tuple[float, float]]
    plain: bytes
    compressed: bytes


@dataclass(frozen=True)
class JavaHll:
    """What Java says of an HLL sketch."""

    estimate: float
    bounds: Mapping[int, tuple[float, float]]
    lg_k: int
    kind: str
    compact: bytes
    updatable: bytes


class IcebergJava:
    """The Java library of the running session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._iceberg = self._jvm.org.apache.iceberg
        self._manifests: dict[str, Any] = {}

    # -- Puffin

    def write_puffin(
        self, blobs: Sequence[Blob], properties: Mapping[str, str] | None = None, codec: str | None = None
    ) -> JavaFile:
        """Write a file in memory; *codec* is the default for blobs that ask for none."""
        out = self._iceberg.inmemory.InMemoryOutputFile()
        builder = self._iceberg.puffin.Puffin.write(out).setAll(self._ordered(properties or {}))
        writer = builder.compressBlobs(self._codec(codec)).build()
        for blob in blobs:
            writer.write(self._blob(blob))
        writer.finish()
        return JavaFile(bytes(out.toByteArray()), writer.fileSize(), writer.footerSize())

    def read_puffin(
        self, data: bytes, written: WrittenFile | None = None
    ) -> tuple[FileMetadata, list[bytes]]:
        """Read a file from memory, with the sizes that a catalog would give if *written* is there."""
        builder = self._iceberg.puffin.Puffin.read(self._iceberg.inmemory.InMemoryInputFile(data))
        if written is not None:
            builder = builder.withFileSize(written.size).withFooterSize(written.footer_size)
        reader = builder.build()
        try:
            metadata = reader.fileMetadata()
            # One call for all of the metadata: what Java understood, in Java's own JSON.
            described = json.loads(self._iceberg.puffin.FileMetadataParser.toJson(metadata, False))
            payloads = [bytes(pair.second().array()) for pair in self._pairs(reader, metadata)]
        finally:
            reader.close()
        return _file_metadata(described), payloads

    def _pairs(self, reader: Any, metadata: Any) -> Any:
        # py4j takes no lambda for an Iterable; Iceberg's copy of Guava makes a list of it.
        relocated = self._iceberg.relocated.com.google.common.collect
        return relocated.ImmutableList.copyOf(reader.readAll(metadata.blobs()))

    def _blob(self, blob: Blob) -> Any:
        return self._iceberg.puffin.Blob(
            blob.type,
            list(blob.fields),
            blob.snapshot_id,
            blob.sequence_number,
            self._jvm.java.nio.ByteBuffer.wrap(blob.payload),
            None if blob.codec is None else self._codec(blob.codec),
            self._ordered(blob.properties),
        )

    def _codec(self, name: str | None) -> Any:
        return self._iceberg.puffin.PuffinCompressionCodec.forName(None if name == "none" else name)

    def _ordered(self, values: Mapping[str, str]) -> Any:
        """A map that keeps its order, which py4j's own conversion would lose."""
        ordered = self._jvm.java.util.LinkedHashMap()
        for key, value in values.items():
            ordered.put(key, value)
        return ordered

    # -- deletion vectors

    def positions(self, payload: bytes, cardinality: int) -> NDArray[np.int64]:
        """Decode a deletion vector with Java's index, and return all of its positions."""
        index = self._index(payload, cardinality)
        assert index.cardinality() == cardinality
        found = self._jvm.java.util.stream.LongStream.builder()  # a LongConsumer that the JDK brings
        index.forEach(found)
        array = found.build().toArray()
        buffer = self._jvm.java.nio.ByteBuffer.allocate(8 * len(array))
        buffer.order(self._jvm.java.nio.ByteOrder.LITTLE_ENDIAN).asLongBuffer().put(array)
        return np.frombuffer(bytes(buffer.array()), "<i8")

    def reserialize(self, payload: bytes, cardinality: int) -> bytes:
        """Decode a deletion vector with Java's index, and encode it with the same."""
        return bytes(self._index(payload, cardinality).serialize().array())

    def serialize_ranges(self, ranges: Iterable[tuple[int, int]]) -> bytes:
        """Encode a deletion vector of the positions in *ranges* (start, stop)."""
        index = self._iceberg.deletes.PositionDeleteIndexUtil.merge([])  # the public way to a new index
        for start, stop in ranges:
            index.delete(start, stop)
        return bytes(index.serialize().array())

    def _index(self, payload: bytes, cardinality: int) -> Any:
        file = self.delete_file("x.puffin", 0, "x.parquet", 4, len(payload), cardinality)
        return self._iceberg.deletes.PositionDeleteIndex.deserialize(payload, file)

    def delete_file(
        self, path: str, size: int, data_file: str, offset: int, length: int, cardinality: int
    ) -> Any:
        """Describe a deletion vector of an unpartitioned table, as a manifest would."""
        return (
            self._iceberg.FileMetadata.deleteFileBuilder(self._iceberg.PartitionSpec.unpartitioned())
            .ofPositionDeletes()
            .withFormat("puffin")
            .withPath(path)
            .withFileSizeInBytes(size)
            .withReferencedDataFile(data_file)
            .withContentOffset(offset)
            .withContentSizeInBytes(length)
            .withRecordCount(cardinality)
            .build()
        )

    # -- theta sketches

    def theta(self, payload: bytes, *, wrap: bool = False) -> JavaSketch:
        """Decode a theta sketch with the DataSketches that Iceberg ships."""
        shaded = self._iceberg.shaded.org.apache.datasketches
        compact = shaded.theta.CompactSketch
        sketch = (compact.wrap if wrap else compact.heapify)(shaded.memory.Memory.wrap(payload))
        return JavaSketch(
            sketch.getEstimate(),
            sketch.getThetaLong(),
            sketch.getRetainedEntries(),
            {d: (sketch.getLowerBound(d), sketch.getUpperBound(d)) for d in (1, 2, 3)},
            bytes(sketch.toByteArray()),
            bytes(sketch.toByteArrayCompressed()),
        )

    # -- HLL sketches, of the DataSketches that Spark ships: Iceberg's copy has none

    def hll(self, *payloads: bytes, lg_k: int = 21, kind: str | None = None) -> JavaHll:
        """Decode an HLL sketch, or the union of several, as one of *kind*; none says the first one's."""
        hll = self._jvm.org.apache.datasketches.hll
        sketches = [hll.HllSketch.heapify(payload) for payload in payloads]
        sketch = sketches[0]
        target = hll.TgtHllType.valueOf(kind or sketch.getTgtHllType().name())
        if len(sketches) > 1:
            union = hll.Union(lg_k)
            for each in sketches:
                union.update(each)
            sketch = union.getResult(target)
        sketch = sketch.copyAs(target)
        return JavaHll(
            sketch.getEstimate(),
            {d: (sketch.getLowerBound(d), sketch.getUpperBound(d)) for d in (1, 2, 3)},
            sketch.getLgConfigK(),
            sketch.getTgtHllType().name(),
            bytes(sketch.toCompactByteArray()),
            bytes(sketch.toUpdatableByteArray()),
        )

    # -- tables

    def table(self, name: str) -> Any:
        """Load a table as Spark's catalog knows it."""
        return self._iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, name)

    def create_table(
        self,
        name: str,
        schema: Mapping[str, Any],
        properties: Mapping[str, str] | None = None,
        partitions: Sequence[Sequence[Any]] = (),
    ) -> None:
        """Create a table of any types, which are given as Iceberg's JSON has them.

        Partitions are calls of the builder of a spec, such as `("bucket", "id", 4)`.
        """
        catalog, _, short = name.partition(".")
        made = self._iceberg.SchemaParser.fromJson(json.dumps(schema))
        spec = self._iceberg.PartitionSpec.builderFor(made)
        for transform, *arguments in partitions:
            spec = getattr(spec, transform)(*arguments)
        self._iceberg.spark.Spark3Util.loadIcebergCatalog(self._spark._jsparkSession, catalog).createTable(
            self._iceberg.catalog.TableIdentifier.parse(short),
            made,
            spec.build(),
            self._ordered(properties or {}),
        )

    def add_column(self, name: str, schema: Mapping[str, Any], parent: str | None = None) -> None:
        """Add the one column of a schema to a table, or to its struct *parent*."""
        (column,) = self._iceberg.SchemaParser.fromJson(json.dumps(schema)).columns()
        update = self.table(name).updateSchema()
        if parent is None:
            update.addColumn(column.name(), column.type()).commit()
        else:
            update.addColumn(parent, column.name(), column.type()).commit()
        self._spark.catalog.refreshTable(name)

    def commit_deletes(self, name: str, delete_files: Iterable[Any]) -> None:
        """Add delete files to a table."""
        delta = self.table(name).newRowDelta()
        for file in delete_files:
            delta.addDeletes(file)
        delta.commit()

    def append_manifest(self, name: str, path: str, files: Sequence[tuple[str, int]] = ()) -> None:
        """Commit a manifest as it is; it is written first if *files* (data files and their rows) are given.

        Its entries inherit snapshot and sequence number, so it can be committed again.
        """
        table = self.table(name)
        target = table.io().newOutputFile(path)
        if files:
            writer = self._iceberg.ManifestFiles.write(2, table.spec(), target, None)
            for location, rows in files:
                size = Path(location).stat().st_size
                builder = self._iceberg.DataFiles.builder(table.spec()).withPath(location)
                writer.add(builder.withFileSizeInBytes(size).withRecordCount(rows).build())
            writer.close()
            self._manifests[path] = writer.toManifestFile()
        table.newFastAppend().appendManifest(self._manifests[path]).commit()
        self._spark.catalog.refreshTable(name)

    def take_back_deletes(self, name: str) -> None:
        """Remove every delete file, so that the rows are there again."""
        copy_of = self._iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
        table = self.table(name)
        delta = table.newRowDelta()
        for task in copy_of(table.newScan().planFiles()):
            for file in task.deletes():
                delta.removeDeletes(file)
        delta.commit()
        self._spark.catalog.refreshTable(name)

    def planned_deletes(self, name: str) -> dict[str, set[tuple[str, int]]]:
        """For each data file of a scan, the delete files (and offsets in them) that Java attaches to it."""
        copy_of = self._iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
        found = {}
        for task in copy_of(self.table(name).newScan().planFiles()):
            deletes = {(file.location(), file.contentOffset() or 0) for file in task.deletes()}
            found[task.file().location()] = deletes
        return found

    def equality_deletes(
        self, name: str, path: str, columns: Sequence[str], rows: int, partition: str = ""
    ) -> Any:
        """Describe a Parquet file of deleted values, in a partition (`part=1`) if the table has them."""
        table = self.table(name)
        ids = self._spark.sparkContext._gateway.new_array(self._jvm.int, len(columns))
        for position, column in enumerate(columns):
            ids[position] = table.schema().findField(column).fieldId()
        builder = self._iceberg.FileMetadata.deleteFileBuilder(table.spec())
        if partition:
            builder = builder.withPartitionPath(partition)
        return (
            builder.ofEqualityDeletes(ids)
            .withFormat("parquet")
            .withPath(path)
            .withFileSizeInBytes(Path(path).stat().st_size)
            .withRecordCount(rows)
            .build()
        )

    def remove_files(self, name: str, ends: Sequence[str]) -> None:
        """Take the data files out of a table whose paths end in one of *ends*."""
        table = self.table(name)
        table.refresh()
        copy_of = self._iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
        deletion = table.newDelete()
        for task in copy_of(table.newScan().planFiles()):
            if str(task.file().location()).endswith(tuple(ends)):
                deletion.deleteFile(task.file())
        deletion.commit()

    def add_column_with_default(
        self, name: str, column: str, value: Any, kind: str = "int", parent: str | None = None
    ) -> None:
        """Add a column, or a field of the struct *parent*, that rows written before it have a value in."""
        of = self._iceberg.types.Types.fromPrimitiveString(kind)
        literal = self._iceberg.expressions.Literal.of(value).to(of)
        update = self.table(name).updateSchema()
        if parent is None:
            update = update.addColumn(column, of, None, literal)
        else:
            update = update.addColumn(parent, column, of, None, literal)
        update.commit()
        self._spark.catalog.refreshTable(name)

    def register_statistics(self, name: str, snapshot_id: int, written: WrittenFile) -> None:
        """Make a written file the statistics of a snapshot; Java reads the blobs' metadata itself."""
        table = self.table(name)
        reader = self._iceberg.puffin.Puffin.read(table.io().newInputFile(written.location)).build()
        blobs = self._iceberg.GenericBlobMetadata.__getattr__("from")(reader.fileMetadata().blobs())
        reader.close()
        statistics = self._iceberg.GenericStatisticsFile(
            snapshot_id, written.location, written.size, written.footer_size, blobs
        )
        table.updateStatistics().setStatistics(statistics).commit()


def _file_metadata(document: Mapping[str, Any]) -> FileMetadata:
    return FileMetadata(
        tuple(
            BlobMetadata(
                blob["type"],
                tuple(blob["fields"]),
                blob["snapshot-id"],
                blob["sequence-number"],
                blob["offset"],
                blob["length"],
                blob.get("compression-codec"),
                blob.get("properties", {}),
            )
            for blob in document["blobs"]
        ),
        document.get("properties", {}),
    )
