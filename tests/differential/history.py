"""A table with a past: commits, deletes, changes of schema and of partitioning, analyses at odd moments."""

from __future__ import annotations

import copy
import random
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from rookery.sketch.typing import base_type
from tests.differential.columns import Column, Path, leaf, make, paths, quoted, rows
from tests.differential.predicates import Predicates
from tests.interop.java import IcebergJava
from tests.prune import typed

_BUCKETED = ("int", "long", "decimal", "date", "timestamp", "timestamptz", "string", "binary")
_TRUNCATED = ("int", "long", "decimal", "string", "binary")
_TIMES = ("date", "timestamp", "timestamptz")
_WIDER = {"int": ("long",), "float": ("double",), "decimal(4, 2)": ("decimal(9, 2)", "decimal(20, 2)")}
_WIDER["decimal(9, 3)"] = ("decimal(18, 3)", "decimal(38, 3)")
_LONGEST_FOLDER = 150


@dataclass(frozen=True)
class World:
    """What the tables live in."""

    spark: SparkSession
    lake: Lake
    java: IcebergJava


@dataclass
class Version:
    """What a snapshot has: its columns as they were."""

    snapshot: int
    columns: list[Column]


@dataclass
class History:
    """Makes a table step by step; every step is noted."""

    world: World
    rng: random.Random
    name: str
    columns: list[Column] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    _parts: list[tuple[str, str]] = field(default_factory=list)  # how, and of which column
    _fresh: int = 0
    _format: int = 2

    def build(self) -> None:
        """Create the table and give it a past."""
        self._create()
        self._append()
        actions: list[tuple[Callable[[], None], int]] = [
            (self._append, 6),
            (self._delete, 4),
            (self._delete_equal, 2),
            (self._change_columns, 4),
            (self._change_partitions, 4),
            (self._index, 4),
            (self._analyze, 3),
            (self._set_property, 1),
            (self._roll_back, 1),
            (self._rewrite, 1),
        ]
        weighted = [action for action, weight in actions for _ in range(weight)]
        for _ in range(self.rng.randrange(3, 10)):
            self.rng.choice(weighted)()
        if self.rng.random() < 0.5:
            self._analyze()
            if self.rng.random() < 0.3:
                self._append()

    # -- steps

    def _sql(self, text: str, *, may_fail: bool = False) -> bool:
        self.steps.append(text)
        try:
            self.world.spark.sql(text)
        except PySparkException as error:
            if not may_fail:
                raise
            self.steps.append(f"-- refused: {str(error).splitlines()[0][:150]}")
            return False
        return True

    def _commit(self) -> None:
        current = self.world.lake.load(self.name).current_snapshot()
        if current is not None and current.snapshot_id not in {each.snapshot for each in self.versions}:
            self.versions.append(Version(current.snapshot_id, copy.deepcopy(self.columns)))

    def _create(self) -> None:
        rng = self.rng
        self._format = rng.choice((1, 2, 2, 3, 3))
        names = ["c0", "C1", "c2", "weird name", "a.b", "c5", "c6"][: rng.randrange(2, 8)]
        self.columns = [leaf(rng, "id", rng.choice(("int", "long"))), *(make(rng, name) for name in names)]
        properties = {"format-version": str(self._format)} | self._layout()
        listed = ", ".join(f"{quoted(column.name)} {column.spark}" for column in self.columns)
        said = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        self._sql(f"CREATE TABLE {self.name} ({listed}) USING iceberg TBLPROPERTIES ({said})")
        for _ in range(rng.choice((0, 0, 1, 2))):
            self._add_part()

    def _layout(self) -> dict[str, str]:
        """How files are written: small pages and row groups, few statistics, modes of deleting."""
        rng = self.rng
        said = {
            "write.distribution-mode": rng.choice(("none", "hash")),
            "write.spark.fanout.enabled": "true",
            "write.metadata.metrics.default": rng.choice(
                ("truncate(16)", "truncate(16)", "truncate(2)", "full", "counts", "none")
            ),
            "write.delete.mode": rng.choice(("merge-on-read", "merge-on-read", "copy-on-write")),
            "write.delete.granularity": rng.choice(("file", "partition")),
            "write.parquet.page-row-limit": rng.choice(("20000", "7", "2")),
            "write.parquet.dict-size-bytes": rng.choice(("2097152", "64")),
            "write.parquet.compression-codec": rng.choice(("zstd", "snappy", "uncompressed", "gzip")),
        }
        if rng.random() < 0.5:
            said |= {
                "write.parquet.row-group-size-bytes": "600",
                "write.parquet.row-group-check-min-record-count": "5",
                "write.parquet.row-group-check-max-record-count": "10",
            }
        for path in paths(self.columns):
            if rng.random() < 0.2 and path.column.kind != "boolean":
                said[f"write.parquet.bloom-filter-enabled.column.{'.'.join(path.names)}"] = "true"
        return said

    def _append(self) -> None:
        rng = self.rng
        # Partitions make a file of almost every row: few rows then, as many files cost the most time.
        table = rows(rng, self.columns, rng.choice((1, 3, 8) if self._parts else (1, 5, 20, 60, 120)))
        files = rng.choice((1, 1, 2, 3))
        self.steps.append(f"-- append {table.num_rows} rows, {files} tasks")
        frame = self.world.spark.createDataFrame(table)
        frame = frame.coalesce(1) if files == 1 else frame.repartition(files)
        frame.writeTo(self.name).append()
        self._commit()

    def _delete(self) -> None:
        asked = Predicates(self.rng, self.columns).make(1)
        if self._sql(f"DELETE FROM {self.name} WHERE {asked.sql}", may_fail=True):
            self._commit()

    def _delete_equal(self) -> None:
        """Deletes by equality, as Flink writes them: the values in a Parquet file, committed by Java."""
        rng = self.rng
        flat = [path for path in paths(self.columns) if path.column.kind not in ("float", "double")]
        flat = [path for path in flat if len(path.names) == 1 and "." not in path.names[0]]
        if not flat or self._format == 1:
            return
        chosen = rng.sample(flat, min(len(flat), rng.choice((1, 1, 2))))
        count = rng.randrange(1, 5)
        values = [[self._some(path.column) for _ in range(count)] for path in chosen]
        place = rng.random()
        self.steps.append(
            f"-- delete where {[path.names[0] for path in chosen]} are {list(zip(*values, strict=True))}"
        )
        loaded = self.world.lake.load(self.name)
        arrays, fields = [], []
        for path, given in zip(chosen, values, strict=True):
            array = typed.stored(path.column.kind, given)
            number = str(loaded.schema().find_field(path.names[0]).field_id)
            arrays.append(array)
            fields.append(pa.field(path.names[0], array.type, metadata={"PARQUET:field_id": number}))
        folder = FilePath(loaded.location().removeprefix("file:"))
        file = folder / f"data/equality-{len(self.steps)}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), file)
        if self._commit_equal(str(file), [path.names[0] for path in chosen], count, place):
            self._commit()

    def _some(self, column: Column) -> Any:
        return None if self.rng.random() < 0.1 else self.rng.choice(column.values)

    def _commit_equal(self, file: str, names: list[str], count: int, place: float) -> bool:
        """Add the file to a partition of the current spec, or to the whole table if that has none."""
        java = self.world.java
        table = java.table(self.name)
        table.refresh()
        gateway: Any = self.world.spark.sparkContext._gateway
        jvm: Any = self.world.spark._jvm
        ids = gateway.new_array(jvm.int, len(names))
        for position, name in enumerate(names):
            ids[position] = table.schema().findField(name).fieldId()
        builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        if table.spec().isPartitioned():
            copy_of = jvm.org.apache.iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
            found = [task.file() for task in copy_of(table.newScan().planFiles())]
            found = [each for each in found if each.specId() == table.spec().specId()]
            if not found:
                return False
            found.sort(key=lambda each: str(table.spec().partitionToPath(each.partition())))
            builder = builder.withPartition(found[int(place * len(found))].partition())
        built = (
            builder.ofEqualityDeletes(ids)
            .withFormat("parquet")
            .withPath(file)
            .withFileSizeInBytes(FilePath(file).stat().st_size)
            .withRecordCount(count)
            .build()
        )
        table.newRowDelta().addDeletes(built).commit()
        self.world.spark.catalog.refreshTable(self.name)
        return True

    def _change_columns(self) -> None:
        rng = self.rng
        change = rng.choice(
            (self._add, self._add, self._drop, self._rename, self._move, self._widen, self._widen)
        )
        change()

    def _new_name(self) -> str:
        self._fresh += 1
        return f"n{self._fresh}"

    def _add(self) -> None:
        rng = self.rng
        structs = [column for column in self.columns if column.kind == "struct"]
        column = make(rng, self._new_name())
        if structs and rng.random() < 0.3:
            home = rng.choice(structs)
            full = f"{quoted(home.name)}.{quoted(column.name)}"
            if self._sql(f"ALTER TABLE {self.name} ADD COLUMN {full} {column.spark}"):
                home.children.append(column)
            return
        if self._format == 3 and rng.random() < 0.5:
            column = leaf(rng, column.name, rng.choice(("int", "long", "string", "double", "boolean")))
            self._add_with_default(column)
            return
        where = rng.choice(("", " FIRST", f" AFTER {quoted(self.columns[0].name)}"))
        self._sql(f"ALTER TABLE {self.name} ADD COLUMN {quoted(column.name)} {column.spark}{where}")
        place = {"": len(self.columns), " FIRST": 0}.get(where, 1)
        self.columns.insert(place, column)

    def _add_with_default(self, column: Column) -> None:
        types = self.world.spark._jvm.org.apache.iceberg.types.Types  # type: ignore[union-attr]
        literals: Any = self.world.spark._jvm.org.apache.iceberg.expressions.Literal  # type: ignore[union-attr]
        kinds = {
            "int": types.IntegerType,
            "long": types.LongType,
            "string": types.StringType,
            "double": types.DoubleType,
            "boolean": types.BooleanType,
        }
        kind = kinds[column.kind].get()
        value = column.values[0]
        self.steps.append(f"-- add column {column.name} {column.kind} with default {value!r}")
        table = self.world.java.table(self.name)
        literal = literals.of(value)
        literal = literal.to(kind) if column.kind in ("long", "int") else literal
        table.updateSchema().addColumn(column.name, kind, None, literal).commit()
        self.world.spark.catalog.refreshTable(self.name)
        self.columns.append(column)

    def _sources(self) -> set[str]:
        return {name for _, name in self._parts}

    def _drop(self) -> None:
        able = [c for c in self.columns[1:] if c.name != "id" and quoted(c.name) not in self._sources()]
        able = [c for c in able if not any(s.startswith(quoted(c.name) + ".") for s in self._sources())]
        if len(able) < 2:
            return
        gone = self.rng.choice(able)
        if self._sql(f"ALTER TABLE {self.name} DROP COLUMN {quoted(gone.name)}", may_fail=True):
            self.columns.remove(gone)
            if self.rng.random() < 0.3:  # another of the same name is another column
                again = leaf(self.rng, gone.name, self.rng.choice(("int", "string", "double")))
                self._sql(f"ALTER TABLE {self.name} ADD COLUMN {quoted(again.name)} {again.spark}")
                self.columns.append(again)

    def _rename(self) -> None:
        able = [column for column in self.columns if quoted(column.name) not in self._sources()]
        able = [c for c in able if not any(s.startswith(quoted(c.name) + ".") for s in self._sources())]
        if able:
            column, name = self.rng.choice(able), self._new_name()
            self._sql(f"ALTER TABLE {self.name} RENAME COLUMN {quoted(column.name)} TO {quoted(name)}")
            column.name = name

    def _move(self) -> None:
        column = self.rng.choice(self.columns)
        if self._sql(f"ALTER TABLE {self.name} ALTER COLUMN {quoted(column.name)} FIRST"):
            self.columns.remove(column)
            self.columns.insert(0, column)

    def _widen(self) -> None:
        able = [path for path in paths(self.columns) if path.column.kind in _WIDER]
        if able:
            path = self.rng.choice(able)
            wider = Column("", self.rng.choice(_WIDER[path.column.kind]))
            done = self._sql(
                f"ALTER TABLE {self.name} ALTER COLUMN {path.sql} TYPE {wider.spark}", may_fail=True
            )
            if done:
                path.column.kind = wider.kind

    def _change_partitions(self) -> None:
        rng = self.rng
        if not self._parts or rng.random() < 0.5:
            self._add_part()
            return
        old = rng.choice(self._parts)
        if rng.random() < 0.5:
            if self._sql(f"ALTER TABLE {self.name} DROP PARTITION FIELD {old[0]}", may_fail=True):
                self._parts.remove(old)
            return
        new = self._transform()
        if new is not None and new not in self._parts:
            done = self._sql(
                f"ALTER TABLE {self.name} REPLACE PARTITION FIELD {old[0]} WITH {new[0]}", may_fail=True
            )
            if done:
                self._parts[self._parts.index(old)] = new

    def _add_part(self) -> None:
        new = self._transform()
        if new is None or new in self._parts:
            return
        if self._sql(f"ALTER TABLE {self.name} ADD PARTITION FIELD {new[0]}", may_fail=True):
            self._parts.append(new)

    def _transform(self) -> tuple[str, str] | None:
        path = self.rng.choice(list(paths(self.columns)))
        options = list(self._options(path))
        return (self.rng.choice(options), path.sql) if options else None

    def _options(self, path: Path) -> Iterator[str]:
        base, name = base_type(path.column.kind), path.sql
        if base in _BUCKETED:
            yield f"bucket({self.rng.choice((2, 5))}, {name})"
        if base in _TRUNCATED:
            yield f"truncate({self.rng.choice((1, 3, 10))}, {name})"
        if base in _TIMES:
            yield from (f"years({name})", f"months({name})", f"days({name})")
            if base != "date":
                yield f"hours({name})"
        longest = max((len(urllib.parse.quote(str(value))) for value in path.column.values), default=0)
        if longest < _LONGEST_FOLDER:
            yield name

    def _index(self) -> None:
        rng = self.rng
        path = rng.choice([path for path in paths(self.columns) if path.column.kind != "boolean"] or [None])
        if path is None:
            return
        kind = rng.choice(("bloom", "bitmap"))
        handle = rookery.table(self.name, self.world.lake)
        self.steps.append(f"-- {kind} index on {'.'.join(path.names)}")
        try:
            handle.add_index(kind, ".".join(path.names))
        except UsageError as error:
            self.steps.append(f"-- refused: {error}")
        if rng.random() < 0.7:
            self._analyze()

    def _analyze(self) -> None:
        self.steps.append("-- analyze")
        rookery.analyze(self.world.spark, self.name, lake=self.world.lake)

    def _set_property(self) -> None:
        for key, value in self._layout().items():
            if self.rng.random() < 0.3:
                self._sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{key}'='{value}')")

    def _roll_back(self) -> None:
        if len(self.versions) > 1 and self.rng.random() < 0.5:
            current = self.world.lake.load(self.name).current_snapshot()
            ids = [each.snapshot for each in self.versions]
            if current is not None and current.snapshot_id in ids[1:]:
                target = ids[ids.index(current.snapshot_id) - 1]
                short = self.name.removeprefix("lake.")
                call = f"CALL lake.system.rollback_to_snapshot('{short}', {target})"
                self._sql(call, may_fail=True)

    def _rewrite(self) -> None:
        short = self.name.removeprefix("lake.")
        call = self.rng.choice(("rewrite_manifests('{}')", "rewrite_data_files('{}')"))
        if self._sql(f"CALL lake.system.{call.format(short)}", may_fail=True):
            self._commit()
