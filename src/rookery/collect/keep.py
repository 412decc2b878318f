"""The new state: what is still valid of the old one, and what was read."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rookery.collect.distributions import DistributionSketches
from rookery.collect.prepare import AnalyzePlan
from rookery.collect.segments import Written
from rookery.collect.summary import summarize
from rookery.collect.tiers import merge_tiers
from rookery.model import FormatError
from rookery.sidecar import (
    FILES_SCHEMA,
    DistributionHeader,
    Index,
    SegmentEntry,
    State,
    StateHeader,
    Store,
)
from rookery.sidecar.live import file_keys
from rookery.sketch import MAX_THETA, ThetaSketch, union
from rookery.tables import Table

log = logging.getLogger(__name__)


def keep(
    table: Table,
    store: Store,
    work: AnalyzePlan,
    written: Sequence[Written],
    rows: tuple[DistributionHeader | None, DistributionSketches],
) -> State:
    """Write the new state: what is still valid of the old one, and the new segments."""
    old = work.state.header.segments if work.state is not None else ()
    segments = [*old, *(part.entry for part in written)]
    parts = [_carried_rows(work)] if work.state is not None else []
    places = dict(zip(work.live.keys.to_pylist(), work.live.decoded_lists.tolist(), strict=True))
    for number, group in enumerate(work.groups, len(old)):
        keys = file_keys(group.files)
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
    segments_left, files = _drop_dead(segments, files, set(work.declared.indexes))
    types = dict(work.state.header.types) if work.state is not None else {}
    types |= {field.id: field.type for field in work.fields}
    index = StateHeader(
        table_uuid=table.uuid,
        snapshot_id=work.snapshot.id,
        sequence_number=work.snapshot.sequence_number,
        timestamp_ms=work.snapshot.timestamp_ms,
        last_column_id=table.last_column_id,
        segments=tuple(segments_left),
        data_manifests=work.live.data_lists,
        delete_manifests=work.live.delete_lists,
        types=types,
        rows=rows[0],
    )
    state = work.declared.on(
        State(
            header=index,
            files=files,
            thetas=_thetas(work, written, types),
            quantiles=rows[1].quantiles,
            frequent=rows[1].frequent,
        )
    )
    # Columns excluded while files were added and removed are not known of this snapshot; their segments stay.
    complete = state.complete((*table.fields(work.snapshot), *work.fields))
    complete -= work.skipped.keys()
    state = replace(state, thetas={number: state.thetas[number] for number in types if number in complete})
    return store.publish(_limited(table, store, work, merge_tiers(store, state)))


def _limited(table: Table, store: Store, work: AnalyzePlan, state: State) -> State:
    """Note the columns that have fewer values than their sketches estimate distinct ones."""
    if all(sketch.theta == MAX_THETA for sketch in state.thetas.values()):
        return state
    try:
        summary = summarize(table, store, work.snapshot, state)
    except FormatError as error:  # of a segment that this run had no need to read
        log.warning("numbers of distinct values are not compared with those of rows: %s", error)
        return state
    counted = {column.field.id: int(column.ndv.value) for column in summary.columns if column.ndv is not None}
    fewer = {
        number: counted[number]
        for number in state.thetas
        if counted.get(number, math.inf) < state.ndv(number)
    }
    return replace(state, header=replace(state.header, ndvs=fewer))


def _carried_rows(work: AnalyzePlan) -> pa.Table:
    assert work.state is not None
    rows = work.state.files.take(pa.array(work.live.carried))
    return rows.set_column(3, FILES_SCHEMA.field("manifest"), pa.array(work.live.carried_lists))


def _drop_dead(
    segments: Sequence[SegmentEntry], files: pa.Table, indexes: Set[Index]
) -> tuple[list[SegmentEntry], pa.Table]:
    """Drop the segments with no live file, or nothing of use, and renumber the others."""
    segments = [
        replace(entry, indexes=tuple(index for index in entry.indexes if index in indexes))
        for entry in segments
    ]
    numbers = files["segment"].to_numpy()
    alive = set(np.unique(numbers).tolist())
    useful = [bool(entry.field_ids or entry.indexes) for entry in segments]
    kept = [number for number in range(len(segments)) if number in alive and useful[number]]
    renumber = np.full(len(segments), -1, np.int32)
    renumber[kept] = np.arange(len(kept), dtype=np.int32)
    if len(numbers):
        files = files.filter(pa.array(renumber[numbers] >= 0))
        files = files.set_column(
            1, FILES_SCHEMA.field("segment"), pa.array(renumber[files["segment"].to_numpy()])
        )
    return [segments[number] for number in kept], files.combine_chunks()


def _thetas(
    work: AnalyzePlan, written: Sequence[Written], types: Mapping[int, str]
) -> dict[int, ThetaSketch]:
    parts: dict[int, list[ThetaSketch]] = {field_id: [] for field_id in types}
    for field_id, sketch in work.base.items():
        parts[field_id].append(sketch)
    for part in written:
        for field_id, sketch in part.sketches.items():
            parts[field_id].append(sketch)
    return {field_id: union(sketches) for field_id, sketches in parts.items()}
