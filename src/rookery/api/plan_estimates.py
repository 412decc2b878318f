"""The rows that Spark estimates for each node of a query's plan: alone, attached, and counted in a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rookery.api.lake import ALL, Lake, connect
from rookery.model import Report, Sheet, thousands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PlanEstimates", "PlanNode", "plan_estimates"]

# Adaptive execution replaces nodes of a plan by others while it runs.
_SETTINGS = {"spark.sql.adaptive.enabled": "false"}
_NODE_WIDTH = 60
_SCAN = "BatchScan"
_NOTE = "estimated rows by Spark's cost-based optimizer, without Rookery and with it attached"
_SCANS = "for a scan, attached is the number of rows that match the conditions of the filter above it"
_COLUMN_ID = re.compile(r"#\d+L?")


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A node of the plan that counts rows: a scan, a filter, a join, an aggregation."""

    depth: int
    name: str
    text: str
    alone: float | None  # estimated by Iceberg's statistics; None if Spark estimates nothing
    attached: float | None  # estimated by Rookery's
    rows: int | None  # counted, if the query was run

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row in a table."""
        estimates = map(thousands, (self.alone, self.attached, self.rows))
        errors = map(_shown, (self.alone_error, self.attached_error))
        return (_short("  " * self.depth + self.text), *estimates, *errors)

    @property
    def alone_error(self) -> float | None:
        """The q-error of the estimate without Rookery."""
        return q_error(self.alone, self.rows)

    @property
    def attached_error(self) -> float | None:
        """The q-error of the estimate with Rookery."""
        return q_error(self.attached, self.rows)


@dataclass(frozen=True, slots=True)
class PlanEstimates(Report):
    """The plan of a query in an attached session."""

    query: str
    nodes: tuple[PlanNode, ...]

    def sheets(self) -> Sequence[Sheet]:
        """The plan as a tree."""
        ran = any(node.rows is not None for node in self.nodes)
        header = ("node", "alone", "attached", *(("rows", "q-error alone", "attached") if ran else ()))
        rows = tuple(cells[: len(header)] for cells in self._cells())
        notes = [_NOTE, *([_SCANS] if any(map(_is_scan, self.nodes)) else [])]
        return [
            Sheet(
                title="", header=header, rows=rows, notes=tuple(notes), right=frozenset(range(1, len(header)))
            )
        ]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """The lines of the nodes; a scan under a filter is estimated as the filter, so it has no error."""
        above: PlanNode | None = None
        for node in self.nodes:
            is_filtered = above is not None and above.name == "Filter" and node.depth == above.depth + 1
            yield (*node.cells[:-1], "–") if is_filtered and _is_scan(node) else node.cells
            above = node


def _is_scan(node: PlanNode) -> bool:
    return node.name.startswith(_SCAN)


def q_error(estimated: float | None, counted: float | None) -> float | None:
    """Return by which factor an estimate is off, in either direction; no rows count as one.

    >>> q_error(50, 100), q_error(300, 100), q_error(0, 0), q_error(None, 5)
    (2.0, 3.0, 1.0, None)
    """
    if estimated is None or counted is None:
        return None
    one, other = max(float(estimated), 1.0), max(float(counted), 1.0)
    return max(one / other, other / one)


def _shown(error: float | None) -> str:
    return "–" if error is None else f"{error:.2f}"


def _short(text: str) -> str:
    return text if len(text) <= _NODE_WIDTH else text[: _NODE_WIDTH - 1] + "…"


def plan_estimates(
    text: str, lake: Lake | None = None, *, spark: SparkSession | None = None, actual: bool = False
) -> PlanEstimates:
    """Estimate the nodes of a query's plan; with *actual* the query is run, and the rows are counted.

    The plan is that of an attached session in which no file is skipped. Both estimates are by Spark's
    cost-based optimizer.
    """
    from rookery.spark.attach import attach, plan_nodes  # pyspark is an extra
    from rookery.spark.live import cloned_session

    if spark is None:
        lake = lake or connect()
        lake.find(ALL)  # raises if there are none: a session would create the catalog
        spark = lake.spark()
    session = cloned_session(spark)  # so that the settings of this one stay as they are
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    with attach(session, pruning=False, runtime=False, cbo=True):
        nodes = plan_nodes(session, text, run=actual)
    return PlanEstimates(text, tuple(_node(each) for each in nodes))


def _node(entry: Mapping[str, Any]) -> PlanNode:
    return PlanNode(
        depth=entry["depth"],
        name=entry["name"],
        text=_text(entry["name"], entry["text"]),
        alone=entry["alone"],
        attached=entry["attached"],
        rows=entry["rows"],
    )


def _text(name: str, text: str) -> str:
    """A scan by its table, other nodes by what they do, without the ids of columns."""
    return name if name.startswith(_SCAN) else _COLUMN_ID.sub("", text)
