"""Predicates about one snapshot: every way to read, each against what is true."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

import rookery
from rookery.api.table import TableHandle
from rookery.api.where import bind
from rookery.model import Predicate, Snapshot, StorageError, UsageError, opaque_parts
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.read.table_reader import read_table
from rookery.sidecar import Store
from rookery.spark.attach import attach
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.jvm import load_java_table
from tests.differential.columns import Column
from tests.differential.history import Version
from tests.differential.predicates import Asked, Predicates
from tests.differential.sessions import Session
from tests.differential.tally import Tally
from tests.differential.truth import Copy, difference, path_of, same, short
from tests.differential.world import Find, Finds, World

NOT_READ = re.compile("read here|has no field ids")  # what is left to Spark, and said to be
_NUMBER = "__number"
_SOURCES = 3  # predicates asked of one relation of the data source


@dataclass
class Asking:
    """Predicates about one snapshot, or about the table as it is."""

    world: World
    rng: random.Random
    name: str
    session: Session
    version: Version | None
    columns: Sequence[Column]
    copy: Copy
    tally: Tally
    finds: Finds

    def ask(self, count: int, by_spark: int) -> None:
        lenient = self.session.settings.get("spark.sql.ansi.enabled") == "false"
        plain = Predicates(self.rng, self.columns)
        maker = Predicates(self.rng, self.columns, lenient=lenient)
        self.compare([Asked("TRUE"), *(plain.make() for _ in range(count - 1))], [])
        self.by_spark([maker.make(2) for _ in range(by_spark)])

    def compare(self, asked: Sequence[Asked], by_spark: Sequence[Asked]) -> None:
        """Read without Spark, where texts have their default meaning; then by Spark."""
        truth = self.copy.answer(asked, self.session.plain)
        self.tally.refused_by_spark += len(asked) - len(truth.asked)
        handle = Held.of(rookery.table(self.name, self.world.lake))
        for place, each in enumerate(truth.asked):
            with self.finds.noted():
                self._compare(handle, truth.matrix[:, place], each)
        self.by_spark(by_spark)

    @property
    def _snapshot(self) -> int | None:
        return None if self.version is None else self.version.snapshot

    def _source(self) -> str:
        return self.name if self.version is None else f"{self.name} VERSION AS OF {self.version.snapshot}"

    # -- without Spark

    def _compare(self, handle: TableHandle, mask: NDArray[np.bool_], asked: Asked) -> None:
        told = f"{self._source()} where {asked.sql}"
        tally, copy = self.tally, self.copy
        table, store = handle.load()
        snapshot = table.snapshot(self._snapshot)
        try:
            predicate = bind(asked.sql, table, snapshot, self.session.zone)
            if snapshot is None or any(opaque_parts(predicate)):
                tally.left_to_spark += 1
                self.check_files(prune_all(table, store, snapshot, predicate), mask, asked.sql)
                return
            result = read_table(table, store, snapshot, predicate)
            found = result.rows
            self.check_files(result.pruning, mask, asked.sql)
        except StorageError as error:
            if not NOT_READ.search(str(error)):
                raise Find(f"read {told}: {short(error)}") from error
            tally.refused["files that only Spark reads"] += 1
            self.check_files(prune_all(table, store, snapshot, predicate), mask, asked.sql)
            return
        except UsageError as error:
            tally.refused[str(error).split(":")[0][:60]] += 1
            return
        except Find:
            raise
        except Exception as error:
            raise Find(f"read {told}: {short(error)}") from error
        tally.predicates += 1
        tally.matching += bool(mask.any() and not mask.all())
        expected = copy.matching(mask)
        same(expected, Counter(self.copy.rows_of(found)), f"read {told}", copy.names, found.column_names)
        self._same_count(handle, asked.sql, int(mask.sum()), told)
        if self.rng.random() < 0.05:
            by_name = rookery.table(self.name, self.world.lake)
            again = self._read(by_name, asked.sql, f"read by name {told}")
            same(expected, Counter(self.copy.rows_of(again)), f"read by name {told}", copy.names)
        if asked.expression is not None and self.rng.random() < 0.3:
            tally.expressions += 1
            again = self._read(handle, asked.expression, f"read {asked.expression!r}, in SQL {asked.sql}")
            same(
                expected,
                Counter(self.copy.rows_of(again)),
                f"read by expression {asked.expression}",
                copy.names,
            )
        if self.rng.random() < 0.1:
            self._some_columns(handle, mask, asked.sql)

    def _read(self, handle: TableHandle, where: Any, told: str) -> pa.Table:
        try:
            return handle.read(where, snapshot=self._snapshot, time_zone=self.session.zone)
        except Exception as error:
            raise Find(f"{told}: {short(error)}") from error

    def _same_count(self, handle: TableHandle, where: str, expected: int, told: str) -> None:
        try:
            counted = handle.count(where, snapshot=self._snapshot, time_zone=self.session.zone)
        except Exception as error:
            raise Find(f"count {told}: {short(error)}") from error
        if counted != expected:
            raise Find(f"count {told}: {counted}, and Spark has {expected}")

    def check_files(self, pruning: Pruning | None, mask: NDArray[np.bool_], where: str) -> None:
        """No file with a row that matches is skipped, whether reads can decide the predicate or not."""
        check_files(pruning, set(self.copy.files[mask]), where, self.tally)

    def _some_columns(self, handle: TableHandle, mask: NDArray[np.bool_], where: str) -> None:
        copy, zone = self.copy, self.session.zone
        names = self.rng.sample(copy.names, self.rng.randrange(1, len(copy.names) + 1))
        found = handle.read(where, columns=names, snapshot=self._snapshot, time_zone=zone)
        places = [copy.names.index(name) for name in names]
        expected = Counter(tuple(copy.rows[row][place] for place in places) for row in np.flatnonzero(mask))
        same(expected, Counter(self.copy.rows_of(found)), f"read {names} where {where}", names)
        few = handle.read(where, limit=3, snapshot=self._snapshot, time_zone=zone)
        if few.num_rows != min(3, int(mask.sum())) or Counter(self.copy.rows_of(few)) - copy.matching(mask):
            raise Find(f"read, limit 3, where {where}: {self.copy.rows_of(few)}")

    # -- by Spark, with Rookery's pruning: in the session's own meaning, all predicates in one job a way

    def by_spark(self, asked: Sequence[Asked]) -> None:
        if not asked:
            return
        truth = self.copy.answer(asked, self.session)
        expected = [self.copy.matching(truth.matrix[:, place]) for place in range(len(truth.asked))]
        with self.session.applied(self.world.spark):
            for way, read in self._ways():
                count = len(expected)
                if way == "source":  # each relation in a plan starts Python workers, which takes longest
                    count = _SOURCES if self.rng.random() < 0.12 else 0
                self._compare_way(way, read, truth.asked[:count], expected[:count])

    def _compare_way(
        self,
        way: str,
        read: Callable[[Sequence[Asked]], pa.Table],
        asked: Sequence[Asked],
        expected: Sequence[Counter[Any]],
    ) -> None:
        """One job for all; one for each where that fails, to see which it is."""
        if not asked:
            return
        try:
            found = _by_number(read(asked), len(asked))
        except Exception as error:  # noqa: BLE001  # whose it is, is seen below
            if len(asked) == 1:
                with self.finds.noted():
                    self._refused(way, asked[0], error)
                return
            for each, rows in zip(asked, expected, strict=True):
                self._compare_way(way, read, [each], [rows])
            return
        for each, rows, table in zip(asked, expected, found, strict=True):
            self.tally.by_spark[way] += 1
            with self.finds.noted():
                self._same(way, each, rows, table, asked)

    def _same(
        self, way: str, each: Asked, rows: Counter[Any], table: pa.Table, asked: Sequence[Asked]
    ) -> None:
        among = "\n  ".join(one.sql for one in asked)
        told = f"{way} of {len(asked)}, {self._source()} where {each.sql}, among\n  {among}"
        if list(table.column_names) != self.copy.names:
            raise Find(f"{told}: columns {table.column_names}, and Spark has {self.copy.names}")
        if differs := difference(rows, Counter(self.copy.rows_of(table))):
            if way != "source" and self._lost_by_iceberg(each, rows, table):
                self.tally.lost_by_iceberg += 1
            else:
                raise Find(f"{told}: {differs}; columns {self.copy.names}")

    def _refused(self, way: str, asked: Asked, error: Exception) -> None:
        """What Rookery does not take is refused in one line; all else is a find."""
        if isinstance(error, UsageError) and "cannot be compared" in str(error):
            self.tally.refused[f"{way}: {str(error).split(':')[0][:60]}"] += 1
            return
        if way == "source" and NOT_READ.search(str(error)):
            self.tally.refused[f"{way}: files that only Spark reads"] += 1
            return
        try:
            with self.session.applied(self.world.other):
                self._native(asked)
        except Exception:  # noqa: BLE001  # Spark itself does not get to the end, whatever it says
            self.tally.refused_by_spark += 1
            return
        raise Find(f"{way} {self._source()} where {asked.sql}: {short(error)}") from error

    def _native(self, asked: Asked) -> pa.Table:
        return self.world.other.sql(f"SELECT * FROM {self._source()} WHERE {asked.sql}").toArrow()

    def _lost_by_iceberg(self, asked: Asked, expected: Counter[Any], found: pa.Table) -> bool:
        """Whether every row that is missing is lost by Spark by itself too, with the filter pushed down."""
        with self.session.applied(self.world.other):
            native = Counter(self.copy.rows_of(self._native(asked)))
        there = Counter(self.copy.rows_of(found))
        return native <= there <= expected

    def _ways(self) -> list[tuple[str, Callable[[Sequence[Asked]], pa.Table]]]:
        spark, lake = self.world.spark, self.world.lake

        def scans(asked: Sequence[Asked]) -> pa.Table:
            handle = rookery.table(self.name, lake)
            frames = [handle.scan(spark, each.sql, snapshot=self._snapshot) for each in asked]
            return _union(frames).toArrow()

        def attached(asked: Sequence[Asked]) -> pa.Table:
            parts = [
                f"SELECT {number} AS {_NUMBER}, * FROM {self._source()} WHERE {each.sql}"
                for number, each in enumerate(asked)
            ]
            load_java_table(spark, lake.table_name(self.name))  # Spark's catalog may have cached an older one
            with attach(spark, least_bytes=0):
                return spark.sql(" UNION ALL ".join(parts)).toArrow()

        def source(asked: Sequence[Asked]) -> pa.Table:
            reader = spark.read.format("rookery").option("table", self.name)
            reader = reader if self._snapshot is None else reader.option("snapshot", self._snapshot)
            relation = reader.load()
            return _union([relation.where(each.sql) for each in asked]).toArrow()

        return [("scan", scans), ("attached", attached), ("source", source)]


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    numbered = [frame.select(lit(number).alias(_NUMBER), "*") for number, frame in enumerate(frames)]
    return reduce(DataFrame.unionAll, numbered)


def _by_number(table: pa.Table, count: int) -> list[pa.Table]:
    data = table.drop_columns([_NUMBER])
    return [data.filter(pc.equal(table.column(_NUMBER), number)) for number in range(count)]


class Held(TableHandle):
    """A table as it was when it was loaded first: asking the catalog each time would take longest."""

    loaded: tuple[IcebergTable, Store]

    @classmethod
    def of(cls, handle: TableHandle) -> Held:
        held = cls(handle.lake, handle.name)
        object.__setattr__(held, "loaded", handle.load())
        return held

    def load(self) -> tuple[IcebergTable, Store]:
        return self.loaded


def prune_all(
    table: IcebergTable, store: Store, snapshot: Snapshot | None, predicate: Predicate
) -> Pruning | None:
    return None if snapshot is None else prune(table, snapshot, file_set(table, store, snapshot), predicate)


def check_files(pruning: Pruning | None, needed: Set[str], where: str, tally: Tally) -> None:
    """Raise `Find` if a stage fails, or if one of the files that are needed is skipped."""
    if pruning is None:
        return
    for stage in pruning.stages:
        if "could not be used" in stage.note:
            raise Find(f"where {where}: the stage '{stage.name}' {stage.note}")
    kept = {path_of(path) for path in pruning.files.files["path"].take(pruning.numbers).to_pylist()}
    if lost := needed - kept:
        stages = "\n".join(
            f"  {each.name}: {each.files_in} → {each.files_out} {each.note}" for each in pruning.stages
        )
        raise Find(
            f"where {where}: files with matching rows were skipped: {lost}\n{pruning.predicate}\n{stages}"
        )
    skipped = len(pruning.files) - len(kept)
    tally.files += len(pruning.files)
    tally.files_skipped += skipped
    tally.skipping += skipped > 0
