"""The least and the greatest value of a column, and its nulls, as far as file lists prove them.

A bound is not a value: text and bytes are cut off when they are long, ORC rounds times, and the row that had
the value may have been deleted since. A bound is exact where this is impossible, or if the sketch of the live
rows contains it. NaN is neither least nor greatest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Field, Value
from rookery.model.report import counted
from rookery.model.text import escaped
from rookery.model.type_names import base_type, scale_of
from rookery.model.uuids import is_cut
from rookery.prune.bounds import UNKNOWN, Bounds
from rookery.sidecar import ZoneMap
from rookery.sidecar.zone_map import proven
from rookery.sketch import ThetaSketch
from rookery.sketch.value_hashes import theta_hashes
from rookery.values.canonical import SUPPORTED, bound_from_bytes, is_float, unscaled_of

_CUT = frozenset({"string", "binary", "fixed"})
_TIMES = frozenset({"time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_WITHOUT_BOUNDS = "without bounds"
_WITHOUT_COUNTS = "without counts of nulls"
_DELETED_FROM = "with deleted rows"
_REPEATED = "a row has any number of values"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or the greatest value. None: not known, with a reason; or no row has a value."""

    value: Any = None
    exact: bool | None = None  # false: no value is beyond it, but it need not occur
    reason: str | None = None


NO_VALUE = Extreme()


class ColumnBounds:
    """What is known of one column of files: rows of a zone map, of which some are known to have no values."""

    def __init__(self, field: Field, zone_map: ZoneMap, only_null: NDArray[np.bool_]) -> None:
        self._field = field
        self._kind = base_type(field.type)
        self._rows = zone_map.files["rows"].to_numpy().astype(np.int64)
        self._intact = np.asarray(
            pc.equal(zone_map.files["deletes"], "").to_numpy(zero_copy_only=False), bool
        )
        self._orc = np.asarray(pc.equal(zone_map.files["format"], "orc").to_numpy(zero_copy_only=False), bool)
        known = proven(field, zone_map.column(field.id), zone_map.files)
        counts = {
            name: known[name].fill_null(UNKNOWN).combine_chunks().to_numpy(zero_copy_only=False).copy()
            for name in ("values", "nulls", "nans")
        }
        if not is_float(self._kind):
            counts["nans"][:] = 0
        for name, all_null in (
            ("values", self._rows),
            ("nulls", self._rows),
            ("nans", np.zeros_like(self._rows)),
        ):
            counts[name] = np.where(only_null, all_null, counts[name])
        readable = self._kind in SUPPORTED
        lower, upper = (
            bound_from_bytes(field.type, known[name]) if readable else pa.nulls(len(known), pa.int64())
            for name in ("lower", "upper")
        )
        self._bounds = Bounds(
            lower=lower, upper=upper, values=counts["values"], nulls=counts["nulls"], nans=counts["nans"]
        )
        self.size = None if known["size"].null_count else int(pc.sum(known["size"]).as_py() or 0)

    def least(self, sketch: ThetaSketch | None) -> Extreme:
        """Return the least value; *sketch* holds hashes of values of live rows."""
        return self._extreme(self._bounds.lower, pc.min, sketch)

    def greatest(self, sketch: ThetaSketch | None) -> Extreme:
        """Return the greatest value that is not NaN."""
        return self._extreme(self._bounds.upper, pc.max, sketch)

    def _extreme(self, ends: pa.Array, choose: Any, sketch: ThetaSketch | None) -> Extreme:
        filled = self._bounds.has_numbers & (self._rows > 0)
        unbounded = filled & np.asarray(ends.is_null())
        if unbounded.any():
            return Extreme(reason=_of(unbounded, _WITHOUT_BOUNDS))
        chosen = choose(ends.filter(pa.array(filled)))
        if not chosen.is_valid:
            return NO_VALUE
        reached = filled & np.asarray(
            pc.equal(ends, chosen).fill_null(False).to_numpy(zero_copy_only=False), bool
        )
        exact = bool((reached & self._tight(chosen)).any()) or self._occurs(chosen, sketch)
        return Extreme(self._shown(chosen), exact)

    def _tight(self, end: pa.Scalar) -> NDArray[np.bool_]:
        """Where a bound must be a value: nothing was deleted, and its type is not cut off."""
        lower, upper = self._bounds.lower, self._bounds.upper
        single = np.asarray(pc.equal(lower, upper).fill_null(False).to_numpy(zero_copy_only=False), bool)
        if self._kind in _CUT:
            return np.asarray(self._intact & (single | (end.as_py() == b"")))
        if self._kind == "uuid" and is_cut(end.as_py()):
            return np.asarray(self._intact & single)
        return np.asarray(self._intact & (single | ~self._orc | (self._kind not in _TIMES)))

    def _occurs(self, end: pa.Scalar, sketch: ThetaSketch | None) -> bool:
        """Whether some live row has the value, as its hash is in the sketch."""
        hashes = theta_hashes(self._field.type, self._value(end)) if sketch is not None else None
        if sketch is None or hashes is None:
            return False
        return bool(np.isin(np.array(hashes, np.uint64), sketch.hashes).any())

    def _value(self, end: pa.Scalar) -> Value:
        """A bound in the form of a predicate's value."""
        value: Any = end.as_py()
        if self._kind == "decimal":
            return unscaled_of(value, scale_of(self._field.type))
        if self._kind == "boolean":
            return bool(value)
        return value.decode(errors="surrogateescape") if self._kind == "string" else value  # type: ignore[no-any-return]

    def _shown(self, end: pa.Scalar) -> Any:
        value = end.as_py()
        if self._kind == "string":
            return escaped(value)
        if self._kind == "uuid" and len(value) == len(UUID(int=0).bytes):
            return UUID(bytes=value)
        return bool(value) if self._kind == "boolean" else value

    def nulls(self) -> tuple[int | None, str | None]:
        """Return how many rows are null, or why that is not known."""
        if self._field.repeated:
            return None, _REPEATED
        counts = self._bounds.nulls
        unknown = (counts < 0) & (self._rows > 0)
        if unknown.any():
            return None, _of(unknown, _WITHOUT_COUNTS)
        changed = (counts > 0) & ~self._intact
        if changed.any():
            return None, _of(changed, _DELETED_FROM)
        return int(counts[self._rows > 0].sum()), None

    def most_values(self) -> int | None:
        """Return how many values are not null at most; None if unlimited."""
        values, nulls = self._bounds.values, self._bounds.nulls
        if self._field.repeated:
            return None if (values < 0).any() else int(values.sum())
        return int((np.where(values >= 0, values, self._rows) - np.maximum(nulls, 0)).sum())


def _of(files: NDArray[np.bool_], what: str) -> str:
    return f"{int(files.sum()):,} of {counted(len(files), 'file')} {what}"
