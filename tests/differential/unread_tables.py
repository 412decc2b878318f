"""Tables with columns that Spark cannot read, made by Iceberg's Java library and by PyIceberg.

What is true of them is known from what was written: each row with the file that it lies in, less the rows
that were deleted since, for every snapshot and branch.
"""

from __future__ import annotations

import copy
import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import rookery
from rookery.io import local_path
from rookery.model import Value
from rookery.puffin import Blob
from tests.differential.columns import Column, leaf, schema_of
from tests.differential.truth import path_of
from tests.differential.world import World
from tests.prune import typed

KINDS = {"u": "uuid", "f": "fixed[4]", "t": "time", "n": "timestamp_ns", "z": "timestamptz_ns"}
MAIN = "main"
_OF_VERSION_3 = ("n", "z")
_SECOND = 1_000_000_000
_PARTITIONS: Sequence[Sequence[Any]] = (
    ("identity", "u"),
    ("bucket", "u", 3),
    ("bucket", "f", 3),
    ("identity", "t"),
    ("bucket", "t", 3),
    ("identity", "n"),
    ("day", "n"),
    ("hour", "n"),
    ("bucket", "n", 3),
    ("identity", "z"),
    ("month", "z"),
    ("year", "z"),
)
_FILE_PATH = pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"})
_POSITION = pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"})


@dataclass(frozen=True)
class Row:
    """A row: its number, its values in the form that predicates have, and where it lies."""

    number: int
    values: Mapping[str, Value | None]
    file: str
    position: int


@dataclass
class UnreadTable:
    """A table that is made step by step, and the rows of each of its branches and snapshots."""

    world: World
    rng: random.Random
    name: str
    version: int = 2
    columns: dict[str, Column] = field(default_factory=dict)
    partitions: list[Sequence[Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=lambda: {MAIN: []})  # by branch
    versions: dict[int, list[Row]] = field(default_factory=dict)  # by snapshot
    formats: Sequence[str] = ("parquet",)
    by_pyiceberg: bool = False  # some files
    removed: bool = False  # some rows, of files that stay
    _next: int = 0
    _with_vectors: set[str] = field(default_factory=set)

    @property
    def kinds(self) -> dict[str, str]:
        """The columns that are asked about, and their types."""
        return {name: column.kind for name, column in self.columns.items()}

    def note(self, text: str) -> None:
        self.steps.append(f"-- {text}")

    def create(self) -> None:
        rng = self.rng
        self.version = rng.choice((2, 3, 3))
        names = [name for name in KINDS if self.version == 3 or name not in _OF_VERSION_3]
        self.columns = {name: leaf(rng, name, KINDS[name]) for name in names}
        able = [part for part in _PARTITIONS if part[1] in names]
        self.partitions = [rng.choice(able)] if rng.random() < 0.4 else []
        properties = {
            "format-version": str(self.version),
            "write.metadata.metrics.default": rng.choice(("truncate(16)", "truncate(2)", "full", "none")),
        }
        if rng.random() < 0.2:
            self.formats = ("parquet", "orc", "avro")
        self.by_pyiceberg = self.version == 2 and not self.partitions and rng.random() < 0.5
        if not self.by_pyiceberg and rng.random() < 0.5:
            properties |= {
                "write.parquet.row-group-size-bytes": "1",
                "write.parquet.row-group-check-min-record-count": "4",
                "write.parquet.row-group-check-max-record-count": "4",
            }
        schema = schema_of([Column("id", "int"), *self.columns.values()])
        self.note(f"create {self.name}, {properties}, {self.partitions}, {json.dumps(schema)}")
        self.world.java.create_table(self.name, schema, properties, self.partitions)

    # -- rows

    def append(self, branch: str = MAIN) -> None:
        """Append some rows: by PyIceberg where it can, or by Java."""
        rng = self.rng
        fresh = []
        some = {name: rng.sample(c.values, min(3, len(c.values))) for name, c in self.columns.items()}
        for _ in range(rng.choice((1, 3, 8, 16))):
            values = {name: None if rng.random() < 0.15 else rng.choice(some[name]) for name in self.columns}
            fresh.append((self._next, values))
            self._next += 1
        if branch == MAIN and self.by_pyiceberg and rng.random() < 0.5:
            self._append_by_pyiceberg(fresh)
        else:
            self._append_by_java(fresh, branch, rng.choice(self.formats))

    def _append_by_pyiceberg(self, fresh: Sequence[tuple[int, dict[str, Value | None]]]) -> None:
        self.note(f"by PyIceberg, append {fresh}")
        table = self.world.lake.load(self.name)
        arrays = [pa.array([number for number, _ in fresh], pa.int32())]
        for name, kind in self.kinds.items():
            arrays.append(typed.stored(kind, [values[name] for _, values in fresh]))
        table.append(pa.table(arrays, names=["id", *self.columns]))
        known = {row.file for rows in self.rows.values() for row in rows}
        tasks = self._listed(self._java().newScan().planFiles())
        paths = {path_of(task.file().location()) for task in tasks} - known
        for path in paths:
            numbers = pq.read_table(path, columns=["id"]).column(0).to_pylist()
            found = [(number, values) for number, values in fresh if number in numbers]
            self._lie(MAIN, path, found)
        self._committed(MAIN)

    def _append_by_java(
        self, fresh: Sequence[tuple[int, dict[str, Value | None]]], branch: str, form: str
    ) -> None:
        self.note(f"by Java, append to {branch} in {form} {fresh}")
        table, iceberg = self._java(), self._iceberg
        schema, spec = table.schema(), table.spec()
        wrapper = iceberg.data.InternalRecordWrapper(schema.asStruct())
        parts: dict[str, tuple[Any, list[tuple[tuple[int, dict[str, Value | None]], Any]]]] = {}
        for each in fresh:
            record = self._record(schema, *each)
            key = iceberg.PartitionKey(spec, schema)
            key.partition(wrapper.wrap(record))
            place = str(key.toPath()) if self.partitions else ""
            parts.setdefault(place, (key.copy(), []))[1].append((each, record))
        kind = iceberg.FileFormat.fromString(form)
        factory = iceberg.data.GenericFileWriterFactory.Builder(table).dataFileFormat(kind).build()
        append = table.newAppend() if branch == MAIN else table.newAppend().toBranch(branch)
        for key, records in parts.values():
            out = table.io().newOutputFile(f"{table.location()}/data/{uuid.uuid4().hex}.{form}")
            sealed = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(out)
            writer = factory.newDataWriter(sealed, spec, key if self.partitions else None)
            for _, record in records:
                writer.write(record)
            writer.close()
            append.appendFile(writer.toDataFile())
            self._lie(branch, path_of(out.location()), [each for each, _ in records])
        append.commit()
        self._committed(branch)

    def _lie(self, branch: str, file: str, rows: Sequence[tuple[int, dict[str, Value | None]]]) -> None:
        self.rows[branch] += [
            Row(number, values, file, position) for position, (number, values) in enumerate(rows)
        ]

    def _record(self, schema: Any, number: int, values: Mapping[str, Value | None]) -> Any:
        record = self._iceberg.data.GenericRecord.create(schema)
        record.setField("id", number)
        for name, value in values.items():
            if value is not None:
                record.setField(name, self._object(self.kinds[name], value))
        return record

    def _object(self, kind: str, value: Any) -> Any:
        """A value as Iceberg's generic records have it."""
        clock = self._jvm.java.time
        match kind:
            case "uuid":
                return self._jvm.java.util.UUID.fromString(str(uuid.UUID(bytes=value)))
            case "time":
                return clock.LocalTime.ofNanoOfDay(value * 1000)
            case "timestamp_ns" | "timestamptz_ns":
                seconds, nanos = divmod(value, _SECOND)
                local = clock.LocalDateTime.ofEpochSecond(seconds, nanos, clock.ZoneOffset.UTC)
                return local if kind == "timestamp_ns" else local.atOffset(clock.ZoneOffset.UTC)
        return value

    # -- deletes

    def delete(self, branch: str = MAIN) -> None:
        """Delete rows by their positions in one file, or those that have some values."""
        if self.rng.random() < 0.5:
            self._delete_positions(branch)
        elif not self.partitions:
            self._delete_equal(branch)

    def _delete_positions(self, branch: str) -> None:
        files = sorted({row.file for row in self.rows[branch]} - self._with_vectors)
        if not files:
            return
        file = self.rng.choice(files)
        gone = [row for row in self.rows[branch] if row.file == file and self.rng.random() < 0.4]
        if not gone:
            return
        self.note(f"delete from {branch} the positions {[row.position for row in gone]} of {file}")
        table = self._java()
        scan = table.newScan() if branch == MAIN else table.newScan().useRef(branch)
        (found,) = [
            task.file() for task in self._listed(scan.planFiles()) if path_of(task.file().location()) == file
        ]
        build = self._position_deletes if self.version == 2 else self._vector
        built = build(table, found, sorted(row.position for row in gone))
        delta = table.newRowDelta() if branch == MAIN else table.newRowDelta().toBranch(branch)
        delta.addDeletes(built).commit()
        if self.version == 3:
            self._with_vectors.add(file)  # which may have one only
        self._remove(branch, gone)

    def _position_deletes(self, table: Any, found: Any, positions: Sequence[int]) -> Any:
        file = f"{table.location()}/data/{uuid.uuid4().hex}-deletes.parquet"
        listed = {"file_path": [found.location()] * len(positions), "pos": list(positions)}
        pq.write_table(pa.table(listed, schema=pa.schema([_FILE_PATH, _POSITION])), local_path(file))
        return self._described(table, found, file, len(positions)).withFormat("parquet").build()

    def _vector(self, table: Any, found: Any, positions: Sequence[int]) -> Any:
        java = self.world.java
        payload = java.serialize_ranges([(position, position + 1) for position in positions])
        said = {"referenced-data-file": found.location(), "cardinality": str(len(positions))}
        blob = Blob("deletion-vector-v1", payload, (2147483645,), -1, -1, properties=said)
        written = java.write_puffin([blob])
        file = f"{table.location()}/data/{uuid.uuid4().hex}-deletes.puffin"
        Path(local_path(file)).write_bytes(written.data)
        described = self._described(table, found, file, len(positions)).withFormat("puffin")
        described = described.withReferencedDataFile(found.location())
        return described.withContentOffset(4).withContentSizeInBytes(len(payload)).build()

    def _described(self, table: Any, found: Any, file: str, count: int) -> Any:
        size = Path(local_path(file)).stat().st_size
        builder = self._iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofPositionDeletes()
        builder = builder.withPath(file).withFileSizeInBytes(size).withRecordCount(count)
        return builder.withPartition(found.partition()) if self.partitions else builder

    def _delete_equal(self, branch: str) -> None:
        names = self.rng.sample(list(self.columns), self.rng.choice((1, 1, 2)))
        wanted = [row.values for row in self.rng.sample(self.rows[branch], min(2, len(self.rows[branch])))]
        if not wanted:
            return
        keys = [tuple(values[name] for name in names) for values in wanted]
        self.note(f"delete from {branch} where {names} are {keys}")
        table, java = self._java(), self.world.java
        fields, arrays = [], []
        for place, name in enumerate(names):
            array = typed.stored(self.kinds[name], [key[place] for key in keys])
            number = str(table.schema().findField(name).fieldId())
            fields.append(pa.field(name, array.type, metadata={"PARQUET:field_id": number}))
            arrays.append(array)
        file = local_path(f"{table.location()}/data/{uuid.uuid4().hex}-equality.parquet")
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), file)
        built = java.equality_deletes(self.name, file, names, len(keys))
        delta = table.newRowDelta() if branch == MAIN else table.newRowDelta().toBranch(branch)
        delta.addDeletes(built).commit()
        gone = [row for row in self.rows[branch] if tuple(row.values[name] for name in names) in keys]
        self._remove(branch, gone)

    def _remove(self, branch: str, gone: Sequence[Row]) -> None:
        numbers = {row.number for row in gone}
        self.rows[branch] = [row for row in self.rows[branch] if row.number not in numbers]
        self.removed = True
        self._committed(branch)

    # -- snapshots

    def branch(self) -> None:
        """Let a branch go its own way for a step or two; what is known of the table is of main."""
        name = f"b{len(self.rows)}"
        self.note(f"create branch {name}")
        self._java().manageSnapshots().createBranch(name).commit()
        self.rows[name] = copy.copy(self.rows[MAIN])
        for _ in range(self.rng.choice((1, 2))):
            self.rng.choice((self.append, self.append, self.delete))(name)

    def analyze(self) -> None:
        if self.rng.random() < 0.5:
            kind, column = self.rng.choice(("bloom", "bitmap")), self.rng.choice(list(self.columns))
            self.note(f"{kind} index on {column}")
            rookery.table(self.name, self.world.lake).add_index(kind, column)
        self.note("analyze")
        rookery.analyze(self.world.spark, self.name, lake=self.world.lake)

    def _committed(self, branch: str) -> None:
        reference = self.world.lake.load(self.name).metadata.refs[branch]
        self.versions[reference.snapshot_id] = list(self.rows[branch])

    def drop(self) -> None:
        self.world.lake.catalog.drop_table(self.name.partition(".")[2])

    # -- Java

    @property
    def _jvm(self) -> Any:
        return self.world.spark._jvm

    @property
    def _iceberg(self) -> Any:
        return self._jvm.org.apache.iceberg

    def _java(self) -> Any:
        table = self.world.java.table(self.name)
        table.refresh()
        return table

    def _listed(self, found: Any) -> Any:
        return self._iceberg.relocated.com.google.common.collect.ImmutableList.copyOf(found)


def build(table: UnreadTable) -> None:
    """Create a table and give it a past."""
    rng = table.rng
    table.create()
    table.append()
    steps = (table.append, table.append, table.delete, table.analyze, table.branch)
    for _ in range(rng.choice((1, 3, 5))):
        rng.choice(steps)()
