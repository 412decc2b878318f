"""The sessions that are compared: one attached, and one of Spark alone over copies of the tables.

The copies are tables of the same data files. Their statistics are those of Iceberg's `compute_table_stats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import rookery
from benchmarks.attach.sessions import Sessions
from benchmarks.lake import CATALOG, Bench, append_files
from rookery.spark.attach.session import plan_nodes

PEER = "Spark with compute_table_stats"
COPIES = "copied"  # the namespace of the copies
_CBO = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled")


def copy_of(name: str) -> str:
    """Return the name of a table's copy."""
    return f"{COPIES}.{name.rpartition('.')[2]}"


def make_copies(bench: Bench, names: Iterable[str]) -> None:
    """Make the copies that are missing, with statistics."""
    for name in names:
        copy = copy_of(name)
        if not bench.exists(copy):
            original = bench.table(name)
            table = bench.lake.catalog.create_table(
                tuple(copy.split(".")), original.schema(), properties={"format-version": "2"}
            )
            append_files(table, [task.file for task in original.scan().plan_files()])
        if not bench.table(copy).metadata.statistics:
            bench.spark.sql(f"CALL {CATALOG}.system.compute_table_stats(table => '{copy}')").collect()


@contextmanager
def planning(bench: Bench) -> Iterator[Sessions]:
    """Both sessions with the cost-based optimizer and its reordering of joins."""
    sessions = Sessions.of(bench)
    for key in _CBO:
        sessions.alone.conf.set(key, "true")
    with rookery.attach(sessions.attached, cbo=True):
        yield sessions


def estimated_rows(sessions: Sessions, name: str, where: str, *, attached: bool) -> float:
    """Return the rows that Spark's optimizer estimates for a filter."""
    spark = sessions.attached if attached else sessions.alone
    table = name if attached else copy_of(name)
    first = plan_nodes(spark, f"SELECT * FROM {CATALOG}.{table} WHERE {where}", run=False)[0]
    return float(first["attached"])
