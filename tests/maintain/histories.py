"""Tables with a past, by chance from a seed: driven through Spark, and watched all the while.

`python -m tests.maintain.histories --seconds 300` tries seeds until the time is over.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import rookery
from rookery.api.lake import Lake
from tests.interop.java import IcebergJava
from tests.maintain.against import CheckedTable
from tests.maintain.rows import ORDERS, PARTS, TYPES, WEIGHTS, expressions
from tests.maintain.seen import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400.0
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # Iceberg keeps deletes by equality in the types of the first who read them: after ALTER COLUMN … TYPE
    # they match nothing, and its own answer would be wrong.
    "spark.sql.iceberg.executor-cache.enabled": "false",
    "spark.sql.iceberg.executor-cache.delete-files.enabled": "false",
    "spark.sql.iceberg.merge-schema": "false",
}


@dataclass
class History:
    """Makes a table, and one step after the other."""

    spark: SparkSession
    lake: Lake
    java: IcebergJava
    name: str
    seed: int
    version: int = 0  # of the format; 0: by chance
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.numbers = itertools.count(1)
        self.version = self.version or self.rng.choice((1, 2, 2, 3, 3))
        self.columns = {name: name for name in TYPES}  # as they are named now, and what they hold
        self.narrow = {"few", "many"}  # columns that may still become bigint, as they are named now
        self.parts: list[str] = []
        self.refs: list[str] = []
        self.past: list[int] = []
        self._create()
        self.checked = CheckedTable(self.spark, self.lake, self.name, Witness(self.spark, self.name))

    # -- statements

    def _sql(self, text: str) -> None:
        short = re.sub(r"SELECT id AS .*? FROM range", "SELECT … FROM range", text)
        self.steps.append(re.sub("UPDATE SET t.*", "UPDATE … INSERT …", short))
        self.spark.sql(text.replace("TABLE_NAME", self.name))

    def _call(self, procedure: str, **arguments: object) -> None:
        said = "".join(f", {key} => {value}" for key, value in arguments.items())
        self._sql(f"CALL lake.system.{procedure}(table => 'TABLE_NAME'{said})")

    def _create(self) -> None:
        listed = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        rng = self.rng
        said = {
            "format-version": self.version,
            "write.distribution-mode": rng.choice(("none", "hash")),
            "write.spark.fanout.enabled": "true",
            "write.delete.granularity": rng.choice(("file", "partition")),
            "write.metadata.metrics.default": rng.choice(
                ("truncate(16)", "truncate(16)", "truncate(4)", "full", "counts", "none")
            ),
            "commit.manifest.min-count-to-merge": rng.choice((2, 100)),
            "write.metadata.delete-after-commit.enabled": "false",
        }
        listed_properties = ", ".join(f"'{key}'='{value}'" for key, value in said.items())
        by = f"PARTITIONED BY ({rng.choice(PARTS)})" if rng.random() < 0.4 else ""
        self.parts = [by[16:-1]] if by else []
        self._sql(
            f"CREATE TABLE TABLE_NAME ({listed}) USING iceberg {by} TBLPROPERTIES ({listed_properties})"
        )
        if rng.random() < 0.5:
            self.order()

    def _rows(self, start: int, count: int, tasks: int) -> str:
        said = expressions(self.rng.randrange(4))
        chosen = ", ".join(f"{said.get(of, of)} AS `{name}`" for name, of in self.columns.items())
        return f"SELECT {chosen} FROM range({start}, {start + count}, 1, {tasks})"

    def _current(self) -> int | None:
        loaded = self.lake.load(self.name).current_snapshot()
        return loaded.snapshot_id if loaded else None

    def _mode(self, what: str) -> None:
        modes = (
            ("copy-on-write",) if self.version == 1 else ("merge-on-read", "merge-on-read", "copy-on-write")
        )
        self._sql(
            f"ALTER TABLE TABLE_NAME SET TBLPROPERTIES ('write.{what}.mode'='{self.rng.choice(modes)}')"
        )

    # -- rows

    def append(self) -> None:
        """Add rows, some of them there already."""
        start = 50 * self.rng.randrange(12)
        count = self.rng.choice((1, 40, 150, 400))
        self._sql(f"INSERT INTO TABLE_NAME {self._rows(start, count, self.rng.choice((1, 1, 2, 3)))}")

    def upsert(self) -> None:
        """Change rows that are there, add those that are not."""
        self._mode("merge")
        rows = self._rows(50 * self.rng.randrange(12), self.rng.choice((10, 120)), 1)
        self._sql(
            f"MERGE INTO TABLE_NAME t USING (SELECT id AS key_of_source, * FROM ({rows})) s ON t.id = s.id "
            f"AND t.id % 2 = 0 WHEN MATCHED THEN UPDATE SET {self._set('s')} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(self.columns)}) VALUES "
            f"({', '.join(f's.`{name}`' for name in self.columns)})"
        )

    def _set(self, source: str) -> str:
        return ", ".join(f"t.`{name}` = {source}.`{name}`" for name in self.columns)

    def delete(self) -> None:
        """Delete rows here and there, all of a range, or nothing."""
        self._mode("delete")
        number = self.rng.randrange(600)
        wanted = self.rng.choice(
            (f"id % 7 = {number % 7}", f"id < {number}", f"id % 3 = 1 AND id > {number}", "id < 0")
        )
        self._sql(f"DELETE FROM TABLE_NAME WHERE {wanted}")

    def update(self) -> None:
        """Change some rows."""
        self._mode("update")
        self._sql(f"UPDATE TABLE_NAME SET id = id + 10000 WHERE id % 11 = {self.rng.randrange(11)}")

    def delete_equal(self) -> None:
        """Delete by equality, as Flink does."""
        if self.version == 1 or self._current() is None:
            return
        loaded = self.lake.load(self.name)
        folder = Path(loaded.location().removeprefix("file:")) / "data"
        folder.mkdir(parents=True, exist_ok=True)
        file = str(folder / f"equality-{next(self.numbers)}.parquet")
        values = [self.rng.randrange(600) for _ in range(5)]
        number = str(loaded.schema().find_field("id").field_id)
        schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": number})])
        pq.write_table(pa.table({"id": pa.array(values)}, schema=schema), file)
        self.steps.append(f"-- delete where id is one of {values}")
        self._commit_equal(file, len(values))

    def _commit_equal(self, file: str, count: int) -> None:
        """Add the file to a partition of the current spec, or to the whole table if that has none."""
        table = self.java.table(self.name)
        table.refresh()
        jvm: Any = self.spark._jvm
        ids = self.spark.sparkContext._gateway.new_array(jvm.int, 1)
        ids[0] = table.schema().findField("id").fieldId()
        builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        if table.spec().isPartitioned():
            copy_of = jvm.org.apache.iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
            found = [task.file() for task in copy_of(table.newScan().planFiles())]
            found = [each for each in found if each.specId() == table.spec().specId()]
            if not found:
                return
            found.sort(key=lambda each: str(table.spec().partitionToPath(each.partition())))
            builder = builder.withPartition(self.rng.choice(found).partition())
        built = (
            builder.ofEqualityDeletes(ids)
            .withFormat("parquet")
            .withPath(file)
            .withFileSizeInBytes(os.path.getsize(file))
            .withRecordCount(count)
            .build()
        )
        table.newRowDelta().addDeletes(built).commit()
        self.spark.catalog.refreshTable(self.name)

    # -- columns and partitions

    def change_columns(self) -> None:
        """Add, drop, rename or widen a column."""
        change = self.rng.choice(("add", "drop", "rename", "widen", "widen"))
        held = ("id", "few", "word", "day", "flag")  # partitions and orders may need them
        free = [name for name in self.columns if name not in held and name not in self._ordered()]
        if change == "add":
            name = f"n{next(self.numbers)}"
            self._sql(f"ALTER TABLE TABLE_NAME ADD COLUMN {name} {self.rng.choice(('string', 'bigint'))}")
            self.columns[name] = "many"
        elif change == "widen" and self.narrow:
            name = self.narrow.pop()
            self._sql(f"ALTER TABLE TABLE_NAME ALTER COLUMN {name} TYPE bigint")
        elif change == "drop" and len(free) > 3:
            name = self.rng.choice(free)
            self._sql(f"ALTER TABLE TABLE_NAME DROP COLUMN {name}")
            del self.columns[name]
            self.narrow -= {name}
        elif change == "rename" and free:
            name, to = self.rng.choice(free), f"r{next(self.numbers)}"
            self._sql(f"ALTER TABLE TABLE_NAME RENAME COLUMN {name} TO {to}")
            self.columns = {to if key == name else key: value for key, value in self.columns.items()}
            self.narrow = {to if key == name else key for key in self.narrow}

    def _ordered(self) -> set[str]:
        schema, order = self.lake.load(self.name).schema(), self.lake.load(self.name).sort_order()
        orders = self.lake.load(self.name).sort_orders().values()
        sources = {each.source_id for one in (order, *orders) for each in one.fields}
        return {schema.find_column_name(number) or "" for number in sources}

    def change_partitions(self) -> None:
        """Partition in another way."""
        if self.parts and self.rng.random() < 0.5:
            self._sql(f"ALTER TABLE TABLE_NAME DROP PARTITION FIELD {self.parts.pop()}")
            return
        free = [part for part in PARTS if part not in self.parts]
        if free and len(self.parts) < 2:
            self.parts.append(self.rng.choice(free))
            self._sql(f"ALTER TABLE TABLE_NAME ADD PARTITION FIELD {self.parts[-1]}")

    def order(self) -> None:
        """Declare an order."""
        able = [order for order in ORDERS if not hasattr(self, "checked") or self._has(order)]
        self._sql(f"ALTER TABLE TABLE_NAME WRITE ORDERED BY {self.rng.choice(able)}")

    def _has(self, order: str) -> bool:
        return all(
            name in self.columns
            for name in TYPES
            if name in order.replace("(", " ").replace(")", " ").split()
        )

    def upgrade(self) -> None:
        """To the next version of the format."""
        if self.version < 3:
            self.version += 1
            self._sql(f"ALTER TABLE TABLE_NAME SET TBLPROPERTIES ('format-version'='{self.version}')")

    # -- maintenance by others

    def compact(self) -> None:
        """Rewrite data files."""
        self._call("rewrite_data_files", options=self.rng.choice((
            "map('rewrite-all', 'true')", "map('min-input-files', '2')", "map('delete-file-threshold', '1')"
        )))  # fmt: skip

    def rewrite_more(self) -> None:
        """Rewrite manifests, or delete files."""
        if self.version == 2 and self.rng.random() < 0.5:
            self._call("rewrite_position_delete_files", options="map('rewrite-all', 'true')")
        else:
            self._call("rewrite_manifests")

    def roll_back(self) -> None:
        """Go back to a snapshot of before."""
        metadata = self.lake.load(self.name).metadata
        able = [each.snapshot_id for each in metadata.snapshots if each.snapshot_id in self._ancestors()]
        if len(able) > 1:
            self._call("rollback_to_snapshot", snapshot_id=self.rng.choice(able[:-1]))

    def _ancestors(self) -> set[int]:
        metadata = self.lake.load(self.name).metadata
        parents = {each.snapshot_id: each.parent_snapshot_id for each in metadata.snapshots}
        found, number = set(), metadata.current_snapshot_id
        while number in parents:
            found.add(number)
            number = parents[number]
        return found

    def branch(self) -> None:
        """Make a branch or a tag, or write to a branch."""
        if self._current() is None:
            return
        if self.refs and self.rng.random() < 0.5:
            rows = self._rows(50 * self.rng.randrange(12), 30, 1)
            self._sql(f"INSERT INTO TABLE_NAME.branch_{self.rng.choice(self.refs)} {rows}")
            return
        kind, name = self.rng.choice(("BRANCH", "TAG")), f"ref{next(self.numbers)}"
        self._sql(f"ALTER TABLE TABLE_NAME CREATE {kind} {name}")
        self.refs += [name] if kind == "BRANCH" else []

    def expire(self) -> None:
        """Let old snapshots go."""
        self._call(
            "expire_snapshots", older_than="TIMESTAMP '2100-01-01'", retain_last=self.rng.choice((1, 1, 2))
        )

    # -- statistics

    def others_statistics(self) -> None:
        """Statistics by Iceberg's own procedure, of all columns or of some: they replace what was there."""
        if self._current() is None:
            return
        some = self.rng.sample(sorted(self.columns), 2)
        listed = {} if self.rng.random() < 0.5 else {"columns": f"array('{some[0]}', '{some[1]}')"}
        self._call("compute_table_stats", **listed)
        self.checked.witness.note()

    def analyze(self) -> None:
        """Statistics of ours: of all columns, of some, of an older snapshot, or all read anew."""
        options: dict[str, Any] = {}
        choice = self.rng.random()
        if choice < 0.25:
            options["columns"] = self.rng.sample(sorted(self.columns), 3)
        elif choice < 0.35 and self._current() is not None:
            options["snapshot"] = self.rng.choice(sorted(self._ancestors()))
        elif choice < 0.45:
            options["full"] = True
        self.steps.append(f"-- analyze {options}")
        rookery.analyze(self.spark, self.name, lake=self.lake, **options)
        self.checked.witness.note()

    def index(self) -> None:
        """Declare an index; the next analysis builds it."""
        kind, column = self.rng.choice(
            (("bloom", "id"), ("bitmap", "few"), ("bloom", "word"), ("bitmap", "flag"))
        )
        self.steps.append(f"-- index {kind} on {column}")
        rookery.table(self.name, self.lake).add_index(kind, column)
        number = self.lake.load(self.name).schema().find_field(column).field_id
        self.checked.witness.declared.add((kind, number))
        self.checked.witness.note(declared=True)

    # -- all of it

    def by_chance(self, count: int) -> Iterator[str]:
        """So many kinds of steps, the frequent ones more often."""
        kinds = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]
        for _ in range(count):
            yield self.rng.choice(kinds)

    def live(self, kinds: Iterable[str]) -> Iterator[list[str]]:
        """Take steps of these kinds; yield the differences found, now and then, and at the end."""
        rng = self.rng
        self.append()
        for kind in kinds:
            getattr(self, kind)()
            if rng.random() < 0.5:
                yield self._look()
        yield self._look()

    def _look(self) -> list[str]:
        self.steps.append("-- look")
        return self.checked.differences(time.time() + self.rng.choice((0.0, 3 * DAY)))

    def told(self) -> str:
        """All steps so far."""
        return "\n".join([f"seed {self.seed}", *self.steps])


@contextmanager
def prepared(spark: SparkSession) -> Iterator[None]:
    """Settings for many small tables, and for answers that can be trusted."""
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


def explore(seconds: float, first: int, steps: int) -> int:
    """Try one seed after the other; print what is found, and return how often."""
    home = tempfile.mkdtemp(prefix="histories-")
    os.environ["ROOKERY_HOME"] = os.environ["PYICEBERG_HOME"] = home
    lake = rookery.connect("lake")
    spark = lake.spark()
    spark.sparkContext.setLogLevel("ERROR")
    java = IcebergJava(spark)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.h")
    end, finds, looks = time.monotonic() + seconds, 0, 0
    try:
        with prepared(spark):
            for seed in itertools.count(first):
                if time.monotonic() > end:
                    break
                found, count = _explored(History(spark, lake, java, f"lake.h.t{seed}", seed), steps)
                looks += count
                if found:
                    finds += 1
                    sys.stdout.write(found + "\n")
                    sys.stdout.flush()
        sys.stdout.write(f"{looks} looks at {seed - first} tables, {finds} finds\n")
    finally:
        spark.stop()
        shutil.rmtree(home, ignore_errors=True)
    return finds


def _explored(history: History, steps: int) -> tuple[str, int]:
    looks = 0
    try:
        for differences in history.live(history.by_chance(steps)):
            looks += 1
            if differences:
                return "\n".join([history.told(), *(f"  !! {each}" for each in differences)]), looks
    except Exception:  # noqa: BLE001 - a find too: the status must be told of any table
        return history.told() + "\n" + traceback.format_exc()[-3000:], looks
    finally:
        with suppress(Exception):
            history.spark.sql(f"DROP TABLE {history.name}")
    return "", looks


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    said = parser.parse_args()
    raise SystemExit(explore(said.seconds, said.seed, said.steps) > 0)
