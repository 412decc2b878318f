"""What the state and the zone maps say of each column, for the whole table or for some of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.conversions import from_bytes
from pyiceberg.types import (
    BinaryType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from rookery.collect.choose import declared_groups
from rookery.model import Certainty, Estimate, Field, Snapshot
from rookery.sketch import ThetaSketch, union
from rookery.store import State, Store, ZoneMap
from rookery.store.live import Live, live_files
from rookery.tables.iceberg import FILE_SCHEMA, IcebergTable

_IN_BYTE_ORDER = (StringType, BinaryType, FixedType, UUIDType)
_NUMBERS: Mapping[type[PrimitiveType], np.dtype[Any]] = {
    IntegerType: np.dtype("<i4"),
    DateType: np.dtype("<i4"),
    LongType: np.dtype("<i8"),
    TimeType: np.dtype("<i8"),
    TimestampType: np.dtype("<i8"),
    TimestamptzType: np.dtype("<i8"),
    FloatType: np.dtype("<f4"),
    DoubleType: np.dtype("<f8"),
}

FileTest = Callable[[pa.Table], NDArray[np.bool_]]
"""Which of these files (rows of a zone map) count."""


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What is known of one column."""

    field: Field
    ndv: Estimate | None
    nulls: int | None
    low: Any
    high: Any
    size: int | None
    coverage: float  # the share of rows that the NDV describes


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What is known of a table, or of a part of it."""

    files: int
    rows: int
    columns: tuple[ColumnSummary, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """Files whose zone map is at hand, and what their segment knows of distinct values."""

    zone_map: ZoneMap
    sketches: Mapping[int, ThetaSketch]
    field_ids: frozenset[int]


def summarize(
    table: IcebergTable, store: Store, snapshot: Snapshot, state: State | None, wanted: FileTest | None = None
) -> TableSummary:
    """Sum up a snapshot from *state* and the manifests that it has not seen; no data is read."""
    live = live_files(table, snapshot, state, decode_all=False)
    groups = declared_groups(state, table.fields(snapshot)) if state is not None else []
    parts = _parts(store, state, live, wanted, (*table.fields(snapshot), *groups))
    zone_map = ZoneMap.concat([part.zone_map for part in parts])
    # A file that is in two segments, for different columns, is counted once.
    first = first_of_each(zone_map.files["path"].combine_chunks())
    if not first.all():
        zone_map = zone_map.filter(first)
    rows = int(pc.sum(zone_map.files["rows"]).as_py() or 0)
    whole = state.thetas if state is not None and wanted is None and not live.removed else None
    schema = table.schema(snapshot)
    columns = [
        _column(field, schema.find_type(field.id), zone_map, rows, parts, whole)  # type: ignore[arg-type]
        for field in table.fields(snapshot)
    ]
    known = [_group(field, rows, parts, whole) for field in groups]
    return TableSummary(len(zone_map), rows, (*columns, *known))


def _parts(
    store: Store, state: State | None, live: Live, wanted: FileTest | None, fields: Sequence[Field]
) -> list[_Part]:
    known = pa.array([], pa.binary(16))
    parts: list[_Part] = []
    if state is not None:
        alive = State(state.index, state.files.take(pa.array(live.carried)))
        known = alive.files["key"].combine_chunks()
        for number, entry in enumerate(state.index.segments):
            with store.open_segment(entry) as segment:
                mask = alive.live(number)
                if wanted is not None:
                    mask &= wanted(segment.files)
                sketches: dict[int, ThetaSketch] = {}
                if mask.any() and (wanted is not None or live.removed or not state.is_whole):
                    thetas = segment.thetas(frozenset(entry.field_ids))
                    sketches = {field_id: theta.sketch(mask) for field_id, theta in thetas.items()}
                known_ids = frozenset(field.id for field in fields if entry.describes(field))
                parts.append(_Part(segment.zone_map.filter(mask), sketches, known_ids))
    fresh = live.decoded.filter(pc.invert(pc.is_in(live.keys, value_set=known)))
    if wanted is not None:
        fresh = fresh.filter(pa.array(wanted(fresh)))
    return [*parts, _Part(ZoneMap.of(fresh), {}, frozenset())]


def _rows_of(parts: Sequence[_Part]) -> int:
    """The rows of the files of these parts; a file that is in two of them is counted once."""
    files = pa.concat_tables(
        [
            FILE_SCHEMA.empty_table().select(["path", "rows"]),
            *(part.zone_map.files.select(["path", "rows"]) for part in parts),
        ]
    )
    return int(files["rows"].to_numpy()[first_of_each(files["path"].combine_chunks())].sum())


def first_of_each(paths: pa.Array) -> NDArray[np.bool_]:
    """Return where each path occurs for the first time: a file may lie in two segments."""
    codes = paths.dictionary_encode().indices.to_numpy() if len(paths) else np.empty(0, np.int64)
    first = np.zeros(len(codes), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first


def _column(
    field: Field,
    kind: PrimitiveType,
    zone_map: ZoneMap,
    rows: int,
    parts: Sequence[_Part],
    whole: Mapping[int, ThetaSketch] | None,
) -> ColumnSummary:
    ndv, coverage = _distinct(field, rows, parts, whole)
    known = zone_map.column(field.id)
    return ColumnSummary(
        field,
        ndv,
        _total(known["nulls"], complete=True),
        _bound(known["lower"], kind, min),
        _bound(known["upper"], kind, max),
        _total(known["size"], complete=False),
        coverage,
    )


def _group(
    field: Field, rows: int, parts: Sequence[_Part], whole: Mapping[int, ThetaSketch] | None
) -> ColumnSummary:
    """A column group has distinct values, and nothing else that metadata would know."""
    ndv, coverage = _distinct(field, rows, parts, whole)
    return ColumnSummary(field, ndv, None, None, None, None, coverage)


def _distinct(
    field: Field, rows: int, parts: Sequence[_Part], whole: Mapping[int, ThetaSketch] | None
) -> tuple[Estimate | None, float]:
    """The number of distinct values of a column or a group, and the share of rows that it describes."""
    describing = [part for part in parts if field.id in part.field_ids or not len(part.zone_map)]
    covered = rows if len(describing) == len(parts) else _rows_of(describing)
    sketch = whole.get(field.id) if whole is not None else None
    if sketch is None and any(field.id in part.field_ids for part in parts):
        sketch = union(part.sketches[field.id] for part in parts if field.id in part.sketches)
    return _estimate(sketch, covered, rows), covered / rows if rows else 1.0


def _estimate(sketch: ThetaSketch | None, covered: int, rows: int) -> Estimate | None:
    """The number of distinct values; where some rows are not described, it is a lower bound of the truth."""
    if sketch is None:
        return None
    estimate = sketch.estimate()
    if covered >= rows:
        return estimate
    return Estimate(estimate.value, estimate.low, estimate.high + rows - covered, Certainty.SKETCHED)


def _total(counts: pa.ChunkedArray, *, complete: bool) -> int | None:
    """The sum over all files; None if no file says, or some file does not though all must."""
    if counts.null_count == len(counts) or (complete and counts.null_count):
        return None
    return int(pc.sum(counts).as_py())


def _bound(column: pa.ChunkedArray, kind: PrimitiveType, choose: Callable[[Any], Any]) -> Any:
    values = pc.unique(column.drop_null())
    if not len(values):
        return None
    return choose(from_bytes(kind, value) for value in _ends(values, kind))


def _ends(values: pa.Array, kind: PrimitiveType) -> list[bytes]:
    """The least and the greatest of many values; all of them, where only Python can tell."""
    if isinstance(kind, _IN_BYTE_ORDER):
        return list(pc.min_max(values).as_py().values())
    width = _NUMBERS.get(type(kind), np.dtype("V")).itemsize
    if not width or pc.any(pc.not_equal(pc.binary_length(values), width)).as_py():
        return values.to_pylist()  # type: ignore[no-any-return]  # a widened column has bounds of both widths
    fixed = values.cast(pa.binary(width))
    numbers = np.frombuffer(fixed.buffers()[1], _NUMBERS[type(kind)])
    return values.take(pa.array([numbers.argmin(), numbers.argmax()])).to_pylist()  # type: ignore[no-any-return]
