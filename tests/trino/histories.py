"""Random histories written by Spark and Trino in turn, and what each engine then knows of the table.

`python -m tests.trino.histories --seconds 600` tries seeds until the time is over.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import rookery
from rookery.api.lake import Lake
from tests.interop.java import IcebergJava
from tests.maintain.against import planned_with
from tests.maintain.histories import History, prepared
from tests.maintain.rows import WEIGHTS
from tests.trino.client import Trino, TrinoError
from tests.trino.install import installation
from tests.trino.server import running

# What Spark does in a shared history, and what Trino does.
SPARK_WEIGHTS = {kind: WEIGHTS[kind] for kind in WEIGHTS if kind not in ("index", "order")}
TRINO_WEIGHTS = {
    "trino_insert": 6, "trino_delete": 4, "trino_update": 2, "trino_merge": 2, "trino_optimize": 2,
    "trino_analyze": 3, "trino_drop_statistics": 1, "trino_expire": 2, "trino_orphans": 1,
    "trino_columns": 3, "trino_partitions": 2,
}  # fmt: skip
PARTITIONS = (
    "ARRAY['few']",
    "ARRAY['bucket(id, 3)']",
    "ARRAY['truncate(word, 1)']",
    "ARRAY['month(day)']",
    "ARRAY[]",
)
# Trino 476 changes rows of version 2 alone, and does not maintain version 3.
REFUSED = re.compile(
    "not supported for Iceberg table format version > 2|updates require at least format version 2"
    "|Must use DVs for position deletes in V3|Unexpected PUFFIN file format"
)


def _expressions(salt: int) -> dict[str, str]:
    """What the columns hold of row `id`, in Trino's words."""
    h = f"abs(id * 7919 + {salt})"
    return {
        "id": "id",
        "few": f"CAST(if({h} % 11 = 0, NULL, {h} % 5) AS integer)",
        "many": f"CAST({h} % 900 AS integer)",
        "big": f"if(id % 13 = 0, NULL, id * 1000003 + {salt})",
        "word": f"if({h} % 9 = 0, NULL, if({h} % 7 = 0, '', concat('w', CAST({h} % 6 AS varchar))))",
        "name": f"concat('a name with a long beginning ', CAST({h} % 400 AS varchar))",
        "x": f"CASE {h} % 12 WHEN 0 THEN NULL WHEN 1 THEN -0e0 WHEN 2 THEN 0e0 WHEN 3 THEN nan() "
        f"ELSE ({h} % 50) / 4e0 END",
        "day": f"date_add('day', {h} % 70, DATE '2024-01-10')",
        "at": f"from_unixtime_nanos((1700000000000000 + id * 1000000 + {salt}) * 1000)",
        "amount": f"CAST(({h} % 300) / DECIMAL '4.00' AS decimal(12, 2))",
        "flag": f"if({h} % 4 = 0, NULL, {h} % 2 = 0)",
    }


@dataclass
class SharedHistory(History):
    """A table that Spark and Trino write in turn."""

    trino: Trino | None = None

    # -- statements to Trino

    def _trino(self, text: str) -> None:
        assert self.trino is not None
        self.steps.append(f"-- trino: {text}")
        try:
            self.trino.sql(text.replace("TABLE_NAME", self.name))
        except TrinoError as error:
            if not REFUSED.search(str(error)):
                raise
            self.steps.append(f"-- refused: {error}")
        self._see()

    def _see(self) -> None:
        """Spark keeps tables for some seconds; what is written of a snapshot is noted before it may go."""
        self.spark.catalog.refreshTable(self.name)
        self.checked.witness.note()

    def _trino_rows(self, count: int) -> str:
        said = _expressions(self.rng.randrange(4))
        start = 50 * self.rng.randrange(12)
        types = self._types()
        # A column that was added or widened has its own type.
        chosen = ", ".join(
            f'CAST({said[of]} AS {types[name]}) AS "{name}"' for name, of in self.columns.items()
        )
        return f"SELECT {chosen} FROM UNNEST(sequence(BIGINT '{start}', {start + count - 1})) AS r(id)"

    def _types(self) -> dict[str, str]:
        assert self.trino is not None
        return {row[0]: row[1] for row in self.trino.sql(f"DESCRIBE {self.name}")}

    def trino_insert(self) -> None:
        """Add rows."""
        self._trino(f"INSERT INTO TABLE_NAME {self._trino_rows(self.rng.choice((1, 40, 300)))}")

    def trino_delete(self) -> None:
        """Delete rows here and there, whole files, or none."""
        number = self.rng.randrange(600)
        wanted = self.rng.choice(
            (f"id % 7 = {number % 7}", f"id < {number}", f"few = {number % 5}", "id < 0")
        )
        self._trino(f"DELETE FROM TABLE_NAME WHERE {wanted}")

    def trino_update(self) -> None:
        """Change some rows."""
        self._trino(f"UPDATE TABLE_NAME SET id = id + 10000 WHERE id % 11 = {self.rng.randrange(11)}")

    def trino_merge(self) -> None:
        """Change rows that are there, add those that are not."""
        columns = ", ".join(f'"{name}"' for name in self.columns)
        values = ", ".join(f's."{name}"' for name in self.columns)
        self._trino(
            f"MERGE INTO TABLE_NAME t USING (SELECT *, row_number() OVER (PARTITION BY id) AS first FROM "
            f"({self._trino_rows(60)})) s ON t.id = s.id AND s.first = 1 AND t.id % 2 = 0 "
            f"WHEN MATCHED THEN UPDATE SET few = s.few "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
        )

    # -- maintenance by Trino

    def trino_optimize(self) -> None:
        """Rewrite small files."""
        self._trino("ALTER TABLE TABLE_NAME EXECUTE optimize(file_size_threshold => '10MB')")

    def trino_expire(self) -> None:
        """Let all snapshots go but those that a branch or tag needs."""
        self._trino("ALTER TABLE TABLE_NAME EXECUTE expire_snapshots(retention_threshold => '0s')")

    def trino_orphans(self) -> None:
        """Remove what no metadata names."""
        self._trino("ALTER TABLE TABLE_NAME EXECUTE remove_orphan_files(retention_threshold => '0s')")

    # -- columns and partitions by Trino

    def trino_columns(self) -> None:
        """Add, rename or drop a column."""
        change = self.rng.choice(("ADD", "RENAME", "DROP"))
        free = [name for name in self.columns if name not in ("id", "few", "word", "day", "flag")]
        name, new = self.rng.choice(free), f"t{next(self.numbers)}"
        if change == "ADD":
            self._trino(f"ALTER TABLE TABLE_NAME ADD COLUMN {new} {self.rng.choice(('bigint', 'varchar'))}")
            self.columns[new] = "many"
        elif change == "RENAME":
            self._trino(f"ALTER TABLE TABLE_NAME RENAME COLUMN {name} TO {new}")
            self.columns = {new if key == name else key: of for key, of in self.columns.items()}
            self.narrow = {new if key == name else key for key in self.narrow}
        elif len(free) > 3:
            self._trino(f"ALTER TABLE TABLE_NAME DROP COLUMN {name}")
            del self.columns[name]
            self.narrow -= {name}

    def trino_partitions(self) -> None:
        """Partition in another way."""
        self._trino(f"ALTER TABLE TABLE_NAME SET PROPERTIES partitioning = {self.rng.choice(PARTITIONS)}")
        self.parts = []  # Spark would have to know the names of the fields to drop them

    # -- statistics by Trino

    def trino_analyze(self) -> None:
        """Statistics of all columns or of some; Trino takes over those of the others."""
        if self._current() is None:
            return
        some = ", ".join(f"'{name}'" for name in self.rng.sample(sorted(self.columns), 2))
        self._trino(f"ANALYZE TABLE_NAME{self.rng.choice(('', f' WITH (columns = ARRAY[{some}])'))}")

    def trino_drop_statistics(self) -> None:
        """Take back all registered statistics."""
        self._trino("ALTER TABLE TABLE_NAME EXECUTE drop_extended_stats")

    # -- all of it

    def by_chance(self, count: int) -> Iterator[str]:
        """So many kinds of steps, by both engines about as often."""
        for _ in range(count):
            weights = self.rng.choice((SPARK_WEIGHTS, TRINO_WEIGHTS))
            (kind,) = self.rng.choices(list(weights), list(weights.values()))
            yield kind

    def _look(self) -> list[str]:
        self.steps.append("-- look")
        self._see()
        self.checked.look(time.time())
        return [*self._unlike_trino(), *self._unlike_spark()]

    def _unlike_trino(self) -> Iterator[str]:
        """Whether SHOW STATS has the number of distinct values that `status` says it has."""
        assert self.trino is not None
        estimates = self.trino.show_stats(self.name)
        if not estimates.rows:
            return  # of a table without rows Trino tells nothing
        registered = _registered(self.lake, self.name)
        for column in self.checked.status.columns:
            shown = estimates.columns[column.name]
            ndv = registered[column.field_id] if column.trino else None
            if shown.ndv != estimates.capped(column.name, ndv):
                yield f"{column.name}: status says that Trino finds {ndv}, and it finds {shown}"

    def _unlike_spark(self) -> Iterator[str]:
        told = {column.name for column in self.checked.status.columns if column.spark}
        found = planned_with(self.checked)
        if found is not None and found != told:
            yield f"Spark plans with {sorted(found)}, and status says {sorted(told)}"


def _registered(lake: Lake, name: str) -> dict[int, int]:
    """The numbers of distinct values of the newest statistics file of an ancestor, by field id."""
    metadata = lake.load(name).metadata
    files = {file.snapshot_id: file for file in metadata.statistics}
    parents = {each.snapshot_id: each.parent_snapshot_id for each in metadata.snapshots}
    snapshot = metadata.current_snapshot_id
    while snapshot is not None and snapshot not in files:
        snapshot = parents.get(snapshot)
    blobs = files[snapshot].blob_metadata if snapshot is not None else []
    return {blob.fields[0]: int(blob.properties["ndv"]) for blob in blobs if blob.properties}


def explore(seconds: float, first: int, steps: int) -> int:
    """Try one seed after the other; print what is found, and return how often."""
    home = Path(tempfile.mkdtemp(prefix="rookery-trino-"))
    os.environ["ROOKERY_HOME"] = os.environ["PYICEBERG_HOME"] = str(home)
    lake = rookery.connect("lake")
    spark = lake.spark()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.h")
    end, finds, looks = time.monotonic() + seconds, 0, 0
    (home / "trino").mkdir()
    try:
        with prepared(spark), running(installation(), home, home / "trino") as trino:
            for seed in itertools.count(first):
                if time.monotonic() > end:
                    break
                history = SharedHistory(spark, lake, IcebergJava(spark), f"lake.h.t{seed}", seed, trino=trino)
                try:
                    for differences in history.live(history.by_chance(steps)):
                        looks += 1
                        if differences:
                            finds += 1
                            sys.stdout.write(
                                "\n".join([history.told(), *(f"  !! {each}" for each in differences)]) + "\n"
                            )
                            break
                except Exception as error:  # noqa: BLE001  # a find too
                    finds += 1
                    sys.stdout.write(f"{history.told()}\n  !! {type(error).__name__}: {str(error)[:600]}\n")
                finally:
                    with suppress(TrinoError):
                        trino.sql(f"DROP TABLE {history.name}")
                sys.stdout.flush()
        sys.stdout.write(f"{looks} looks at {seed - first} tables, {finds} finds\n")
    finally:
        spark.stop()
        shutil.rmtree(home, ignore_errors=True)
    return finds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    given = parser.parse_args()
    raise SystemExit(explore(given.seconds, given.seed, given.steps) > 0)
