"""Which files may hold a value of a column whose bounds are clustered: two of all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import clear_manifest_cache

import rookery
from benchmarks.harness import Effort, Measure, Row, compare
from benchmarks.lake import Bench, forget_all, is_known
from rookery.api.lake import Lake
from rookery.tables.iceberg.jvm import load_java_table

COLUMN = "c5"  # a long
SURVIVORS = 2  # the bounds of neighbours touch
WARM, COLD = 0.050, 0.250
BESIDE_PYICEBERG = 15.0
BESIDE_JAVA = 1.0


@dataclass(frozen=True)
class Plan:
    """A table, and a value that two of its files may hold."""

    bench: Bench
    name: str
    files: int

    @property
    def value(self) -> int:
        return self.files // 2

    @property
    def described(self) -> str:
        return f"{self.files:,} files, 16 columns"


def plan_ours(lake: Lake, name: str, value: int) -> int:
    report = rookery.table(name, lake).explain(f"{COLUMN} = {value}", inside=0)
    assert not any("could not be used" in stage.note for stage in report.stages)
    return len(report.files)


def plan_pyiceberg(lake: Lake, name: str, value: int) -> int:
    clear_manifest_cache()
    return len(list(lake.load(name).scan(row_filter=EqualTo(COLUMN, value)).plan_files()))


def rows(plan: Plan, effort: Effort, growth: int) -> Iterator[Row | Measure]:
    lake, jvm = plan.bench.lake, plan.bench.spark._jvm
    iterables = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables  # type: ignore[union-attr]
    equal = jvm.org.apache.iceberg.expressions.Expressions.equal(COLUMN, plan.value)  # type: ignore[union-attr]

    def load() -> Any:
        return load_java_table(plan.bench.spark, lake.table_name(plan.name))

    def java(table: Any) -> int:
        return int(iterables.size(table.newScan().filter(equal).planFiles()))

    def warm() -> int:
        return plan_ours(lake, plan.name, plan.value)

    def cold() -> int:
        forget_all()
        return warm()

    def python() -> int:
        return plan_pyiceberg(lake, plan.name, plan.value)

    table = load()
    started = time.perf_counter()
    found = java(table)
    first = time.perf_counter() - started
    assert is_known(lake, plan.name)
    assert found == warm() == cold() == python() == SURVIVORS
    data = plan.described
    fast = compare(
        "plan, warm",
        data,
        warm,
        "Iceberg Java, table cached",
        lambda: java(table),
        effort,
        target=BESIDE_JAVA,
        peer_rounds=5,
    )
    yield fast
    slow = compare(
        "plan, nothing cached",
        data,
        cold,
        "PyIceberg, table loaded again",
        python,
        effort,
        target=BESIDE_PYICEBERG,
        peer_rounds=2,
    )
    yield slow
    yield compare(
        "plan, nothing cached",
        data,
        cold,
        "Iceberg Java, table loaded again",
        lambda: java(load()),
        effort,
        peer_rounds=5,
    )
    yield Measure("plan, warm, seconds", data, fast.rookery_seconds, "s", WARM * growth)
    peer = "Iceberg Java, first in this JVM" if growth == 1 else "Iceberg Java, first of this table"
    yield Measure(
        "plan, nothing cached, seconds", data, slow.rookery_seconds, "s", COLD * growth, peer, first
    )
