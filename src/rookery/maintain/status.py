"""The status of a table: its statistics, their visibility to engines, its layout, and policy breaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.indexes import KINDS
from rookery.maintain.breaches import breaches
from rookery.maintain.facts.drift import Drift, drift_of, worst
from rookery.maintain.facts.engine_visibility import (
    EngineVisibility,
    engine_visibility,
    spark_sees,
    trino_sees,
)
from rookery.maintain.facts.layout import Layout, layout
from rookery.maintain.facts.score import Score, score
from rookery.maintain.facts.sidecar_files import SidecarFiles, count_sidecar_files
from rookery.maintain.facts.staleness import Freshness, Staleness, StatsComparison
from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps.expire import expirable
from rookery.maintain.steps.step import PlanInput
from rookery.maintain.survey import Survey, survey
from rookery.sidecar import Index, Store
from rookery.tables import Table


@dataclass(frozen=True, slots=True)
class ColumnStatus:
    """A column's statistics: how old they are, and the range of its distinct values now."""

    name: str
    field_id: int
    type: str
    freshness: Freshness
    covered: float  # of the table's rows
    ndv: float | None  # as counted
    ndv_low: float
    ndv_high: float | None
    drift_low: float | None
    drift_high: float | None
    spark: bool  # whether Spark's optimizer finds it
    trino: bool


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """An index: how much of the table it covers."""

    kind: str
    column: str
    freshness: Freshness
    files_covered: int
    covered: float  # of the table's rows
    known: bool = True  # whether this version knows the kind


@dataclass(frozen=True, slots=True)
class TableStatus:
    """All that is known of a table's health, from metadata alone."""

    table: str
    format_version: int
    snapshot_id: int | None
    statistics: Staleness
    drift_low: float
    drift_high: float | None
    engine_visibility: tuple[EngineVisibility, ...]
    layout: Layout
    sidecar_files: SidecarFiles
    expirable_snapshots: int
    score: Score
    breaches: tuple[str, ...]  # breaches of the policy, a line each
    columns: tuple[ColumnStatus, ...] = ()
    indexes: tuple[IndexStatus, ...] = ()


def table_status(
    table: Table, store: Store, policy: Policy, *, now: float, columns: bool = False
) -> TableStatus:
    """Return a table's status; with *columns*, of each column and index too. No data is read."""
    surveyed = survey(table, store)
    view = PlanInput(survey=surveyed, policy=policy, now=now)
    compared = view.comparison
    age = view.age
    drift = drift_of(compared, uncounted=columns)
    least, most = worst(drift)
    table_layout = layout(surveyed, policy)
    by_engine = engine_visibility(surveyed, compared.line)
    old = expirable(view)
    sidecar = count_sidecar_files(surveyed)
    return TableStatus(
        str(table.name),
        table.format_version,
        surveyed.snapshot.id if surveyed.snapshot is not None else None,
        age,
        least,
        most,
        by_engine,
        table_layout,
        sidecar,
        old,
        score(age, by_engine, table_layout, policy, old),
        breaches(view),
        _columns(compared, age, drift) if columns else (),
        _indexes(surveyed) if columns else (),
    )


def _columns(compared: StatsComparison, age: Staleness, drifts: Sequence[Drift]) -> tuple[ColumnStatus, ...]:
    spark, trino = spark_sees(compared.survey), trino_sees(compared.survey, compared.line)
    rows = ((each, each.field.id in spark, each.field.id in trino) for each in drifts)
    return tuple(_column(compared, age, *each) for each in rows)


def _column(held: StatsComparison, age: Staleness, drift: Drift, spark: bool, trino: bool) -> ColumnStatus:
    counted = drift.before is not None
    freshness = Freshness.NEVER if not counted else Freshness.STALE if held.since else Freshness.CURRENT
    if counted and not held.on_line:
        freshness = Freshness.STALE
    field = drift.field
    return ColumnStatus(
        field.name,
        field.id,
        field.type,
        freshness,
        age.covered if counted else 0.0,
        drift.before,
        drift.low,
        drift.high,
        drift.at_least,
        drift.at_most,
        spark,
        trino,
    )


def _indexes(surveyed: Survey) -> tuple[IndexStatus, ...]:
    names = {field.id: field.name for field in surveyed.table.fields()}
    return tuple(
        _index(surveyed, index, names[index.field_id])
        for index in surveyed.declared.indexes
        if index.field_id in names
    )


def _index(surveyed: Survey, index: Index, column: str) -> IndexStatus:
    known = index.kind in KINDS
    if surveyed.fileset is None or surveyed.state is None:
        return IndexStatus(index.kind, column, Freshness.NEVER, 0, 0.0, known)
    covered = surveyed.fileset.covered(index)
    freshness = Freshness.STALE if covered.any() else Freshness.NEVER
    if covered.all():
        freshness = Freshness.CURRENT
    share = float(surveyed.numbers("rows")[covered].sum() / surveyed.rows) if surveyed.rows else 1.0
    return IndexStatus(index.kind, column, freshness, int(covered.sum()), share, known)
