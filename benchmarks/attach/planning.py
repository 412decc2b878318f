"""What planning costs more in an attached session: the literals are new each time, so no answer is cached.

Planning includes the tasks of each scan: Rookery needs them early, Spark alone just before it runs a query.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.attach.sessions import ALONE, Sessions
from benchmarks.collect.data import wide_table
from benchmarks.harness import WARMING, Effort, Measure, Row
from benchmarks.lake import CATALOG, Bench
from benchmarks.plan.state import known

ROUNDS = 30  # at full scale
FILES = 50_000
MORE_SECONDS = {1: 0.005, 5: 0.015}  # by the number of tables
MORE_OF_MANY_FILES = 0.030


def rows(sessions: Sessions, effort: Effort) -> Iterator[Row | Measure]:
    """Yield queries over one table and five, none of whose files can be skipped."""
    lineitem, orders, customer, supplier, nation = (
        f"{CATALOG}.tpch.{name}" for name in ("lineitem", "orders", "customer", "supplier", "nation")
    )

    def one(number: int) -> str:
        return f"SELECT sum(l_quantity) FROM {lineitem} WHERE l_extendedprice > {number}"

    def five(number: int) -> str:
        return (
            f"SELECT count(*) FROM {lineitem}, {orders}, {customer}, {supplier}, {nation} "
            "WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey AND l_suppkey = s_suppkey "
            f"AND s_nationkey = n_nationkey AND l_extendedprice > {number} AND o_totalprice > {number}"
        )

    for tables, ask in ((1, one), (5, five)):
        what = f"planning, {tables} tables" if tables > 1 else "planning, 1 table"
        yield from _compared(sessions, what, "nothing to skip", ask, effort, MORE_SECONDS[tables])


def rows_of_many_files(sessions: Sessions, bench: Bench, effort: Effort) -> Iterator[Row | Measure]:
    """Yield queries over a table of 50,000 files, which are metadata alone."""
    files = effort.of(FILES)
    name = wide_table(bench, files, f"made.plan_{files}")
    known(bench, name)
    text = f"SELECT c1 FROM {CATALOG}.{name} WHERE c5"
    asked: dict[str, Callable[[int], str]] = {
        "nothing to skip": lambda number: f"{text} > {-1 - number}",
        "one value": lambda number: f"{text} = {number * 7 % files}",
    }
    for data, ask in asked.items():
        what = f"planning, {files:,} files"
        yield from _compared(sessions, what, data, ask, effort, MORE_OF_MANY_FILES)


def _compared(
    sessions: Sessions, what: str, data: str, ask: Callable[[int], str], effort: Effort, limit: float
) -> Iterator[Row | Measure]:
    """Plan in turns: both times, the difference, and the time that Rookery has measured itself."""
    rounds = ROUNDS if effort.scale >= 1 else effort.rounds
    times: dict[SparkSession, list[float]] = {sessions.attached: [], sessions.alone: []}
    own = []
    for number in range(WARMING + rounds):
        gc.collect()
        turns = list(times) if number % 2 else list(reversed(times))
        for session in turns:
            started = time.perf_counter()
            plan = session.sql(ask(number))._jdf.queryExecution().executedPlan()  # type: ignore[operator]
            for scan in _scans(session, plan):
                scan.inputPartitions()
            times[session].append(time.perf_counter() - started)
            if session is sessions.attached:
                own.append(sum(_own_seconds(session, plan)))
    ours, theirs = (measured[WARMING:] for measured in times.values())
    yield Row(what, f"{data}, median of {rounds}", median(ours), ALONE, median(theirs), None)
    more = median(one - other for one, other in zip(ours, theirs, strict=True))
    yield Measure(f"{what}, more time", data, max(more, 0.0), "s", limit)
    yield Measure(f"{what}, Rookery's time", data, median(own[WARMING:]), "s", limit)


def _own_seconds(spark: SparkSession, plan: Any) -> Iterator[float]:
    """The time in which Rookery has planned each scan of a plan, as it has measured it itself."""
    jvm: Any = spark._jvm
    for scan in _scans(spark, plan):
        planned = _field(jvm.java.lang.reflect.Proxy.getInvocationHandler(scan.scan()), "planned")
        yield _field(planned, "nanoseconds") / 1e9


def _scans(spark: SparkSession, plan: Any) -> Iterator[Any]:
    jvm: Any = spark._jvm
    for leaf in jvm.scala.jdk.javaapi.CollectionConverters.asJava(plan.collectLeaves()):
        if leaf.nodeName() == "AdaptiveSparkPlan":
            yield from _scans(spark, leaf.executedPlan())
        elif leaf.getClass().getSimpleName() == "BatchScanExec":
            yield leaf


def _field(instance: Any, name: str) -> Any:
    field = instance.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(instance)
