"""The data files that a query's scans read, from the plan that Spark has run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame


def scanned(frame: DataFrame) -> list[str]:
    """Return the data files of all scans, once for each scan, after the query has run."""
    scans = _scans(frame._jdf.queryExecution().executedPlan())
    return [path for scan in scans for path in _paths(scan)]


def _paths(scan: Any) -> set[str]:
    """A large file may be several tasks."""
    return {
        task.file().location()
        for partition in _listed(scan.inputPartitions())
        for task in partition.taskGroup().tasks().toArray()
    }


def _scans(node: Any) -> Iterator[Any]:
    kind = node.getClass().getSimpleName()
    if kind == "BatchScanExec":
        yield node
    elif kind == "AdaptiveSparkPlanExec":
        yield from _scans(node.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(node.plan())
    elif not kind.startswith("Reused"):
        for child in [*_listed(node.children()), *_listed(node.subqueries())]:
            yield from _scans(child)


def _listed(found: Any) -> list[Any]:
    return [found.apply(number) for number in range(found.size())]
