"""`estimate`: how many rows match a predicate, by statistics, indexes and metadata alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.api.where import Where, bind
from rookery.estimate.conditions import Condition
from rookery.estimate.groups import estimate_groups
from rookery.estimate.selection import select
from rookery.model import Certainty, Estimate, Report, Sheet, UsageError, column_named, thousands
from rookery.prune.cascade import prune
from rookery.prune.fileset import file_set
from rookery.sidecar import Store
from rookery.tables import Table

__all__ = ["EstimateReport"]


@dataclass(frozen=True, slots=True)
class EstimateReport(Report):
    """How many rows match a predicate, and how many groups they form."""

    table: str
    where: str | None
    snapshot_id: int | None
    rows: Estimate
    proven: bool  # whether the bounds are proved; else they are likely, by sketches
    table_rows: float
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    groups: Estimate | None = None
    groups_source: str = ""

    @property
    def selectivity(self) -> float:
        """The share of the table's rows that match."""
        return min(self.rows.value / self.table_rows, 1.0) if self.table_rows else 0.0

    def sheets(self) -> Sequence[Sheet]:
        """The estimate, and a line for each condition."""
        where = f" where {self.where}" if self.where is not None else ""
        lines = [("rows", *_cells(self.rows), f"{self.selectivity:.4%} of {thousands(self.table_rows)}")]
        if self.groups is not None:
            lines.append((f"groups by {', '.join(self.group_by)}", *_cells(self.groups), self.groups_source))
        header = ("", "estimate", "low", "high", "certainty", "")
        kind = "proved" if self.proven else "likely, not proved"
        notes = [] if self.rows.kind is Certainty.EXACT else [f"low and high of the rows are {kind}"]
        sheet = Sheet(
            title=f"{self.table}{where}",
            header=header,
            rows=tuple(lines),
            notes=(*notes, *self.notes),
            right=frozenset({1, 2, 3}),
        )
        if not self.conditions:
            return [sheet]
        shown = tuple(
            (line.text, thousands(line.rows), f"{line.selectivity:.4%}", line.source)
            for line in self.conditions
        )
        return [
            sheet,
            Sheet(
                title="",
                header=("condition", "rows", "selectivity", "source"),
                rows=shown,
                notes=(),
                right=frozenset({1, 2}),
            ),
        ]


def _cells(estimate: Estimate) -> tuple[str, ...]:
    return (
        thousands(estimate.value),
        thousands(estimate.low),
        thousands(estimate.high),
        estimate.kind.value,
    )


def estimate(
    table: Table,
    store: Store,
    where: Where,
    *,
    group_by: Sequence[str] = (),
    snapshot: int | None = None,
    zone: str = "UTC",
) -> EstimateReport:
    """Estimate the rows that match, and the distinct combinations of *group_by* among them."""
    current = table.at(snapshot)
    predicate = bind(where, table, current, zone)
    fields = [column_named(table.fields(current), name) for name in group_by]
    text = None if where is None else str(where)
    names = tuple(field.name for field in fields)
    if len(set(names)) < len(names):
        raise UsageError("a column is named twice", hint="name each column once")
    if current is None:
        none = Estimate.exact(0)
        return EstimateReport(
            table=str(table.name),
            where=text,
            snapshot_id=None,
            rows=none,
            proven=True,
            table_rows=0.0,
            conditions=(),
            notes=(),
            group_by=names,
            groups=none if names else None,
        )
    selection = select(prune(table, current, file_set(table, store, current), predicate))
    return EstimateReport(
        str(table.name),
        text,
        current.id,
        selection.rows,
        selection.proven,
        selection.table_rows,
        selection.conditions,
        selection.notes,
        names,
        *(estimate_groups(selection, fields) if fields else (None, "")),
    )
