"""The status of a table: its statistics, who sees them, how it lies, and what of it is below its policy."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rookery.maintain.breaches import breaches
from rookery.maintain.facts.beside import Beside, beside
from rookery.maintain.facts.drift import Drift, drift_of, worst
from rookery.maintain.facts.layout import Layout, layout
from rookery.maintain.facts.score import Score, score
from rookery.maintain.facts.sights import Sight, sights, spark_sees, trino_sees
from rookery.maintain.facts.staleness import Freshness, Staleness, Standing, staleness
from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps.expire import expirable
from rookery.maintain.steps.step import Look, Subject, no_spark
from rookery.maintain.survey import Survey, survey
from rookery.store import Index, Store
from rookery.tables.iceberg import IcebergTable


@dataclass(frozen=True, slots=True)
class ColumnStatus:
    """A column's statistics: how old they are, and between what its distinct values lie now."""

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


@dataclass(frozen=True, slots=True)
class TableStatus:
    """All that is known of a table's health, from metadata alone."""

    table: str
    format_version: int
    snapshot_id: int | None
    statistics: Staleness
    drift_low: float
    drift_high: float | None
    sights: tuple[Sight, ...]
    layout: Layout
    beside: Beside
    expirable_snapshots: int
    score: Score
    breaches: tuple[str, ...]  # what is below the policy, a line each
    columns: tuple[ColumnStatus, ...] = ()
    indexes: tuple[IndexStatus, ...] = ()


def table_status(
    table: IcebergTable, store: Store, policy: Policy, *, now: float, columns: bool = False
) -> TableStatus:
    """Return a table's status; with *columns*, of each column and index too. No data is read."""
    seen = survey(table, store)
    look = Look(Subject(table.name, lambda: (table, store), no_spark, policy, lambda: now), seen)
    held = look.standing
    age = staleness(held)
    drift = drift_of(held, uncounted=columns)
    least, most = worst(drift)
    lies = layout(seen, policy)
    by_engine = sights(seen, held.line)
    old = expirable(look)
    near = beside(seen)
    return TableStatus(
        str(table.name),
        table.format_version,
        seen.snapshot.id if seen.snapshot is not None else None,
        age,
        least,
        most,
        by_engine,
        lies,
        near,
        old,
        score(age, by_engine, lies, policy, old),
        breaches(look),
        tuple(_column(held, age, each) for each in drift) if columns else (),
        _indexes(seen) if columns else (),
    )


def _column(held: Standing, age: Staleness, drift: Drift) -> ColumnStatus:
    seen = held.survey
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
        field.id in spark_sees(seen),
        field.id in trino_sees(seen, held.line),
    )


def _indexes(seen: Survey) -> tuple[IndexStatus, ...]:
    declared = seen.store.declared(str(seen.table.table.metadata.table_uuid)).typed(seen.table.fields())
    names = {field.id: field.name for field in seen.table.fields()}
    return tuple(
        _index(seen, index, names[index.field_id]) for index in declared.indexes if index.field_id in names
    )


def _index(seen: Survey, index: Index, column: str) -> IndexStatus:
    if seen.fileset is None or seen.state is None:
        return IndexStatus(index.kind.value, column, Freshness.NEVER, 0, 0.0)
    covered = {number for place in seen.fileset.having(index) for number in place.numbers.tolist()}
    rows = seen.files["rows"].take(pa.array(sorted(covered), pa.int64())).to_numpy().sum() if covered else 0
    freshness = Freshness.NEVER if not covered else Freshness.STALE
    if len(covered) == len(seen.fileset):
        freshness = Freshness.CURRENT
    share = float(rows / seen.rows) if seen.rows else 1.0
    return IndexStatus(index.kind.value, column, freshness, len(covered), share)
