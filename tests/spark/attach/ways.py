"""Sessions that are attached in several ways, and what their queries have read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import rookery
from rookery.spark.attach import attach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"
WAYS: Mapping[str, tuple[Mapping[str, str], Mapping[str, bool]]] = {
    "attached": ({_ADAPTIVE: "true"}, {}),
    "cost-based": ({_ADAPTIVE: "true"}, {"cbo": True}),
    "not adaptive": ({_ADAPTIVE: "false"}, {}),
}
"""Settings of the session, and options of `attach`."""


def executed(frame: DataFrame) -> str:
    """The plan of a query, as text."""
    plan: Any = frame._jdf.queryExecution()  # type: ignore[operator]
    return str(plan.executedPlan())


@contextmanager
def attached_session(
    spark: SparkSession, settings: Mapping[str, str] | None = None, *, least_rows: int = 0, **options: bool
) -> Iterator[SparkSession]:
    """Another session of the same context, in which small scans are pruned too, and all joins reordered."""
    session = spark.newSession()
    for key, value in (settings or {}).items():
        session.conf.set(key, value)
    with attach(session, least_bytes=0, least_rows=least_rows, **options):
        yield session


@contextmanager
def sessions_of_all_ways(spark: SparkSession) -> Iterator[dict[str, SparkSession]]:
    """A session for each way, by its name."""
    with ExitStack() as stack:
        yield {
            way: stack.enter_context(attached_session(spark, settings, **options))
            for way, (settings, options) in WAYS.items()
        }


def files_read(session: SparkSession, text: str) -> dict[str, list[int]]:
    """Run a query; return how many files each scan has read, by the last name of its table."""
    session.sql(text).collect()
    found: dict[str, list[int]] = {}
    queries = rookery.queries(session, last=1).queries
    for scan in queries[0].tables if queries and queries[0].text == text else ():
        found.setdefault(scan.table.rpartition(".")[2], []).append(scan.files_read)
    return {table: sorted(files) for table, files in found.items()}
