"""One case: a table, many predicates, and every way to read, each against Spark's own answer."""

from __future__ import annotations

import copy
import random
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import rookery
from rookery.api.table import TableHandle
from rookery.api.where import bind
from rookery.model import Predicate, Snapshot, UsageError, opaque_parts
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.read.rows import read_table
from rookery.store import Store
from rookery.tables.iceberg import IcebergTable
from tests.differential.columns import Column
from tests.differential.history import History, Version, World
from tests.differential.predicates import Asked, Predicates

ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata")
_FILE = "__file"
_TRUE = "__true"
_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Iceberg keeps deletes by equality by their file's name, in the types of the first who read them: after
    # ALTER COLUMN … TYPE they match nothing. So its own answer would be wrong.
    "spark.sql.iceberg.executor-cache.enabled": "false",
    "spark.sql.iceberg.executor-cache.delete-files.enabled": "false",
}
# Hundreds of predicates over few rows: compiling them would take longer than all else.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


class Find(AssertionError):
    """Something that must not be: with all that is needed to see it again."""


@contextmanager
def prepared(spark: SparkSession) -> Iterator[None]:
    """Settings for many small tables, and for answers that can be trusted."""
    before = {key: spark.conf.get(key, None) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


@dataclass
class Tally:
    """What was tried, and what came of it."""

    tables: int = 0
    cases: int = 0  # a table and a predicate
    matching: int = 0  # of which some rows match, but not all
    skipping: int = 0  # of which some files were skipped
    files_skipped: int = 0
    spark_cases: int = 0
    expressions: int = 0
    left_to_spark: int = 0
    refused: int = 0  # by Rookery, though Spark takes them
    refused_by_spark: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.tables} tables, {self.cases:,} predicates ({self.matching:,} of some rows), "
            f"{self.files_skipped:,} files skipped in {self.skipping:,}, {self.spark_cases:,} by Spark, "
            f"{self.expressions:,} expressions, {self.left_to_spark:,} left to Spark, "
            f"{self.refused:,} refused, {self.refused_by_spark:,} refused by Spark"
        )


@dataclass(frozen=True)
class Size:
    """How much is asked of a table."""

    predicates: int = 120
    earlier: int = 30  # of an earlier snapshot
    by_spark: int = 4


def run_case(world: World, seed: str, number: int, tally: Tally, size: Size = Size()) -> None:  # noqa: B008
    """Make the table of a case and ask it everything; raise `Find` on the first difference."""
    rng = random.Random(f"{seed}/{number}")
    zone = rng.choice(ZONES)
    name = f"lake.db.d{uuid.uuid4().hex[:10]}"
    history = History(world, rng, name)
    world.spark.conf.set("spark.sql.session.timeZone", zone)
    where = ""
    try:
        if not _built(history):
            tally.refused_by_spark += 1
            return
        tally.tables += 1
        for version, count in _versions(rng, history, size):
            where = f"snapshot {version.snapshot if version else 'current'}"
            columns = history.columns if version is None else version.columns
            asking = Asking(world, rng, name, zone, version, columns, tally)
            asking.ask(count, size.by_spark)
    except Exception as error:
        told = "\n".join(history.steps)
        detail = "\n".join(
            line for line in "".join(traceback.format_exception(error)).splitlines() if _telling(line)
        )
        raise Find(
            f"python -m tests.differential --seed {seed} --case {number}\n{told}\n"
            f"{where}, zone {zone}\n{detail}"
        ) from error
    finally:
        world.spark.conf.set("spark.sql.session.timeZone", "UTC")
        world.spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")


def _built(history: History) -> bool:
    """Build a table, unless Iceberg's writer refuses: a truncated decimal may need a digit too many."""
    try:
        history.build()
    except Exception as error:
        if "Cannot write value as decimal" in str(error):
            return False
        raise
    return True


def _versions(rng: random.Random, history: History, size: Size) -> list[tuple[Version | None, int]]:
    asked: list[tuple[Version | None, int]] = [(None, size.predicates)]
    # Asked for by its id, the current snapshot has its own columns in Spark, and the table's here.
    current = history.world.lake.load(history.name).metadata.current_snapshot_id
    earlier = [version for version in history.versions if version.snapshot != current]
    if earlier and size.earlier:
        asked.append((copy.deepcopy(rng.choice(earlier)), size.earlier))
    return asked


@dataclass
class Asking:
    """Predicates about one snapshot, or about the table as it is."""

    world: World
    rng: random.Random
    name: str
    zone: str
    version: Version | None
    columns: Sequence[Column]
    tally: Tally

    def ask(self, count: int, by_spark: int) -> None:
        maker = Predicates(self.rng, self.columns)
        self.compare([Asked("TRUE"), *(maker.make() for _ in range(count - 1))], by_spark)

    def compare(self, asked: list[Asked], by_spark: int) -> None:
        """Ask Spark once and Rookery in every way."""
        truth = self._truth(asked)
        self.tally.refused_by_spark += len(asked) - len(truth.asked)
        handle = Held.of(rookery.table(self.name, self.world.lake))
        for place, each in enumerate(truth.asked):
            self._compare(handle, truth, place, each)
        for place in self.rng.sample(range(len(truth.asked)), min(by_spark, len(truth.asked))):
            self._compare_by_spark(handle, truth, place, truth.asked[place])

    @property
    def _snapshot(self) -> int | None:
        return None if self.version is None else self.version.snapshot

    def _source(self) -> str:
        return self.name if self.version is None else f"{self.name} VERSION AS OF {self.version.snapshot}"

    # -- Spark's answer

    def _truth(self, asked: list[Asked]) -> Truth:
        """One job for all predicates; those that Spark refuses, found by halving, are left out."""
        spark = self.world.spark
        before = {key: spark.conf.get(key) for key in _INTERPRETED}
        try:
            for key, value in _INTERPRETED.items():
                spark.conf.set(key, value)
            kept, table = self._accepted(asked)
        finally:
            for key, was in before.items():
                spark.conf.set(key, was or "")
        matrix = _matrix(table, len(kept))
        files = [_path(each) for each in table.column(_FILE).to_pylist()]
        data = table.drop_columns([_FILE, _TRUE])
        return Truth(kept, data.column_names, rows_of(data), np.array(files, object), matrix)

    def _accepted(self, asked: list[Asked]) -> tuple[list[Asked], pa.Table]:
        """The predicates that Spark analyses and evaluates, and its answer to them."""
        try:
            return asked, self._answer(asked)
        except PySparkException:
            kept = self._halved(asked)
        return kept, self._answer(kept)

    def _halved(self, refused: list[Asked]) -> list[Asked]:
        """What is left of some predicates, of which one at least is refused."""
        if len(refused) == 1:
            return []
        middle = len(refused) // 2
        halves = [refused[:middle], refused[middle:]]
        return [each for half in halves for each in (half if self._takes(half) else self._halved(half))]

    def _takes(self, asked: Sequence[Asked]) -> bool:
        try:
            self._answer(asked)
        except PySparkException:
            return False
        return True

    def _answer(self, asked: Sequence[Asked]) -> pa.Table:
        listed = ", ".join(f"coalesce(({each.sql}), false)" for each in asked)
        text = f"SELECT *, _file AS {_FILE}, array({listed}) AS {_TRUE} FROM {self._source()}"
        return self.world.spark.sql(text).toArrow()

    # -- Rookery's

    def _compare(self, handle: TableHandle, truth: Truth, place: int, asked: Asked) -> None:
        mask = truth.matrix[:, place]
        told = f"where {asked.sql}"
        tally = self.tally
        table, store = handle.load()
        snapshot = table.snapshot(self._snapshot)
        try:
            predicate = bind(asked.sql, table, snapshot, self.zone)
            if snapshot is None or any(opaque_parts(predicate)):
                tally.left_to_spark += 1
                self._check_files(prune_all(table, store, snapshot, predicate), truth, mask, asked.sql)
                return
            result = read_table(table, store, snapshot, predicate)
            found = result.rows
            self._check_files(result.pruning, truth, mask, asked.sql)
        except UsageError as error:
            tally.refused += 1
            tally.refusals[str(error).split(":")[0][:60]] += 1
            return
        except Find:
            raise
        except Exception as error:
            raise Find(f"read {told}") from error
        tally.cases += 1
        tally.matching += bool(mask.any() and not mask.all())
        expected = Counter(truth.rows[row] for row in np.flatnonzero(mask))
        _same(expected, Counter(rows_of(found)), f"read {told}", truth.names, found.column_names)
        self._same_count(handle, asked.sql, int(mask.sum()), told)
        if self.rng.random() < 0.05:
            by_name = rookery.table(self.name, self.world.lake)
            again = self._read(by_name, asked.sql, f"read by name {told}")
            _same(expected, Counter(rows_of(again)), f"read by name {told}", truth.names)
        if asked.expression is not None and self.rng.random() < 0.3:
            tally.expressions += 1
            again = self._read(handle, asked.expression, f"read {asked.expression!r}, in SQL {asked.sql}")
            _same(expected, Counter(rows_of(again)), f"read by expression {asked.expression}", truth.names)
        if self.rng.random() < 0.1:
            self._some_columns(handle, truth, mask, asked.sql)

    def _read(self, handle: TableHandle, where: Any, told: str) -> pa.Table:
        try:
            return handle.read(where, snapshot=self._snapshot, time_zone=self.zone)
        except Exception as error:
            raise Find(told) from error

    def _same_count(self, handle: TableHandle, where: str, expected: int, told: str) -> None:
        try:
            counted = handle.count(where, snapshot=self._snapshot, time_zone=self.zone)
        except Exception as error:
            raise Find(f"count {told}") from error
        if counted != expected:
            raise Find(f"count {told}: {counted}, and Spark has {expected}")

    def _check_files(
        self, pruning: Pruning | None, truth: Truth, mask: NDArray[np.bool_], where: str
    ) -> None:
        """No file with a row that matches is skipped, whether reads can decide the predicate or not."""
        if pruning is None:
            return
        for stage in pruning.stages:
            if "could not be used" in stage.note:
                raise Find(f"where {where}: the stage '{stage.name}' {stage.note}")
        kept = {_path(path) for path in pruning.files.files["path"].take(pruning.numbers).to_pylist()}
        lost = set(truth.files[mask]) - kept
        if lost:
            stages = "\n".join(
                f"  {each.name}: {each.files_in} → {each.files_out} {each.note}" for each in pruning.stages
            )
            raise Find(
                f"where {where}: files with matching rows were skipped: {lost}\n{pruning.predicate}\n{stages}"
            )
        skipped = len(pruning.files) - len(kept)
        self.tally.files_skipped += skipped
        self.tally.skipping += skipped > 0

    def _some_columns(self, handle: TableHandle, truth: Truth, mask: NDArray[np.bool_], where: str) -> None:
        names = self.rng.sample(truth.names, self.rng.randrange(1, len(truth.names) + 1))
        found = handle.read(where, columns=names, snapshot=self._snapshot, time_zone=self.zone)
        places = [truth.names.index(name) for name in names]
        expected = Counter(tuple(truth.rows[row][place] for place in places) for row in np.flatnonzero(mask))
        _same(expected, Counter(rows_of(found)), f"read {names} where {where}", names)
        few = handle.read(where, limit=3, snapshot=self._snapshot, time_zone=self.zone)
        wanted = Counter(truth.rows[row] for row in np.flatnonzero(mask))
        if few.num_rows != min(3, int(mask.sum())) or Counter(rows_of(few)) - wanted:
            raise Find(f"read, limit 3, where {where}: {rows_of(few)}")

    # -- by Spark, with Rookery's pruning

    def _compare_by_spark(self, handle: TableHandle, truth: Truth, place: int, asked: Asked) -> None:
        expected = Counter(truth.rows[row] for row in np.flatnonzero(truth.matrix[:, place]))
        for way, frame in self._frames(handle, asked):
            self.tally.spark_cases += 1
            try:
                found = frame().toArrow()
            except UsageError as error:
                if "cannot be compared" in str(error):
                    continue
                raise Find(f"{way} where {asked.sql}") from error
            except Exception as error:
                raise Find(f"{way} where {asked.sql}") from error
            _same(
                expected, Counter(rows_of(found)), f"{way} where {asked.sql}", truth.names, found.column_names
            )

    def _frames(self, handle: TableHandle, asked: Asked) -> list[tuple[str, Any]]:
        spark = self.world.spark

        def scan() -> DataFrame:
            return handle.scan(spark, asked.sql, snapshot=self._snapshot)

        def by_sql() -> DataFrame:
            return rookery.sql(
                spark, f"SELECT * FROM {self._source()} WHERE {asked.sql}", lake=self.world.lake
            )

        def by_source() -> DataFrame:
            reader = spark.read.format("rookery").option("table", self.name)
            reader = reader if self._snapshot is None else reader.option("snapshot", self._snapshot)
            return reader.load().where(asked.sql)

        return [("scan", scan), ("sql", by_sql), ("data source", by_source)]


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


@dataclass(frozen=True)
class Truth:
    """Spark's answer: every row, where it lies, and which predicates are true of it."""

    asked: list[Asked]
    names: list[str]
    rows: list[tuple[Any, ...]]
    files: NDArray[np.object_]
    matrix: NDArray[np.bool_]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that can be counted: what equals itself does, NaN too, and -0.0 is not 0.0."""
    columns = [list(map(repr, _plain(column).to_pylist())) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _matrix(table: pa.Table, count: int) -> NDArray[np.bool_]:
    """Which predicates, a column each, are true of which rows."""
    flat = table.column(_TRUE).combine_chunks().flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False), bool).reshape(-1, count)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _without_times(column.type)
    return column if kind == column.type else column.cast(kind)


def _without_times(kind: pa.DataType) -> pa.DataType:
    """Numbers for times, as Python's have too short a calendar, and more than one zone."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _without_times(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_without_times(kind.key_type), _without_times(kind.item_type))
    return pa.list_(_without_times(kind.value_type)) if pa.types.is_list(kind) else kind


def _telling(line: str) -> bool:
    """Java's traces are long, and say little."""
    return not line.startswith(("\tat ", "\t\tat ", "\t... ", "\tSuppressed", "\t\t..."))


def _path(text: str) -> str:
    return text.removeprefix("file:").replace("//", "/")


def _same(
    expected: Counter[Any],
    found: Counter[Any],
    told: str,
    names: Sequence[str],
    found_names: Sequence[str] | None = None,
) -> None:
    if found_names is not None and list(found_names) != list(names):
        raise Find(f"{told}: columns {found_names}, and Spark has {names}")
    if expected != found:
        lost, more = expected - found, found - expected
        raise Find(
            f"{told}: {lost.total()} rows lost, such as {next(iter(lost), None)}; "
            f"{more.total()} too many, such as {next(iter(more), None)}; columns {names}"
        )
