"""Random queries, attached and over the data source, against the same over copies of the tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import rookery
from rookery.spark.attach import attach
from rookery.tables.iceberg.jvm import load_java_table
from tests.differential import query_forms
from tests.differential.asking import NOT_READ
from tests.differential.columns import Column
from tests.differential.queries import Parts, Query, bare, on_copies
from tests.differential.sessions import Session
from tests.differential.tally import Tally
from tests.differential.truth import Copy, difference, rows_of, short
from tests.differential.world import Find, Finds, World, configured

Rows = Counter[tuple[Any, ...]]
SPARK_ERRORS = (PySparkException, Py4JJavaError)  # the latter from toArrow, as it is


@dataclass
class Querying:
    """Queries over the tables of one case."""

    world: World
    rng: random.Random
    session: Session
    copies: Mapping[str, Copy]  # by the tables' names
    columns: Mapping[str, Sequence[Column]]
    branches: Sequence[tuple[str, str]]
    tally: Tally
    finds: Finds

    def ask(self, count: int, by_source: int) -> None:
        """Ask some queries of an attached session, and some of one relation of the data source a table."""
        lenient = self.session.settings.get("spark.sql.ansi.enabled") == "false"
        tables = _pushable(self.copies, self.columns)
        parts = Parts(self.rng, tables, self.branches, lenient=lenient)
        for name in self.copies:  # Spark's catalog may have cached an older one
            load_java_table(self.world.spark, self.world.lake.table_name(f"lake.db.{name}"))
        with self.session.applied(self.world.spark, self.world.other):
            for _ in range(count):
                query = query_forms.make(parts)
                with self.finds.noted():
                    self._compare("attached", query, self._by_attached)
            with self._relations():
                for _ in range(by_source):
                    query = query_forms.make(parts)
                    if query.native or query.views:
                        continue
                    with self.finds.noted():
                        self._compare("source", query, self._by_source)

    def _compare(self, way: str, query: Query, answer: Callable[[Query], tuple[Rows, list[str]]]) -> None:
        try:
            expected, names = self._truth(query, bare if way == "source" else on_copies)
        except SPARK_ERRORS:
            self.tally.refused_by_spark += 1
            return
        self.tally.queries[f"{way}: {query.form}"] += 1
        told = f"{way}: {query.text}" + "".join(f"\n  {name} AS {text}" for name, text in query.views)
        try:
            found, found_names = answer(query)
        except Exception as error:
            if NOT_READ.search(str(error)):
                self.tally.refused[f"{way}: files that only Spark reads"] += 1
                return
            if not query.views and self._fails_by_itself(query):
                return
            raise Find(f"{told}: {short(error)}") from error
        if found_names != names:
            raise Find(f"{told}: columns {found_names}, and Spark has {names}")
        if differs := difference(expected, found):
            if way != "source" and self._lost_by_iceberg(query, found):
                self.tally.lost_by_iceberg += 1
                return
            raise Find(f"{told}: {differs}")

    def _lost_by_iceberg(self, query: Query, found: Rows) -> bool:
        """Whether Spark finds the same over the tables, with Iceberg's own pruning and none of ours."""
        other = self.world.other
        with self._views(other, query, other.sql):
            return not difference(_rows(other.sql(query.text))[0], found)

    def _truth(self, query: Query, copied: Callable[[str], str]) -> tuple[Rows, list[str]]:
        other = self.world.other
        if query.native:
            return _rows(other.sql(query.text))
        with self._views(other, query, lambda text: other.sql(copied(text))):
            return _rows(other.sql(copied(query.text)))

    def _fails_by_itself(self, query: Query) -> bool:
        """Whether Spark does not get to the end over the tables either: filters move past each other."""
        try:
            _rows(self.world.spark.sql(query.text))
        except SPARK_ERRORS:
            self.tally.refused_by_spark += 1
            return True
        return False

    # -- Rookery's answers

    def _by_attached(self, query: Query) -> tuple[Rows, list[str]]:
        """The text as it is, in a session that is attached in any way."""
        spark, gone = self.world.spark, self.rng.random() < 0.05
        options = {name: self.rng.random() < 0.8 for name in ("statistics", "pruning", "runtime", "cbo")}
        adaptive = str(self.rng.random() < 0.7).lower()
        with (
            configured(spark, {"spark.sql.adaptive.enabled": adaptive}),
            attach(spark, **options, least_bytes=0),
            self._views(spark, query, spark.sql),
        ):
            frame = rookery.sql(spark, query.text, lake=self.world.lake)  # as spark.sql: it is attached
            if gone:  # a frame holds whatever it needs
                _collect_garbage(spark)
            answer = _rows(frame)
            if options["pruning"]:
                self._measure()
            return answer

    def _measure(self) -> None:
        """Count what the last query has read; one in which Iceberg alone skips all files is not listed."""
        queries = rookery.queries(self.world.spark, last=1).queries
        tables = queries[0].tables if queries else ()
        pruned = sum(each.files_read < each.files for each in tables)
        self.tally.planned += 1
        self.tally.planned_pruned += pruned > 0
        self.tally.query_tables += len(tables)
        self.tally.query_tables_pruned += pruned

    def _by_source(self, query: Query) -> tuple[Rows, list[str]]:
        return _rows(self.world.spark.sql(bare(query.text)))

    @contextmanager
    def _views(self, spark: SparkSession, query: Query, made: Callable[[str], DataFrame]) -> Iterator[None]:
        """Make the temporary views of a query; they may hide tables, and the copies."""
        try:
            for name, text in query.views:
                made(text).createOrReplaceTempView(name)
            yield
        finally:
            for name, _ in query.views:
                spark.catalog.dropTempView(name)
                if spark is self.world.other and name in self.copies:
                    self.copies[name].expose()

    @contextmanager
    def _relations(self) -> Iterator[None]:
        """Each table once as a view of the data source, in place of the table."""
        spark = self.world.spark
        for name in self.copies:
            frame = spark.read.format("rookery").option("table", f"lake.db.{name}").load()
            frame.createOrReplaceTempView(name)
        try:
            yield
        finally:
            for name in self.copies:
                spark.catalog.dropTempView(name)


def _rows(frame: DataFrame) -> tuple[Rows, list[str]]:
    table = frame.toArrow()
    return Counter(rows_of(table)), list(table.column_names)


def _collect_garbage(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for _ in range(2):
        jvm.System.gc()
        jvm.System.runFinalization()


def _pushable(
    copies: Mapping[str, Copy], columns: Mapping[str, Sequence[Column]]
) -> dict[str, Sequence[Column]]:
    """The columns that Iceberg's own pruning loses no rows of."""
    return {name: _without(columns[name], copy.unpushable()) for name, copy in copies.items()}


def _without(
    columns: Sequence[Column], gone: set[tuple[str, ...]], above: tuple[str, ...] = ()
) -> list[Column]:
    kept = []
    for column in columns:
        names = (*above, column.name)
        if column.kind == "struct":
            children = _without(column.children, gone, names)
            kept += [Column(column.name, column.kind, column.values, children)] if children else []
        elif names not in gone and column.kind != "uuid":
            kept.append(column)
    return kept
