"""From a table to its statistics: compare, plan, read, keep, register."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rookery.collect import plan
from rookery.collect.engine import run_engine
from rookery.collect.live import Live, live_files
from rookery.collect.progress import Progress, silent
from rookery.collect.run import merge, run
from rookery.collect.statistics import is_registered, register
from rookery.collect.work import Costs, Partial
from rookery.model import Field, RookeryError, Snapshot, UsageError
from rookery.sketch import MAX_THETA, K, ThetaSketch, union
from rookery.sketch.values import SUPPORTED, base_type
from rookery.store import FILES_SCHEMA, SegmentEntry, State, StateIndex, Store, write_segment
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an analysis did: the state it left, and what that cost."""

    state: State | None
    snapshot_id: int | None
    files: int
    files_to_read: int
    bytes_to_read: int
    costs: Costs
    seconds: float
    committed: bool
    skipped: tuple[Field, ...]  # columns of a type that cannot be sketched


@dataclass(frozen=True, slots=True)
class Work:
    """A plan with all that it rests upon."""

    snapshot: Snapshot
    fields: tuple[Field, ...]
    state: State | None
    live: Live
    base: Mapping[int, ThetaSketch]  # what the state knows of each column, less the files that are gone
    groups: list[plan.Group]


def analyze(
    spark: SparkSession,
    table: IcebergTable,
    store: Store,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    full: bool = False,
    snapshot_id: int | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Bring a table's statistics up to date; only files that no state describes are read."""
    started = time.perf_counter()
    snapshot = table.snapshot(snapshot_id)
    if snapshot is None:
        return Outcome(None, None, 0, 0, 0, Costs(), time.perf_counter() - started, False, ())
    fields, skipped = choose(table.fields(snapshot), columns, exclude)
    work = prepare(table, store, snapshot, fields, full)
    size = sum(int(group.files["size"].to_numpy().sum()) for group in work.groups)
    count = sum(group.files.num_rows for group in work.groups)
    costs, state, committed = Costs(), work.state, False
    if not dry_run:
        if work.groups or work.live.removed or _differs(work):
            partials = _read(spark, table, store, work, progress)
            state, costs = _keep(table, store, work, partials)
        assert state is not None
        if costs.files or not is_registered(table, snapshot, state):
            register(spark, table, snapshot, state, store.io_properties)
            committed = True
            store.collect_garbage(table.snapshots.keys())
    live = len(work.live.carried) if not work.live.decoded_all else work.live.decoded.num_rows
    seconds = time.perf_counter() - started
    return Outcome(state, snapshot.id, live, count, size, costs, seconds, committed, skipped)


def choose(
    fields: Sequence[Field], columns: Sequence[str], exclude: Sequence[str]
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the columns to collect, and those that were asked for but cannot be."""
    for name in (*columns, *exclude):
        if not any(_names(name, field) for field in fields):
            known = ", ".join(field.name for field in fields[:8])
            raise UsageError(
                f"there is no column '{name}'",
                hint=f"the columns are {known}" + (" …" if len(fields) > 8 else ""),
            )
    wanted = [field for field in fields if not columns or any(_names(name, field) for name in columns)]
    wanted = [field for field in wanted if not any(_names(name, field) for name in exclude)]
    able = tuple(field for field in wanted if base_type(field.type) in SUPPORTED)
    return able, tuple(field for field in wanted if field not in able)


def _names(name: str, field: Field) -> bool:
    """A name stands for its column, and for all leaves below it."""
    return field.name == name or field.name.startswith(f"{name}.")


def prepare(
    table: IcebergTable, store: Store, snapshot: Snapshot, fields: tuple[Field, ...], full: bool
) -> Work:
    """Find the state to build upon, and what is missing from it."""
    preferred = [ancestor.id for ancestor in table.ancestors(snapshot)]
    for _, state in () if full else store.newest(preferred):
        if state.index.table_uuid != str(table.table.metadata.table_uuid):
            continue
        try:
            return _build_upon(table, store, snapshot, fields, state)
        except RookeryError as error:
            if isinstance(error, UsageError):
                raise
            log.warning("a state is passed over: %s", error)
    live = live_files(table, snapshot, None, decode_all=True)
    return Work(snapshot, fields, None, live, {}, plan.groups(live.decoded, live.keys, fields, None))


def _build_upon(
    table: IcebergTable, store: Store, snapshot: Snapshot, fields: tuple[Field, ...], state: State
) -> Work:
    live = live_files(table, snapshot, state, decode_all=False)
    base = _surviving(store, state, live)
    state = _forget(state, [field_id for field_id, sketch in base.items() if _starved(sketch, live)], fields)
    base = {field_id: sketch for field_id, sketch in base.items() if field_id in state.index.types}
    if not live.decoded_all and _lacks_columns(state, fields):
        live = live_files(table, snapshot, state, decode_all=True)
    return Work(snapshot, fields, state, live, base, plan.groups(live.decoded, live.keys, fields, state))


def _surviving(store: Store, state: State, live: Live) -> Mapping[int, ThetaSketch]:
    """Each column's sketch over the state's files that live on; segments are read only if some do not."""
    if not live.removed:
        return state.thetas
    parts: dict[int, list[ThetaSketch]] = {field_id: [] for field_id in state.index.types}
    alive = State(state.index, state.files.take(pa.array(live.carried)))
    for number, entry in enumerate(state.index.segments):
        with store.open_segment(entry.name) as segment:
            for field_id, theta in segment.thetas(frozenset(entry.field_ids)).items():
                parts[field_id].append(theta.sketch(alive.live(number)))
    return {field_id: union(sketches) for field_id, sketches in parts.items()}


def _starved(sketch: ThetaSketch, live: Live) -> bool:
    """θ can only fall: where removals have left too few hashes below it, the column is collected again."""
    return live.removed > 0 and sketch.theta != MAX_THETA and len(sketch.hashes) < K // 2


def _forget(state: State, starved: Sequence[int], fields: Sequence[Field]) -> State:
    """Strike columns from a state: starved ones, and those whose type has changed."""
    types = {field.id: field.type for field in fields}
    gone = set(starved) | {
        field_id for field_id, kind in state.index.types.items() if types.get(field_id, kind) != kind
    }
    if not gone:
        return state
    segments = tuple(
        replace(entry, field_ids=tuple(field_id for field_id in entry.field_ids if field_id not in gone))
        for entry in state.index.segments
    )
    kept = {field_id: kind for field_id, kind in state.index.types.items() if field_id not in gone}
    return State(replace(state.index, segments=segments, types=kept), state.files, state.thetas)


def _lacks_columns(state: State, fields: Sequence[Field]) -> bool:
    return any(
        field.id not in state.index.types and field.id <= state.index.last_column_id for field in fields
    )


def _differs(work: Work) -> bool:
    """Whether the state, though nothing is to be read, is not yet that of this snapshot and these columns."""
    return (
        work.state is None
        or work.state.index.snapshot_id != work.snapshot.id
        or not {field.id for field in work.fields} <= set(work.state.index.types)
    )


def _read(
    spark: SparkSession, table: IcebergTable, store: Store, work: Work, progress: Progress
) -> list[tuple[SegmentEntry, Partial]]:
    """Read the groups, and write a segment for each as soon as it is complete."""
    simple: list[plan.Group] = []
    by_engine: dict[int, list[int]] = {}
    for group in work.groups:
        formats, deletes = group.files["format"].to_pylist(), group.files["deletes"].to_pylist()
        hard = [
            number
            for number, (kind, attached) in enumerate(zip(formats, deletes, strict=True))
            if kind != "parquet" or attached
        ]
        by_engine[group.number] = hard
        if len(hard) < group.files.num_rows:
            simple.append(group)
    tasks = plan.tasks(simple, spark.sparkContext.defaultParallelism, skip=by_engine)
    found = {partial.group: partial for partial in run(spark, tasks, store.io_properties, progress)}
    written = []
    for group in work.groups:
        parts = [found[group.number]] if group.number in found else []
        if by_engine[group.number]:
            parts.append(run_engine(spark, table.name, work.snapshot.id, group, by_engine[group.number]))
        partial = merge(parts)
        location = store.segment_path()
        write_segment(
            location,
            group.files,
            partial.thetas,
            snapshot_id=work.snapshot.id,
            sequence_number=work.snapshot.sequence_number,
            io_properties=store.io_properties,
        )
        name = location.rpartition("/")[2]
        entry = SegmentEntry(name, group.files.num_rows, tuple(sorted(partial.thetas)))
        written.append((entry, partial))
    return written


def _keep(
    table: IcebergTable, store: Store, work: Work, written: Sequence[tuple[SegmentEntry, Partial]]
) -> tuple[State, Costs]:
    """Write the new state: what lives on of the old one, and the new segments."""
    old = work.state.index.segments if work.state is not None else ()
    segments = [*old, *(entry for entry, _ in written)]
    parts = [_carried_rows(work)] if work.state is not None else []
    places = dict(zip(work.live.keys.to_pylist(), work.live.decoded_manifests.tolist(), strict=True))
    for number, group in enumerate(work.groups, len(old)):
        keys = plan.file_keys(group.files["path"].to_pylist(), group.files["deletes"].to_pylist())
        parts.append(
            pa.table(
                [
                    keys,
                    pa.array(np.full(len(keys), number, np.int32)),
                    pa.array(np.arange(len(keys), dtype=np.int16)),
                    pa.array([places[key] for key in keys.to_pylist()], pa.int32()),
                    group.files["rows"].combine_chunks(),
                ],
                schema=FILES_SCHEMA,
            )
        )
    files = pa.concat_tables(parts) if parts else FILES_SCHEMA.empty_table()
    segments_left, files = _drop_dead(segments, files)
    types = dict(work.state.index.types) if work.state is not None else {}
    types |= {field.id: field.type for field in work.fields}
    index = StateIndex(
        str(table.table.metadata.table_uuid),
        work.snapshot.id,
        work.snapshot.sequence_number,
        work.snapshot.timestamp_ms,
        table.table.metadata.last_column_id,
        tuple(segments_left),
        work.live.data_manifests,
        work.live.delete_manifests,
        types,
    )
    state = State(index, files, _thetas(work, [partial for _, partial in written], types))
    store.write_state(state)
    return state, sum((partial.costs for _, partial in written), Costs())


def _carried_rows(work: Work) -> pa.Table:
    assert work.state is not None
    rows = work.state.files.take(pa.array(work.live.carried))
    return rows.set_column(3, FILES_SCHEMA.field("manifest"), pa.array(work.live.carried_manifests))


def _drop_dead(segments: Sequence[SegmentEntry], files: pa.Table) -> tuple[list[SegmentEntry], pa.Table]:
    """Leave out the segments with no live file, or no column of use, and number the others anew."""
    numbers = files["segment"].to_numpy()
    alive = set(np.unique(numbers).tolist())
    kept = [number for number in range(len(segments)) if number in alive and segments[number].field_ids]
    renumber = np.full(len(segments), -1, np.int32)
    renumber[kept] = np.arange(len(kept), dtype=np.int32)
    if len(numbers):
        files = files.filter(pa.array(renumber[numbers] >= 0))
        files = files.set_column(
            1, FILES_SCHEMA.field("segment"), pa.array(renumber[files["segment"].to_numpy()])
        )
    return [segments[number] for number in kept], files.combine_chunks()


def _thetas(work: Work, partials: Sequence[Partial], types: Mapping[int, str]) -> dict[int, ThetaSketch]:
    parts: dict[int, list[ThetaSketch]] = {field_id: [] for field_id in types}
    for field_id, sketch in work.base.items():
        parts[field_id].append(sketch)
    for partial in partials:
        for field_id, theta in partial.thetas.items():
            parts[field_id].append(theta.sketch())
    return {field_id: union(sketches) for field_id, sketches in parts.items()}
