"""Tables of random rows, by PyIceberg: what each file holds is known, so that stages are held against it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.io.pyarrow import write_file
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import WriteTask
from pyiceberg.transforms import Transform

from rookery.model import Field, Predicate, Snapshot, Value
from rookery.model.cache import clear_caches
from rookery.prune.cascade import Pruning, Stage
from rookery.prune.fileset import FileSet, file_set
from rookery.tables import Table
from tests.collect.plain import PlainTable
from tests.prune import typed
from tests.where.naive import matches

KINDS = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(9, 0)",
    "decimal(38, 10)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "binary",
    "fixed[4]",
)
LEAST = (-(2**31), -(2**63))
PATHS_WITHOUT_PARTITIONS = {  # whose values may be longer than names of folders
    "write.object-storage.enabled": "true",
    "write.object-storage.partitioned-paths": "false",
}
Row = dict[str, Value | None]


class RandomTable(PlainTable):
    """A table with a column of each kind, named by its place, and the rows of every file by its path."""

    def __init__(self, folder: Path, kinds: Sequence[str] = KINDS, seed: str = "") -> None:
        self.kinds = {f"c{place}": kind for place, kind in enumerate(kinds)}
        super().__init__(
            folder, pa.schema([(name, typed.stored(kind, []).type) for name, kind in self.kinds.items()])
        )
        self.rng = random.Random(f"{seed} {kinds}")
        self.pools = {name: typed.pool(self.rng, kind, 12) for name, kind in self.kinds.items()}
        self.rows: dict[str, list[Row]] = {}

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.load().fields()

    def partition_by(self, **transforms: Transform[Any, Any]) -> None:
        """Partition new files by columns, and no longer by those of before.

        The least numbers, which PyIceberg cannot truncate, are not chosen.
        """
        for name in transforms:
            self.pools[name] = [each for each in self.pools[name] if each not in LEAST]
        with self.table.transaction() as change, change.update_spec() as update:
            change.set_properties(PATHS_WITHOUT_PARTITIONS)
            for part in self.table.spec().fields:
                update.remove_field(part.name)
            for column, transform in transforms.items():
                update.add_field(column, transform, f"{column} {transform} {uuid.uuid4().hex[:4]}")

    def random_rows(self, count: int) -> list[Row]:
        """Rows with few values of each column, of which some are null in every row."""
        few = {
            name: [None] if self.rng.random() < 0.1 else self.rng.sample(pool, 3)
            for name, pool in self.pools.items()
        }
        nulls = self.rng.choice((0.0, 0.2))
        return [
            {
                name: None if self.rng.random() < nulls else self.rng.choice(values)
                for name, values in few.items()
            }
            for _ in range(count)
        ]

    def append_rows(self, *files: Sequence[Row]) -> None:
        """Append files in one commit, and one manifest; each is split by its partitions."""
        parts = [part for rows in files for part in self._by_partition(rows)]
        with self.table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for number, (key, rows) in enumerate(parts):
                (written,) = write_file(
                    self.table.io,
                    self.table.metadata,
                    iter(
                        [WriteTask(uuid.uuid4(), number, self.table.schema(), [self._batch(rows)], None, key)]
                    ),
                )
                append.append_data_file(written)
                self.rows[written.file_path] = list(rows)

    def _batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        arrays = [typed.stored(kind, [row[name] for row in rows]) for name, kind in self.kinds.items()]
        return pa.record_batch(arrays, names=list(self.kinds))

    def _by_partition(self, rows: Sequence[Row]) -> list[tuple[PartitionKey | None, list[Row]]]:
        spec, schema = self.table.spec(), self.table.schema()
        if not spec.fields:
            return [(None, list(rows))]
        found: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            found.setdefault(tuple(self._partition_values(row)), []).append(row)
        return [
            (
                PartitionKey(
                    [PartitionFieldValue(f, v) for f, v in zip(spec.fields, key, strict=True)], spec, schema
                ),
                part,
            )
            for key, part in found.items()
        ]

    def _partition_values(self, row: Row) -> list[Any]:
        schema = self.table.schema()
        sources = [(part, schema.find_field(part.source_id)) for part in self.table.spec().fields]
        return [part.transform.transform(source.field_type)(row[source.name]) for part, source in sources]

    def predicate(self, depth: int = 2) -> Predicate:
        return typed.tree(self.rng, self.fields, self.pools, depth)

    def view(self) -> View:
        """The table as it is now, loaded once for many predicates."""
        table, snapshot = self.load(), self.snapshot()
        return View(self, table, snapshot, file_set(table, self.store, snapshot))


@dataclass(frozen=True)
class View:
    """A snapshot of a table, and its files as the stages see them."""

    made: RandomTable
    table: Table
    snapshot: Snapshot
    files: FileSet

    @cached_property
    def rows(self) -> list[list[Row]]:
        """The rows of each file."""
        return [self.made.rows[path] for path in self.files.files["path"].to_pylist()]

    def pruning(self, predicate: Predicate) -> Pruning:
        """A predicate before any stage."""
        everything = np.ones(len(self.files), bool)
        return Pruning(self.table, self.snapshot, self.files, predicate, everything, everything)

    def matching(self, predicate: Predicate) -> NDArray[np.bool_]:
        """Which files have a matching row, by asking each of their rows."""
        return np.array([any(matches(predicate, row) for row in rows) for rows in self.rows], bool)

    def left_out(self, stage: Stage, rounds: int) -> int:
        """Send random predicates through a stage: no file that it leaves out has a matching row."""
        left_out = 0
        for _ in range(rounds):
            predicate = typed.tree(self.made.rng, self.table.fields(), self.made.pools, 2)
            may_match, _ = stage(self.pruning(predicate))
            wrong = self.matching(predicate) & ~may_match
            assert not wrong.any(), (predicate, np.flatnonzero(wrong))
            left_out += int((~may_match).sum())
        return left_out


def random_table(folder: Path, kinds: Sequence[str] = KINDS, seed: str = "", commits: int = 5) -> RandomTable:
    """A table of several manifests, each of a few files."""
    clear_caches()
    table = RandomTable(folder, kinds, seed)
    for _ in range(commits):
        table.append_rows(
            *(table.random_rows(table.rng.choice((1, 6))) for _ in range(table.rng.choice((1, 3))))
        )
    return table
