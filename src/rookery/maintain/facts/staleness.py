"""How old a table's statistics are: of which snapshot, what has changed since, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rookery.blobs import NDV
from rookery.maintain.facts.changes import NO_DIFFERENCE, Changes, Difference, since_snapshot, since_state
from rookery.maintain.survey import Survey
from rookery.model import Snapshot
from rookery.model.table import REPLACE
from rookery.model.type_names import SKETCHED, base_type
from rookery.puffin import THETA_V1
from rookery.sidecar.statistics_file import matches_state
from rookery.tables import RowChanges, StatisticsFile

_NO_ROWS = RowChanges(added=0, removed=0, deletes_added=0, deletes_removed=0, value_deletes_added=0)


class Freshness(StrEnum):
    """Whether there are statistics, and of now."""

    NEVER = "never"
    CURRENT = "current"
    STALE = "stale"


class Cause(StrEnum):
    """Why statistics are not what they could be."""

    INGEST = "ingest"
    COMPACTION = "compaction"
    DELETES = "deletes"
    SCHEMA = "schema change"
    PARTITIONS = "partition evolution"
    FOREIGN = "foreign statistics"
    EXPIRED = "expired snapshot"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Staleness:
    """The age of a table's statistics."""

    freshness: Freshness
    ours: bool  # whether they are Rookery's own
    snapshot_id: int | None
    snapshots_behind: int | None  # none: of no ancestor of the current snapshot
    changes: Changes
    changed_rows: int
    rows: int
    health: float
    covered: float
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class StatsOrigin:
    """The statistics that are there: of which snapshot, and whose."""

    snapshot_id: int
    moment: tuple[int, int]  # sequence number and time: in version 1 all numbers are 0
    ours: bool
    file: StatisticsFile | None  # as registered for that snapshot


class Ancestry:
    """The line of ancestors of the current snapshot, the newest first."""

    def __init__(self, survey: Survey) -> None:
        table, snapshot = survey.table, survey.snapshot
        self.snapshots: list[Snapshot] = list(table.ancestors(snapshot)) if snapshot is not None else []
        self.ids = frozenset(snapshot.id for snapshot in self.snapshots)

    def since(self, base: StatsOrigin) -> list[Snapshot]:
        """Return the snapshots after that of the statistics; if it is not on the line, all that are known."""
        ids = [snapshot.id for snapshot in self.snapshots]
        if base.snapshot_id in ids:
            return self.snapshots[: ids.index(base.snapshot_id)]
        return [each for each in self.snapshots if _moment(each) > base.moment]

    def may_follow(self, base: StatsOrigin) -> bool:
        """Whether the statistics' snapshot may have been on the line, before the oldest one that is known."""
        oldest = self.snapshots[-1] if self.snapshots else None
        return oldest is not None and oldest.parent_id is not None and base.moment < _moment(oldest)


def _moment(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number, snapshot.timestamp_ms


@dataclass(frozen=True, slots=True, eq=False)
class StatsComparison:
    """Statistics compared with the current table."""

    survey: Survey
    line: Ancestry
    base: StatsOrigin | None  # none: there are no statistics
    since: tuple[Snapshot, ...]
    difference: Difference

    @property
    def on_line(self) -> bool:
        """Whether the statistics are of an ancestor of the current snapshot, or of itself."""
        return self.base is not None and self.base.snapshot_id in self.line.ids


def comparison(survey: Survey) -> StatsComparison:
    """Compare a table's statistics with its current snapshot."""
    line = Ancestry(survey)
    base = base_of(survey, line)
    if base is None:
        return StatsComparison(survey=survey, line=line, base=None, since=(), difference=NO_DIFFERENCE)
    return StatsComparison(
        survey=survey,
        line=line,
        base=base,
        since=tuple(line.since(base)),
        difference=_difference(survey, base),
    )


def _difference(survey: Survey, base: StatsOrigin) -> Difference:
    """By the state if statistics are Rookery's, by their snapshot if another writer's."""
    if base.ours:
        return since_state(survey)
    then = survey.table.snapshots.get(base.snapshot_id)
    return since_snapshot(survey, then) if then is not None else NO_DIFFERENCE


def staleness(compared: StatsComparison) -> Staleness:
    """Return how old a table's statistics are."""
    survey, base = compared.survey, compared.base
    rows = survey.rows
    if base is None:
        health = 0.0 if rows else 1.0
        return Staleness(
            freshness=Freshness.NEVER,
            ours=False,
            snapshot_id=None,
            snapshots_behind=None,
            changes=Changes(),
            changed_rows=rows,
            rows=rows,
            health=health,
            covered=0.0,
            causes=(),
        )
    changes = compared.difference.changes()
    changed = changed_rows(survey, compared.since) if compared.on_line else None
    causes = _causes(compared, base, changes)
    behind = bool(compared.since) or not compared.on_line or Cause.SCHEMA in causes
    total = max(changes.rows_added, changes.rows_removed) if changed is None else changed.at_most
    return Staleness(
        freshness=Freshness.STALE if behind else Freshness.CURRENT,
        ours=base.ours,
        snapshot_id=base.snapshot_id,
        snapshots_behind=len(compared.since) if compared.on_line or Cause.EXPIRED in causes else None,
        changes=changes,
        changed_rows=total,
        rows=rows,
        health=_health(total, rows),
        covered=changes.rows_covered / rows if rows else 1.0,
        causes=causes,
    )


def _health(changed: int, rows: int) -> float:
    """The share of rows that have not changed.

    >>> _health(20, 100), _health(300, 100), _health(0, 0)
    (0.8, 0.0, 1.0)
    """
    return 1.0 if not changed else max(0.0, 1.0 - changed / rows) if rows else 0.0


def base_of(survey: Survey, line: Ancestry) -> StatsOrigin | None:
    """Find the statistics to report: Rookery's, even if others were registered since; else the nearest.

    Engines carry sketches over to snapshots of their own: that these state something does not mean that our
    state covers their files.
    """
    registered = {file.snapshot_id: file for file in survey.table.statistics if stated_ndvs(file)}
    state = survey.state
    if state is not None and state.thetas:
        header = state.header
        moment = (header.sequence_number, header.timestamp_ms)
        return StatsOrigin(header.snapshot_id, moment, True, registered.get(header.snapshot_id))
    for snapshot in line.snapshots:
        if snapshot.id in registered:
            return StatsOrigin(snapshot.id, _moment(snapshot), False, registered[snapshot.id])
    known = survey.table.snapshots
    elsewhere = [file for number, file in registered.items() if number in known]
    newest = max(elsewhere, key=lambda file: known[file.snapshot_id].timestamp_ms, default=None)
    if newest is None:
        return None
    return StatsOrigin(newest.snapshot_id, _moment(known[newest.snapshot_id]), False, newest)


def stated_ndvs(file: StatisticsFile) -> dict[int, int]:
    """Return the numbers of distinct values that a registered statistics file states, by field id."""
    ndvs = {}
    for blob in file.blobs:
        stated = blob.properties.get(NDV, "")
        if blob.type == THETA_V1 and len(blob.fields) == 1 and stated.isascii() and stated.isdigit():
            ndvs[blob.fields[0]] = int(stated)
    return ndvs


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """How many rows snapshots have changed, as their writers state; a rewrite changes none."""

    brought: int
    taken: int | None  # None: there are deletes by value, which do not state it
    at_most: int  # of rows replaced by others the greater number counts, as an update does both


def changed_rows(survey: Survey, since: Sequence[Snapshot]) -> ChangedRows | None:
    """Return how many rows these snapshots have changed, or None if one does not state it."""
    brought, total = 0, 0
    taken: int | None = 0
    for snapshot in since:
        if snapshot.operation == REPLACE:
            continue
        rows = survey.table.changes_of(snapshot).rows
        if snapshot.operation is None or rows is None:
            return None
        gone = rows.removed + max(rows.deletes_added - rows.deletes_removed, 0)
        by_value = rows.value_deletes_added
        brought += rows.added
        taken = None if taken is None or by_value else taken + gone
        total += max(rows.added, gone + by_value)
    return ChangedRows(brought, taken, total)


def _causes(comparison: StatsComparison, base: StatsOrigin, changes: Changes) -> tuple[Cause, ...]:
    survey, since = comparison.survey, comparison.since
    causes: set[Cause] = set()
    for snapshot in since:
        changed = survey.table.changes_of(snapshot)
        if snapshot.operation == REPLACE:
            causes |= set() if changed.files == 0 else {Cause.COMPACTION}
            continue
        rows = changed.rows or _NO_ROWS
        if rows.added or snapshot.operation == "append":
            causes.add(Cause.INGEST)
        if rows.removed or rows.deletes_added or rows.value_deletes_added or snapshot.operation == "delete":
            causes.add(Cause.DELETES)
    if not comparison.on_line:
        causes.add(Cause.EXPIRED if comparison.line.may_follow(base) else Cause.ROLLBACK)
    if changes.new_specs:
        causes.add(Cause.PARTITIONS)
    if _schema_changed(survey, base):
        causes.add(Cause.SCHEMA)
    if is_foreign(survey, base):
        causes.add(Cause.FOREIGN)
    return tuple(cause for cause in Cause if cause in causes)


def _schema_changed(survey: Survey, base: StatsOrigin) -> bool:
    """Whether there are columns, or types of columns, that are younger than the statistics."""
    columns = [field for field in survey.table.fields() if base_type(field.type) in SKETCHED]
    state = survey.state
    if base.ours and state is not None:
        types = state.header.types
        return any(
            types.get(each.id, each.type) != each.type
            or (each.id not in types and each.id > state.header.last_column_id)
            for each in columns
        )
    then = survey.table.snapshots.get(base.snapshot_id)
    schema = survey.table.written_schema(then) if then is not None else None
    if schema is None:
        return False
    before = {field.id: field.type for field in schema.leaves}
    return any(before.get(each.id) != each.type for each in columns)


def is_foreign(survey: Survey, base: StatsOrigin) -> bool:
    """Whether others have registered the statistics, or those of the current snapshot."""
    return not base.ours or others_registered(survey, survey.snapshot) or _replaced(survey, base)


def others_registered(survey: Survey, snapshot: Snapshot | None) -> bool:
    """Whether what is registered for a snapshot is not what Rookery has collected for it."""
    files = survey.table.statistics
    registered = [file for file in files if snapshot is not None and file.snapshot_id == snapshot.id]
    if snapshot is None or not any(stated_ndvs(file) for file in registered):
        return False
    state = survey.state
    if state is None or state.header.snapshot_id != snapshot.id:
        return True
    return not all(matches_state(survey.table, snapshot, state, file) for file in registered)


def _replaced(survey: Survey, base: StatsOrigin) -> bool:
    """Whether others have replaced what was registered for the statistics' own snapshot."""
    then = survey.table.snapshots.get(base.snapshot_id)
    return base.file is not None and then is not None and others_registered(survey, then)
