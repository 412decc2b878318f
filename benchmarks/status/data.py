"""The tables whose status is asked for. Their data files do not exist: status reads none."""

from __future__ import annotations

import numpy as np

from benchmarks.collect.data import WIDE_SCHEMA, append_wide
from benchmarks.lake import Bench, beside, forget, forget_all, made_anew
from benchmarks.plan.state import describe
from rookery.sketch import K, ThetaSketch

COMMITS, FILES = 3, 4  # of each small table
THETA = 1 << 58


def many_tables(bench: Bench, count: int) -> None:
    """Small tables: half of them described by a state, of which a third is older than the last commit."""
    there = len(bench.lake.catalog.list_tables("many"))
    for number in range(there - 1 if there > 1 else 0, count):  # the last one may be half made
        name = f"many.t{number:05d}"
        table = made_anew(bench, name, WIDE_SCHEMA)
        for commit in range(COMMITS):
            append_wide(table, range(commit * FILES, (commit + 1) * FILES))
            if number % 2 and commit == (COMMITS - 2 if number % 3 == 0 else COMMITS - 1):
                _describe(bench, name)
    for name in bench.lake.catalog.list_tables("many")[count:]:
        bench.lake.catalog.drop_table(name)


def large_table(bench: Bench, files: int) -> str:
    """A table of many files that a state describes, and one in a hundred that it does not."""
    name = f"made.status_{files}"
    if bench.exists(name) and beside(bench, name).exists():
        return name
    table = made_anew(bench, name, WIDE_SCHEMA)
    for numbers in np.array_split(np.arange(files), 5):
        append_wide(table, numbers.tolist())
    forget_all()
    _describe(bench, name)
    append_wide(bench.table(name), range(files, files + files // 100))
    return name


def _describe(bench: Bench, name: str) -> None:
    forget(bench, name)
    random = np.random.default_rng(1)
    sketches = {
        field.field_id: ThetaSketch(np.unique(random.integers(1, THETA, K, np.uint64)), THETA)
        for field in WIDE_SCHEMA.fields
    }
    describe(bench, name, sketches)
