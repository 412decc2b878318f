"""Summaries of each column from the state and the zone maps, for a table or some of its partitions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.collect.column_sets import column_set_fields, is_column_set
from rookery.collect.extremes import NO_VALUE, ColumnBounds, Extreme
from rookery.model import Certainty, Estimate, Field, Snapshot
from rookery.model.type_names import SKETCHED, base_type
from rookery.sidecar import State, Store, ZoneMap
from rookery.sidecar.lengths import LENGTHS_SCHEMA
from rookery.sidecar.live import Live, live_files
from rookery.sketch import ThetaSketch, union
from rookery.sketch.lengths import Lengths
from rookery.tables import FILE_SCHEMA, IDENTITY, Table, identities

FileTest = Callable[[pa.Table], NDArray[np.bool_]]
"""Which of these files (rows of a zone map) count."""


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What is known of one column."""

    field: Field
    ndv: Estimate | None
    coverage: float  # the share of rows that the NDV describes
    nulls: int | None = None
    low: Extreme = NO_VALUE
    high: Extreme = NO_VALUE
    size: int | None = None
    lengths: Lengths | None = None  # of the values, in the files whose lengths are known
    greatest_length: int | None = None  # if it is known of all files
    unknown: Mapping[str, str] = dataclasses.field(default_factory=dict)  # why, by name


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What is known of a table, or of a part of it."""

    files: int
    rows: int  # of all files, deleted ones among them
    files_with_deletes: int
    columns: tuple[ColumnSummary, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """Files whose zone map is available, and their segment's distinct values."""

    zone_map: ZoneMap
    sketches: Mapping[int, ThetaSketch]
    field_ids: frozenset[int]
    absent: frozenset[int] = frozenset()  # columns that none of the files has: they are null throughout
    lengths: Mapping[int, pa.Table] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """All that is available of the files that count."""

    parts: Sequence[_Part]
    zone_map: ZoneMap  # each file once
    origins: NDArray[np.int64]  # the part that each file comes from
    whole: Mapping[int, ThetaSketch] | None  # of all described files, if these are exactly those of the state
    last: Mapping[int, ThetaSketch] | None  # of the files that the state has described, removed or not

    @property
    def rows(self) -> int:
        """The rows of all files, deleted ones among them."""
        return int(pc.sum(self.zone_map.files["rows"]).as_py() or 0)

    @property
    def files_with_deletes(self) -> int:
        """The files of which rows may be deleted."""
        return int(pc.sum(pc.not_equal(self.zone_map.files["deletes"].fill_null(""), "")).as_py() or 0)

    def lengths(self, column: Field) -> tuple[Lengths | None, int | None]:
        """Return the lengths in the files of which they are known, and the greatest if it is that of all."""
        tables = [part.lengths[column.id].drop_null() for part in self.parts if column.id in part.lengths]
        if not tables:
            return None, None
        known = pa.concat_tables(tables)
        values, size, greatest = (known[name].to_numpy() for name in LENGTHS_SCHEMA.names)
        lengths = Lengths(int(values.sum()), int(size.sum()), int(greatest.max(initial=0)))
        covered = len(known) + sum(len(part.zone_map) for part in self.parts if column.id in part.absent)
        return lengths, lengths.greatest if covered >= len(self.zone_map) else None

    def bounds(self, column: Field) -> ColumnBounds:
        """Return what file lists state of a column."""
        lacking = [number for number, part in enumerate(self.parts) if column.id in part.absent]
        return ColumnBounds(column, self.zone_map, np.isin(self.origins, lacking))


def summarize(
    table: Table,
    store: Store,
    snapshot: Snapshot,
    state: State | None,
    wanted: FileTest | None = None,
    *,
    with_lengths: bool = False,
) -> TableSummary:
    """Sum up a snapshot from *state* and the file lists that it does not know; no data is read."""
    live = live_files(table, snapshot, state, decode_all=False)
    fields = table.fields(snapshot)
    if state is not None:
        fields = (*fields, *column_set_fields(state.header.column_sets.values(), fields))
    parts = _parts(store, state, live, wanted, fields, with_lengths)
    zone_map = ZoneMap.concat([part.zone_map for part in parts])
    # A file that is in two segments, for different columns, is counted once.
    first = first_of_each(identities(zone_map.files))
    sizes = np.array([len(part.zone_map) for part in parts], np.int64)
    origins = np.repeat(np.arange(len(parts)), sizes)[first]
    known = Known(
        parts=parts,
        zone_map=zone_map if first.all() else zone_map.filter(first),
        origins=origins,
        whole=None,
        last=None,
    )
    if state is not None and wanted is None:
        known = replace(known, whole=None if live.removed else state.thetas, last=state.thetas)
    columns = [_column(known, field) for field in fields]
    return TableSummary(len(known.zone_map), known.rows, known.files_with_deletes, tuple(columns))


def _parts(
    store: Store,
    state: State | None,
    live: Live,
    wanted: FileTest | None,
    fields: Sequence[Field],
    with_lengths: bool,
) -> list[_Part]:
    known = pa.array([], pa.binary(16))
    parts: list[_Part] = []
    if state is not None:
        alive = State(state.header, state.files.take(pa.array(live.carried)))
        known = alive.files["key"].combine_chunks()
        for number, entry in enumerate(state.header.segments):
            with store.open_segment(entry) as segment:
                mask = alive.live(number)
                if wanted is not None:
                    mask &= wanted(segment.files)
                sketches: dict[int, ThetaSketch] = {}
                if mask.any() and (wanted is not None or live.removed or not state.is_whole):
                    thetas = segment.thetas(frozenset(entry.field_ids))
                    sketches = {field_id: theta.sketch(mask) for field_id, theta in thetas.items()}
                known_ids = frozenset(each.id for each in fields if entry.describes(each))
                absent = known_ids.difference(entry.field_ids)
                lengths = segment.lengths(entry.field_ids) if with_lengths else {}
                lengths = {number: table.filter(pa.array(mask)) for number, table in lengths.items()}
                parts.append(
                    _Part(
                        zone_map=segment.zone_map.filter(mask),
                        sketches=sketches,
                        field_ids=known_ids,
                        absent=absent,
                        lengths=lengths,
                    )
                )
    fresh = live.decoded.filter(pc.invert(pc.is_in(live.keys, value_set=known)))
    if wanted is not None:
        fresh = fresh.filter(pa.array(wanted(fresh)))
    return [*parts, _Part(ZoneMap.of(fresh), {}, frozenset())]


def _rows_of(parts: Sequence[_Part]) -> int:
    """The rows of the files of these parts; a file that is in two of them is counted once."""
    columns = list(IDENTITY)
    files = pa.concat_tables(
        [
            FILE_SCHEMA.empty_table().select(columns),
            *(part.zone_map.files.select(columns) for part in parts),
        ]
    )
    return int(files["rows"].to_numpy()[first_of_each(identities(files))].sum())


def first_of_each(names: pa.Array) -> NDArray[np.bool_]:
    """Return where each file, by its identity, occurs for the first time: one may be in two segments."""
    codes = names.dictionary_encode().indices.to_numpy() if len(names) else np.empty(0, np.int64)
    first = np.zeros(len(codes), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first


def _column(known: Known, column: Field) -> ColumnSummary:
    if is_column_set(column):  # which metadata does not describe
        return ColumnSummary(column, *_distinct(known, column, known.rows)[1:])
    bounds = known.bounds(column)
    if base_type(column.type) not in SKETCHED:
        return _not_analysed(column, bounds)
    sketch, ndv, coverage = _distinct(known, column, bounds.most_values())
    low, high = bounds.least(sketch), bounds.greatest(sketch)
    nulls, why = bounds.nulls()
    reasons = {"nulls": why, "min": low.reason, "max": high.reason}
    unknown = {name: reason for name, reason in reasons.items() if reason is not None}
    lengths, greatest = known.lengths(column)
    return ColumnSummary(
        field=column,
        ndv=ndv,
        coverage=coverage,
        nulls=nulls,
        low=low,
        high=high,
        size=bounds.size,
        lengths=lengths,
        greatest_length=greatest,
        unknown=unknown,
    )


def _not_analysed(column: Field, bounds: ColumnBounds) -> ColumnSummary:
    """The summary of a column of an unsupported type: how many values are null, and their bytes."""
    nulls, why = bounds.nulls()
    unknown = dict.fromkeys(("ndv", "min", "max"), f"columns of type {column.type} are not analyzed")
    unknown |= {} if why is None else {"nulls": why}
    return ColumnSummary(column, None, 0.0, nulls, size=bounds.size, unknown=unknown)


def _distinct(
    known: Known, column: Field, most: int | None
) -> tuple[ThetaSketch | None, Estimate | None, float]:
    """The sketch of the files described, the number of distinct values, and the share of rows described.

    There are at most *most* values, None if that is not known.
    """
    parts, rows = known.parts, known.rows
    describing = [part for part in parts if column.id in part.field_ids or not len(part.zone_map)]
    covered = rows if len(describing) == len(parts) else _rows_of(describing)
    sketch = known.whole.get(column.id) if known.whole is not None else None
    if sketch is None and any(column.id in part.field_ids for part in parts):
        sketch = union(part.sketches[column.id] for part in parts if column.id in part.sketches)
    limit = math.inf if most is None else float(most)
    coverage = covered / rows if rows else 1.0
    if covered >= rows:
        return sketch, None if sketch is None else at_most(sketch.estimate(), limit), coverage
    if sketch is None or not len(sketch.hashes):  # nothing is known, or nothing is left of it
        return sketch, _last_known(known, column, limit), coverage
    estimate = sketch.estimate()
    high = math.inf if column.repeated else estimate.high + rows - covered
    return sketch, at_most(Estimate(estimate.value, estimate.low, high, Certainty.SKETCHED), limit), coverage


def _last_known(known: Known, column: Field, limit: float) -> Estimate | None:
    """The number of distinct values of removed files, as an indication for those that replaced them."""
    last = known.last.get(column.id) if known.last is not None else None
    if last is None or not len(last.hashes):
        return None
    return at_most(Estimate(last.estimate().value, 0, math.inf, Certainty.STALE), limit)


def at_most(estimate: Estimate, limit: float) -> Estimate:
    """Return an estimate as a whole number, as it is registered, limited to what is possible.

    >>> at_most(Estimate(10.9, 8.2, 12.9, Certainty.SKETCHED), 11.0)
    Estimate(value=10, low=8.2, high=11.0, kind=<Certainty.SKETCHED: 'sketched'>)
    """
    return Estimate(
        math.floor(min(estimate.value, limit)),
        min(estimate.low, limit),
        min(estimate.high, limit),
        estimate.kind,
    )
