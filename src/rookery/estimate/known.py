"""What states, segments and file lists know of a table's columns, ready for estimates."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.estimate.axis import Axis, Floats, axis_of
from rookery.estimate.distribution import Distribution, from_quantiles, from_values
from rookery.estimate.frequencies import Frequencies, frequencies_of
from rookery.estimate.lengths import ColumnLengths
from rookery.model import UNUSABLE_FILE, Estimate, Field, RookeryError
from rookery.model.cache import nbytes_of
from rookery.model.type_names import base_type
from rookery.model.warned import warn
from rookery.prune.bounds import Bounds
from rookery.prune.cascade import Pruning
from rookery.prune.fileset import FileSet
from rookery.prune.partitions import PartitionColumn, in_form, partition_columns
from rookery.sidecar import State
from rookery.sketch import InvertedTheta, ThetaSketch, union
from rookery.tables.partitioning import TransformKind
from rookery.values.canonical import SUPPORTED

log = logging.getLogger(__name__)

_MOST_SEGMENTS = 8  # whose distinct values are read for one condition
_FEW_OTHERS = 0.05  # of the rows: then frequent values describe a column better than quantiles
_DISTRIBUTION_BYTES = 64 << 10  # approximate memory


class KnownTable:
    """The files of a snapshot, and what is known of each column, loaded when it is asked for."""

    def __init__(self, pruning: Pruning) -> None:
        self.pruning = pruning
        self.files: FileSet = pruning.files
        self.notes: list[str] = []
        self.rows = np.asarray(self.files.files["rows"].to_numpy(), np.float64)
        self.described = np.arange(len(self.files)) < len(self.files) - self.files.fresh
        self._columns: dict[tuple[int, str], KnownColumn] = {}

    @cached_property
    def state(self) -> State | None:
        """The state with its sketches; None if there is none that can be read."""
        state = self.files.state
        if state is None:
            return None
        try:
            return self.files.store.sketched_state(state.name)
        except (RookeryError, pa.ArrowException, KeyError, ValueError) as error:
            self.notes.append(f"the sketches of a state are not used: {error}")
            warn(log, self.notes[-1])
            return None

    @cached_property
    def has_deletes(self) -> bool:
        """Whether some rows may be deleted."""
        return bool(self.files.live.deletes)

    @property
    def is_current(self) -> bool:
        """Whether the sketches describe exactly the rows of the files."""
        state = self.state
        return (
            state is not None
            and not self.files.fresh
            and not self.files.live.removed
            and not self.has_deletes
            and not state.header.delete_manifests
            and not self.pruning.table.maps_names
            and bool(self.pruning.alone.all())
        )

    def column(self, field: Field) -> KnownColumn:
        """Return what is known of a column."""
        key = (field.id, field.type)
        if key not in self._columns:
            self._columns[key] = self._cached(field)
        return self._columns[key]

    def _cached(self, field: Field) -> KnownColumn:
        state, store = self.files.state, self.files.store
        if state is None or self.state is None:
            return _known_column(self, field)
        key = ("known column", store.path(state.name), self.pruning.snapshot.id, field.id, field.type)
        return store.cache.get(key, lambda: _known_column(self, field), nbytes_of)

    def bounds(self, field: Field) -> tuple[Bounds, NDArray[np.bool_]]:
        """Return the bounds of a column in each file, and which of them are values of its partition."""
        bounds = self.files.bounds(field)
        by_partition = np.zeros(len(self.files), bool)
        for spec_id, column in _identities(self.pruning, field):
            numbers = np.flatnonzero(self.files.files["spec_id"].to_numpy() == spec_id)
            if len(numbers):
                bounds = _with_partitions(bounds, self.files, numbers, column)
                by_partition[numbers] = True
        return bounds, by_partition

    def lengths(self, field: Field) -> ColumnLengths | None:
        """Return the lengths of a column's values in each file; None if there is no state that has them."""
        state, store = self.files.state, self.files.store
        if state is None:
            return None
        key = ("lengths", store.path(state.name), self.pruning.snapshot.id, field.id)
        try:
            return store.cache.get(key, lambda: ColumnLengths.of(self.files, field.id), nbytes_of)
        except UNUSABLE_FILE as error:
            self.notes.append(f"the lengths of {field.name} are not used: {error}")
            warn(log, self.notes[-1])
            return None

    def theta(self, field_id: int, type_name: str) -> ThetaSketch | None:
        """Return the distinct values of a column, or column set, in the state's files."""
        state = self.state
        if state is None or state.header.types.get(field_id) != type_name:
            return None
        return state.thetas.get(field_id)

    def distinct_in(self, field: Field, chosen: NDArray[np.bool_]) -> float | None:
        """Return how many distinct values the chosen files have; None if that takes too much reading."""
        state = self.files.state
        if state is None or state.header.types.get(field.id) != field.type:
            return None
        places = [place for place in self.files.places if chosen[place.numbers].any()]
        if len(places) > _MOST_SEGMENTS:
            return None
        sketches = []
        for place in places:
            inverted = self._inverted(place.segment, field.id)
            if inverted is not None:
                here = np.zeros(inverted.files, bool)
                here[place.ordinals[chosen[place.numbers]]] = True
                sketches.append(inverted.sketch(here))
        return float(union(sketches).estimate().value) if sketches else None

    def _inverted(self, segment_number: int, field_id: int) -> InvertedTheta | None:
        assert self.files.state is not None
        if field_id not in self.files.state.header.segments[segment_number].field_ids:
            return None
        segment = self.files.segment(segment_number)
        if segment.theta_of(field_id) is None:
            return None
        return self.files.store.cache.get(
            ("inverted theta", segment.name, field_id),
            lambda: segment.thetas(frozenset({field_id}))[field_id],
            nbytes_of,
        )


@dataclass(frozen=True, slots=True, eq=False)
class KnownColumn:
    """A column: its bounds, nulls and NaNs in each file, and the sketches that describe it."""

    field: Field
    bounds: Bounds
    by_partition: NDArray[np.bool_]  # files whose value is that of their partition
    nulls: Floats  # about, in each file
    nans: Floats
    values: Floats  # that are neither null nor NaN, about, in each file
    axis: Axis
    lower: Floats  # places of the bounds; NaN if not known
    upper: Floats
    ndv: Estimate | None
    distribution: Distribution | None
    frequencies: Frequencies | None
    is_counted: bool  # whether the frequencies are of exactly the rows of the files

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        arrays = (self.by_partition, self.nulls, self.nans, self.values, self.lower, self.upper)
        return self.bounds.nbytes + sum(each.nbytes for each in arrays) + _DISTRIBUTION_BYTES

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest place of all files; NaN if not known."""
        low = self.lower[np.isfinite(self.lower)]
        high = self.upper[np.isfinite(self.upper)]
        return (float(low.min()), float(high.max())) if len(low) and len(high) else (np.nan, np.nan)


def _known_column(table: KnownTable, field: Field) -> KnownColumn:
    bounds, by_partition = table.bounds(field)
    nulls = _spread_count(bounds.nulls, table.rows)
    nans = _spread_count(bounds.nans, table.rows)
    state = table.state
    typed = state is not None and state.header.types.get(field.id, field.type) == field.type
    frequent = state.frequent.get(field.id) if state is not None and typed else None
    quantiles = state.quantiles.get(field.id) if state is not None and typed else None
    frequencies = frequencies_of(field.type, frequent) if frequent is not None else None
    samples = [bounds.lower, bounds.upper, *([frequencies.values] if frequencies is not None else [])]
    axis = axis_of(field.type, samples)
    lower, upper = axis.places(bounds.lower), axis.places(bounds.upper)
    theta = table.theta(field.id, field.type)
    ndv = None if theta is None else theta.estimate()
    known = KnownColumn(
        field=field,
        bounds=bounds,
        by_partition=by_partition,
        nulls=nulls,
        nans=nans,
        values=np.maximum(table.rows - nulls - nans, 0.0),
        axis=axis,
        lower=lower,
        upper=upper,
        ndv=ndv,
        distribution=None,
        frequencies=frequencies,
        is_counted=_is_counted(table, frequencies),
    )
    by_values = _by_frequencies(known)
    others = 1.0 if frequencies is None else frequencies.rest / max(frequencies.seen, 1)
    if quantiles is not None and others > _FEW_OTHERS:
        by_quantiles = from_quantiles(quantiles, axis, None if ndv is None else ndv.value)
        return replace(known, distribution=by_quantiles or by_values)
    return replace(known, distribution=by_values)


def _by_frequencies(known: KnownColumn) -> Distribution | None:
    frequencies = known.frequencies
    if frequencies is None:
        return None
    places = known.axis.places(frequencies.values)
    finite = np.isfinite(places)
    shares = frequencies.counts[finite] / max(frequencies.seen, 1)
    return from_values(places[finite], shares, known.ends, "top-k")


def _is_counted(table: KnownTable, frequencies: Frequencies | None) -> bool:
    state = table.state
    if state is None or frequencies is None or state.header.rows is None or not table.is_current:
        return False
    header = state.header.rows
    return not header.sample and not header.rows_gone and header.rows_seen == int(table.rows.sum())


def _spread_count(counts: NDArray[np.int64], rows: Floats) -> Floats:
    """A count of each file; where it is not known, by the share in the other files."""
    known = counts >= 0
    share = counts[known].sum() / max(rows[known].sum(), 1.0) if known.any() else 0.0
    return np.asarray(np.where(known, np.minimum(counts, rows), share * rows), np.float64)


def _identities(pruning: Pruning, field: Field) -> Sequence[tuple[int, PartitionColumn]]:
    """The partition fields, by spec, that are a column's value itself."""
    return [
        (spec_id, column)
        for spec_id, spec in pruning.table.specs.items()
        for column in partition_columns(spec, {field.id: field.type})
        if column.source_id == field.id and column.transform.kind is TransformKind.IDENTITY
    ]


def _with_partitions(
    bounds: Bounds, files: FileSet, numbers: NDArray[np.int64], column: PartitionColumn
) -> Bounds:
    """Put the values of partitions in place of the bounds of their files."""
    encoded = files.files["partition"].take(pa.array(numbers)).combine_chunks().dictionary_encode()
    listed = [json.loads(text)[column.place] for text in encoded.dictionary.to_pylist()]
    single = Bounds.of_values(column.field.type, in_form(column.field.type, listed))
    chosen = np.asarray(encoded.indices, np.int64)
    rows = bounds.values[numbers]
    counts = {
        "nulls": bounds.nulls.copy(),
        "nans": bounds.nans.copy(),
    }
    counts["nulls"][numbers] = single.nulls[chosen] * rows
    counts["nans"][numbers] = single.nans[chosen] * rows
    ends = {
        name: _replaced(getattr(bounds, name), numbers, getattr(single, name).take(pa.array(chosen)))
        for name in ("lower", "upper")
    }
    return replace(bounds, **ends, **counts)


def _replaced(array: pa.Array, numbers: NDArray[np.int64], values: pa.Array) -> pa.Array:
    place = np.arange(len(array))
    place[numbers] = len(array) + np.arange(len(numbers))
    return pa.concat_arrays([array, values.cast(array.type)]).take(pa.array(place))


def is_known_type(field: Field) -> bool:
    """Whether conditions on a column can be estimated at all."""
    return not field.repeated and base_type(field.type) in SUPPORTED


def column_sets(table: KnownTable) -> Mapping[int, tuple[int, ...]]:
    """Return the declared column sets that are collected: their members, by id."""
    state = table.state
    if state is None:
        return {}
    return {number: members for number, members in state.header.column_sets.items() if number in state.thetas}
