"""The status of a table: its statistics, their visibility to engines, its layout, and policy breaches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rookery.indexes import KINDS
from rookery.maintain.breaches import lasting_breaches, overdue
from rookery.maintain.facts.drift import Drift, drift_of, worst
from rookery.maintain.facts.engine_visibility import (
    EngineVisibility,
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

_BYTES = 2048  # of memory for a table, a column or an index
_NO_TIME = math.nan  # plans of the steps that breaches come from do not depend on it


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


@dataclass(frozen=True, slots=True)
class _Lasting:
    """What stays the same while neither a table nor the files beside it change, nor its policy."""

    policy: Policy
    age: Staleness
    drift_low: float
    drift_high: float | None
    engine_visibility: tuple[EngineVisibility, ...]
    layout: Layout
    breaches: tuple[str, ...]
    columns: tuple[ColumnStatus, ...]
    indexes: tuple[IndexStatus, ...]

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        return _BYTES * (1 + len(self.columns) + len(self.indexes))


def table_status(
    table: Table, store: Store, policy: Policy, *, now: float, columns: bool = False
) -> TableStatus:
    """Return a table's status; with *columns*, of each column and index too. No data is read.

    What lasts is cached by the version of the table and the files beside it, which are listed each time.
    """
    listing = store.listing()
    lasting = _lasting(table, store, policy, listing, columns=columns)
    snapshot = table.snapshot()
    old = expirable(table, policy.snapshots, now)
    return TableStatus(
        table=str(table.name),
        format_version=table.format_version,
        snapshot_id=snapshot.id if snapshot is not None else None,
        statistics=lasting.age,
        drift_low=lasting.drift_low,
        drift_high=lasting.drift_high,
        engine_visibility=lasting.engine_visibility,
        layout=lasting.layout,
        sidecar_files=count_sidecar_files(table, store, listing),
        expirable_snapshots=old,
        score=score(lasting.age, lasting.engine_visibility, lasting.layout, policy, old),
        breaches=(*lasting.breaches, *overdue(table, policy, now)),
        columns=lasting.columns,
        indexes=lasting.indexes,
    )


def _lasting(
    table: Table, store: Store, policy: Policy, listing: Mapping[str, int], *, columns: bool
) -> _Lasting:
    if table.version is None:
        return _look(survey(table, store), policy, columns=columns)
    # States and segments never change, and a version of a table neither; one of the same name may come again
    # after the table was dropped, but not with its uuid.
    key = (
        "status",
        str(table.name),
        table.uuid,
        table.version,
        store.location,
        frozenset(listing.items()),
        columns,
    )
    found: _Lasting | None = store.cache.find(key)
    if found is None or found.policy != policy:
        found = _look(survey(table, store), policy, columns=columns)
        store.cache.put(key, found, found.nbytes)
    return found


def _look(surveyed: Survey, policy: Policy, *, columns: bool) -> _Lasting:
    view = PlanInput(survey=surveyed, policy=policy, now=_NO_TIME)
    compared = view.comparison
    drift = drift_of(compared, uncounted=columns)
    return _Lasting(
        policy,
        view.age,
        *worst(drift),
        view.engine_visibility,
        layout(surveyed, policy),
        tuple(lasting_breaches(view)),
        _columns(compared, view.age, drift) if columns else (),
        _indexes(surveyed) if columns else (),
    )


def _columns(compared: StatsComparison, age: Staleness, drifts: Sequence[Drift]) -> tuple[ColumnStatus, ...]:
    spark, trino = spark_sees(compared.survey), trino_sees(compared.survey, compared.line)
    rows = ((each, each.field.id in spark, each.field.id in trino) for each in drifts)
    return tuple(_column(compared, age, *each) for each in rows)


def _column(
    compared: StatsComparison, age: Staleness, drift: Drift, spark: bool, trino: bool
) -> ColumnStatus:
    counted = drift.before is not None
    freshness = Freshness.NEVER if not counted else Freshness.STALE if compared.since else Freshness.CURRENT
    if counted and not compared.on_line:
        freshness = Freshness.STALE
    field = drift.field
    return ColumnStatus(
        name=field.name,
        field_id=field.id,
        type=field.type,
        freshness=freshness,
        covered=age.covered if counted else 0.0,
        ndv=drift.before,
        ndv_low=drift.low,
        ndv_high=drift.high,
        drift_low=drift.at_least,
        drift_high=drift.at_most,
        spark=spark,
        trino=trino,
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
        return IndexStatus(
            kind=index.kind,
            column=column,
            freshness=Freshness.NEVER,
            files_covered=0,
            covered=0.0,
            known=known,
        )
    covered = surveyed.fileset.covered(index)
    freshness = Freshness.STALE if covered.any() else Freshness.NEVER
    if covered.all():
        freshness = Freshness.CURRENT
    share = float(surveyed.numbers("rows")[covered].sum() / surveyed.rows) if surveyed.rows else 1.0
    return IndexStatus(
        kind=index.kind,
        column=column,
        freshness=freshness,
        files_covered=int(covered.sum()),
        covered=share,
        known=known,
    )
