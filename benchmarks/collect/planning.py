"""Finding what is to be done for a table of many files: a dry run, when a state is there."""

from __future__ import annotations

from collections.abc import Iterator

import rookery
from benchmarks.collect.data import append_wide, wide_table
from benchmarks.collect.memory import FILES
from benchmarks.harness import Effort, Measure, Row, compare
from benchmarks.lake import Bench
from rookery.tables.iceberg.jvm import load_java_table

SECONDS = 1.0
ADDED = 100


def rows(bench: Bench, effort: Effort) -> Iterator[Row | Measure]:
    files = effort.of(FILES)
    name = wide_table(bench, files)
    for added in (0, ADDED):
        if added:
            append_wide(bench.table(name), range(files, files + added))
        yield from _rows(bench, effort, name, files, added)


def _rows(bench: Bench, effort: Effort, name: str, files: int, added: int) -> Iterator[Row | Measure]:
    def ours() -> object:
        return rookery.analyze(bench.spark, name, dry_run=True, lake=bench.lake)

    def python() -> object:
        return len(list(bench.table(name).scan().plan_files()))

    table = load_java_table(bench.spark, bench.lake.table_name(name))
    iterables = bench.spark._jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables  # type: ignore[union-attr]

    def java() -> object:
        return iterables.size(table.newScan().planFiles())

    planned = ours()
    assert (planned.files, planned.files_to_read) == (files + added, added)  # type: ignore[attr-defined]
    data = f"{files:,} files, 16 columns, {added or 'none'} new"
    beside = compare("dry run", data, ours, "PyIceberg plan_files", python, effort, peer_rounds=2)
    yield beside
    yield compare("dry run", data, ours, "Iceberg planFiles in Java", java, effort, peer_rounds=5)
    yield Measure("dry run, seconds", data, beside.rookery_seconds, "s", SECONDS)
