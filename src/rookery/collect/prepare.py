"""What is missing: a snapshot compared with the state to build on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from rookery.collect import plan
from rookery.collect.column_sets import column_set_fields
from rookery.collect.declared_statistics import NO_CHANGE, DeclarationChange
from rookery.collect.distribution_request import DistributionRequest
from rookery.collect.readable import skipped_files, unreadable
from rookery.indexes import kind_for
from rookery.model import Field, Snapshot
from rookery.sidecar import Declared, Index, State, Store
from rookery.sidecar.declared import joined
from rookery.sidecar.live import Live, live_files
from rookery.sidecar.usable import from_best_state
from rookery.sketch import MAX_THETA, K, ThetaSketch, union
from rookery.tables import Table


@dataclass(frozen=True, slots=True)
class AnalyzePlan:
    """A plan with all that it depends on."""

    snapshot: Snapshot
    fields: tuple[Field, ...]
    state: State | None
    live: Live
    base: Mapping[int, ThetaSketch]  # the state's sketch of each column, without removed files
    groups: list[plan.Group]
    declared: Declared
    skipped: Mapping[int, int] = field(default_factory=dict)  # columns that are not read in so many files
    declarations_differ: bool = False  # whether the state declares something else, or has what was dropped


def prepare(
    table: Table,
    store: Store,
    snapshot: Snapshot,
    fields: tuple[Field, ...],
    full: bool,
    change: DeclarationChange = NO_CHANGE,
) -> AnalyzePlan:
    """Find the state to build on, and what is missing from it.

    Even if it is not built on, what a state has declared (column sets, distributions) stays declared.
    """
    now = time.time_ns()
    known = store.declared(table.uuid)
    columns = table.fields(snapshot)

    def build(state: State) -> AnalyzePlan | None:
        nonlocal known
        known = joined([known, Declared.of(state.header)])  # it need not be among the recent ones
        declared = change.on(known, now).typed(columns)
        every = _with_column_sets(fields, declared, columns)
        return None if full else _build_on(table, store, snapshot, every, declared, state)

    work = from_best_state(table, store, snapshot, build)
    if work is not None:
        return work
    declared = change.on(known, now).typed(columns)
    fields = _with_column_sets(fields, declared, columns)
    live = live_files(table, snapshot, None, decode_all=True)
    wanted = _columns_of(declared.indexes, columns)
    unable = unreadable(table, snapshot)
    groups = plan.groups(live.decoded, live.keys, fields, wanted, None, unable)
    skipped = _skipped(live, (*columns, *fields), unable)
    return AnalyzePlan(
        snapshot=snapshot,
        fields=fields,
        state=None,
        live=live,
        base={},
        groups=groups,
        declared=declared,
        skipped=skipped,
    )


def _with_column_sets(
    fields: tuple[Field, ...], declared: Declared, columns: Sequence[Field]
) -> tuple[Field, ...]:
    sets = column_set_fields(declared.column_sets, columns)
    return (*fields, *(each for each in sets if each not in fields))


def _skipped(live: Live, fields: Sequence[Field], unable: frozenset[int]) -> dict[int, int]:
    """Return the columns that are not read in all files, and in how many they are not."""
    counts = {field.id: int(skipped_files(live.decoded, field, unable).sum()) for field in fields}
    return {field_id: count for field_id, count in counts.items() if count}


def _columns_of(indexes: Sequence[Index], fields: Sequence[Field]) -> list[plan.IndexColumn]:
    """The indexes that can be built: of a kind that is known, and on a column that is there.

    A column may have been dropped, and may come back by a rollback.
    """
    by_id = {field.id: field for field in fields}
    there = [(index, by_id[index.field_id]) for index in indexes if index.field_id in by_id]
    kinds = [(index, field, kind_for(index, field)) for index, field in there]
    return [plan.IndexColumn(index, field, kind) for index, field, kind in kinds if kind is not None]


def _build_on(
    table: Table,
    store: Store,
    snapshot: Snapshot,
    fields: tuple[Field, ...],
    declared: Declared,
    state: State,
) -> AnalyzePlan:
    store.check(state)
    dropped = _dropped_sets(state, declared)
    others = bool(dropped) or set(Declared.of(state.header).statistics) != set(declared.statistics)
    live = live_files(table, snapshot, state, decode_all=False)
    base = _surviving(store, state, live)
    undersampled = [field_id for field_id, sketch in base.items() if _undersampled(sketch, live)]
    state = _forget(state, [*undersampled, *dropped], table.fields(snapshot))
    base = {field_id: sketch for field_id, sketch in base.items() if field_id in state.header.types}
    wanted = _columns_of(declared.indexes, table.fields(snapshot))
    # Whether a column can be read depends on the formats and deletes of all files, which states do not state.
    unable = unreadable(table, snapshot)
    if not live.decoded_all and (unable or _lacks_something(state, live, fields, wanted)):
        live = live_files(table, snapshot, state, decode_all=True)
    groups = plan.groups(live.decoded, live.keys, fields, wanted, state, unable)
    skipped = _skipped(live, (*table.fields(snapshot), *fields), unable)
    others |= state.header.indexes != declared.indexes
    return AnalyzePlan(
        snapshot=snapshot,
        fields=fields,
        state=state,
        live=live,
        base=base,
        groups=groups,
        declared=declared,
        skipped=skipped,
        declarations_differ=others,
    )


def _dropped_sets(state: State, declared: Declared) -> list[int]:
    """The ids of column sets that a state has, and that are no longer declared."""
    kept = set(declared.column_sets)
    return [number for number, members in state.header.column_sets.items() if members not in kept]


def _surviving(store: Store, state: State, live: Live) -> Mapping[int, ThetaSketch]:
    """Each column's sketch over the state's files that are live.

    Segments are read only if some files do not, or if a column was excluded when its files last changed.
    """
    wanted = state.header.types.keys() - (set() if live.removed else state.thetas.keys())
    parts: dict[int, list[ThetaSketch]] = {field_id: [] for field_id in wanted}
    alive = replace(state, files=state.files.take(pa.array(live.carried)))
    for number, entry in enumerate(state.header.segments):
        mask, known = alive.live(number), wanted.intersection(entry.field_ids)
        if not known or not mask.any():  # a segment without live files no longer limits θ
            continue
        with store.open_segment(entry) as segment:
            for field_id, theta in segment.thetas(frozenset(known)).items():
                parts[field_id].append(theta.sketch(mask))
    return {**state.thetas, **{field_id: union(sketches) for field_id, sketches in parts.items()}}


def _undersampled(sketch: ThetaSketch, live: Live) -> bool:
    """θ never rises: where removals have left too few hashes below it, the column is collected again."""
    return live.removed > 0 and sketch.theta != MAX_THETA and len(sketch.hashes) < K // 2


def _forget(state: State, undersampled: Sequence[int], fields: Sequence[Field]) -> State:
    """Remove columns from a state: undersampled ones, and those whose type has changed."""
    types = {field.id: field.type for field in fields}
    retyped = {field_id for field_id, kind in state.header.types.items() if types.get(field_id, kind) != kind}
    removed = {*undersampled, *retyped}
    if not removed:
        return state
    segments = tuple(
        replace(entry, field_ids=tuple(field_id for field_id in entry.field_ids if field_id not in removed))
        for entry in state.header.segments
    )
    kept = {field_id: kind for field_id, kind in state.header.types.items() if field_id not in removed}
    return replace(
        state,
        header=replace(state.header, segments=segments, types=kept),
        frequent={number: each for number, each in state.frequent.items() if number not in retyped},
    )


def _lacks_something(
    state: State, live: Live, fields: Sequence[Field], indexes: Sequence[plan.IndexColumn]
) -> bool:
    """Whether a column of a file that the state knows is still to be read, or an index to be built."""
    alive = replace(state, files=state.files.take(pa.array(live.carried)))
    keys = pc.unique(alive.files["key"].combine_chunks())
    return not (
        {field.id for field in fields} <= alive.complete(fields)
        and all(plan.coverage(keys, alive, wanted.index).all() for wanted in indexes)
    )


def differs(work: AnalyzePlan, wants: DistributionRequest) -> bool:
    """Whether a new state must be written: something is to be read, or declarations differ."""
    return (
        bool(work.groups)
        or work.live.removed > 0
        or work.state is None
        or not wants.are_in(work.state)
        or work.state.header.snapshot_id != work.snapshot.id
        or work.declarations_differ
        or not {field.id for field in work.fields} <= set(work.state.header.types)
    )
