"""A table with a past: what it is now, what it was, and every step that was taken."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from py4j.protocol import Py4JJavaError
from pyiceberg.transforms import IdentityTransform
from pyspark.errors import PySparkException

from rookery.model import Value
from tests.differential.columns import Column, leaf, make, paths, quoted, schema_of
from tests.differential.world import World
from tests.prune import typed

_KEYS = ("int", "long", "string", "date", "decimal(9, 3)")
_NAMES = ("c0", "C1", "c2", "weird name", "a.b", "c5")


@dataclass
class Version:
    """What a snapshot has: its columns as they were."""

    snapshot: int
    columns: list[Column]


@dataclass(frozen=True)
class Keys:
    """What the tables of one case have in common, so that their joins find something."""

    kind: str
    values: list[Value]

    @classmethod
    def draw(cls, rng: random.Random) -> Keys:
        kind = rng.choice(_KEYS)
        return cls(kind, typed.pool(rng, kind, rng.choice((3, 8, 20))))

    def column(self, rng: random.Random) -> Column:
        """A key column: all values or a part of them, whole numbers of either width."""
        kind = "long" if self.kind == "int" and rng.random() < 0.3 else self.kind
        some = rng.sample(self.values, rng.randrange(1, len(self.values) + 1))
        return Column("k", kind, list(some if rng.random() < 0.5 else self.values))


@dataclass
class History:
    """A table that is made step by step; every step is noted."""

    world: World
    rng: random.Random
    name: str
    keys: Keys
    twins: bool = False  # columns whose names differ by their case alone
    columns: list[Column] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    parts: list[tuple[str, str]] = field(default_factory=list)  # how, and of which column
    branches: list[str] = field(default_factory=list)
    removed: bool = False  # rows of files that stay
    orc: bool = False  # some files
    beyond_orc: bool = False  # what Iceberg does not read there: defaults, partitions by fields of structs
    format_version: int = 2
    _fresh: int = 0

    @property
    def short(self) -> str:
        """The name without that of the catalog."""
        return self.name.partition(".")[2]

    def sql(self, text: str, *, may_fail: bool = False) -> bool:
        """Run a statement; False if it may fail and does."""
        self.steps.append(text)
        try:
            self.world.spark.sql(text)
        except (PySparkException, Py4JJavaError) as error:  # of add_files the errors of tasks come unwrapped
            if not may_fail:
                raise
            self.refused(error)
            return False
        return True

    def partitioned_within_struct(self) -> bool:
        """Whether a field of a struct is, or was, partitioned by identity."""
        table = self.world.lake.load(self.name)
        top = {field.field_id for schema in table.schemas().values() for field in schema.fields}
        return any(
            isinstance(field.transform, IdentityTransform) and field.source_id not in top
            for spec in table.specs().values()
            for field in spec.fields
        )

    def note(self, text: str) -> None:
        self.steps.append(f"-- {text}")

    def refused(self, error: Exception) -> None:
        lines = str(error).splitlines() or [type(error).__name__]
        self.note(f"refused: {lines[0][:150]}")

    def changed(self) -> None:
        """Something was committed past Spark's catalog."""
        self.world.spark.catalog.refreshTable(self.name)

    def snapshot(self) -> int | None:
        current = self.world.lake.load(self.name).current_snapshot()
        return None if current is None else current.snapshot_id

    def committed(self) -> None:
        """Note the snapshot that is current now, if it is a new one."""
        current = self.snapshot()
        if current is not None:
            self.remember(current)

    def remember(self, snapshot: int) -> None:
        if snapshot not in {each.snapshot for each in self.versions}:
            self.versions.append(Version(snapshot, copy.deepcopy(self.columns)))

    def fresh_name(self) -> str:
        self._fresh += 1
        return f"n{self._fresh}"

    def folder(self) -> FilePath:
        return FilePath(self.world.lake.load(self.name).location().removeprefix("file:"))

    def create(self, names: Sequence[str] = _NAMES) -> None:
        """Create the table, with a key, the same key within a struct, and some columns of any type."""
        rng = self.rng
        self.format_version = rng.choice((1, 2, 2, 3, 3))
        names = names[: rng.randrange(1, len(names) + 1)]
        self.columns = [leaf(rng, "id", rng.choice(("int", "long"))), self.keys.column(rng)]
        if rng.random() < 0.6:
            inside = [self.keys.column(rng), make(rng, "v", depth=0), leaf(rng, "id", "int")]
            self.columns.append(Column("s", "struct", children=inside[: rng.randrange(1, 4)]))
        self.columns += [make(rng, name) for name in names]
        if self.twins:
            self.columns += [leaf(rng, "K", rng.choice(("int", "string"))), leaf(rng, "C0", "int")]
        properties = {"format-version": str(self.format_version)} | self.layout()
        listed = ", ".join(f"{quoted(column.name)} {column.spark}" for column in self.columns)
        said = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        text = f"CREATE TABLE {self.name} ({listed}) USING iceberg TBLPROPERTIES ({said})"
        if all(column.in_sql for column in self.columns):
            self.sql(text)
        else:
            schema = schema_of(self.columns)
            self.note(f"by Java, with the schema {json.dumps(schema)}: {text}")
            self.world.java.create_table(self.name, schema, properties)

    def layout(self) -> dict[str, str]:
        """How files are written: formats, small pages and row groups, few statistics, modes of deleting."""
        rng = self.rng
        metrics = ("truncate(16)", "truncate(16)", "truncate(2)", "full", "counts", "none")
        modes = ("merge-on-read", "merge-on-read", "copy-on-write")
        form = rng.choice((*["parquet"] * 7, "avro" if self.beyond_orc else "orc", "avro"))
        self.orc |= form == "orc"
        said = {
            "write.format.default": form,
            "write.distribution-mode": rng.choice(("none", "hash")),
            "write.spark.fanout.enabled": "true",
            "write.metadata.metrics.default": rng.choice(metrics),
            "write.delete.mode": rng.choice(modes),
            "write.update.mode": rng.choice(modes),
            "write.merge.mode": rng.choice(modes),
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
            dotted = ".".join(path.names)
            if rng.random() < 0.15 and path.column.kind != "boolean":
                said[f"write.parquet.bloom-filter-enabled.column.{dotted}"] = "true"
            if rng.random() < 0.1 and "." not in path.names[-1]:
                said[f"write.metadata.metrics.column.{dotted}"] = rng.choice(metrics)
        return said
