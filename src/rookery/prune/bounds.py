"""What bounds and counts prove: of which files, row groups or pages no row can match."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Compare, In, IsNaN, IsNull, Leaf, Like, Op, Value
from rookery.model.type_names import base_type
from rookery.values.canonical import form_of, is_float, scalar

UNKNOWN = -1
_FEW = 8  # values that are looked up one by one


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The bounds of the values of each unit (a file, a row group, a page), in their type's form.

    A null bound is not known; counts that are not known are -1. Bounds need not be tight, and state nothing
    of NaN.
    """

    lower: pa.Array
    upper: pa.Array
    values: NDArray[np.int64]  # one a row, nulls and NaN included
    nulls: NDArray[np.int64]
    nans: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return int(sum(part.nbytes for part in (self.lower, self.upper, self.values, self.nulls, self.nans)))

    @classmethod
    def of_values(cls, type_name: str, values: pa.Array) -> Bounds:
        """Return the bounds of units that have a single value each: partitions."""
        nulls = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.int64)
        nans = np.zeros(len(values), np.int64)
        if is_float(type_name):
            nans = np.asarray(pc.is_nan(values).fill_null(False).to_numpy(zero_copy_only=False), np.int64)
            values = pc.if_else(pa.array(nans > 0), pa.scalar(None, pa.float64()), values)
        return cls(values, values, np.ones(len(values), np.int64), nulls, nans)

    @property
    def has_values(self) -> NDArray[np.bool_]:
        """Units that may have values that are not null."""
        return np.asarray(~((self.nulls >= 0) & (self.nulls == self.values)))

    @property
    def has_numbers(self) -> NDArray[np.bool_]:
        """Units that may have values that are neither null nor NaN."""
        known = (self.nulls >= 0) & (self.nans >= 0)
        return np.asarray(~(known & (self.nulls + self.nans == self.values)) & self.has_values)

    @property
    def has_nans(self) -> NDArray[np.bool_]:
        """Units that may have NaN."""
        return np.asarray((self.nans != 0) & self.has_values)


def might_match(leaf: Leaf, bounds: Bounds) -> NDArray[np.bool_]:
    """Return the units in which the leaf may be true of a row; for the others that is proved impossible."""
    if isinstance(leaf, IsNull):
        return bounds.has_values if leaf.negated else np.asarray(bounds.nulls != 0)
    if isinstance(leaf, IsNaN):
        if leaf.negated:
            return np.asarray(~((bounds.nans >= 0) & (bounds.nans == bounds.values)))
        return bounds.has_nans & is_float(leaf.field.type)
    if isinstance(leaf, Like):
        return bounds.has_values & _like(leaf, bounds)
    if isinstance(leaf, In):
        if leaf.negated:
            return _not_one_of(leaf.field.type, leaf.values, bounds)
        return _one_of(leaf.field.type, leaf.values, bounds)
    return _compare(leaf, bounds)


def must_match(leaf: Leaf, bounds: Bounds) -> NDArray[np.bool_]:
    """Return the units in which the leaf is true of every row; of the others that is not proven."""
    whole: NDArray[np.bool_] = np.asarray(bounds.nulls == 0)
    if isinstance(leaf, IsNull):
        every = (bounds.nulls >= 0) & (bounds.nulls == bounds.values)
        return np.asarray(whole if leaf.negated else every)
    if not isinstance(leaf, Compare) or _is_nan(leaf.value):
        return np.zeros(len(bounds), bool)
    limit = scalar(leaf.field.type, leaf.value)
    numbers: NDArray[np.bool_] = whole & (
        bounds.nans == 0
    )  # NaN is greater than all else, and unlike all else
    lower, upper = bounds.lower, bounds.upper
    if leaf.op is Op.LT:
        return numbers & _surely(pc.less(upper, limit))
    if leaf.op is Op.LE:
        return numbers & _surely(pc.less_equal(upper, limit))
    if leaf.op is Op.GT:
        return whole & _surely(pc.greater(lower, limit))
    if leaf.op is Op.GE:
        return whole & _surely(pc.greater_equal(lower, limit))
    if leaf.op is Op.EQ:
        return numbers & _surely(pc.equal(lower, limit)) & _surely(pc.equal(upper, limit))
    return whole & (_surely(pc.greater(lower, limit)) | _surely(pc.less(upper, limit)))


def _compare(leaf: Compare, bounds: Bounds) -> NDArray[np.bool_]:
    kind, value = leaf.field.type, leaf.value
    if leaf.op is Op.EQ:
        return _one_of(kind, (value,), bounds)
    if leaf.op is Op.NE:
        return _not_one_of(kind, (value,), bounds)
    if is_float(kind) and math.isnan(value):  # type: ignore[arg-type]
        return {
            Op.LT: bounds.has_numbers,
            Op.LE: bounds.has_values,
            Op.GT: np.zeros(len(bounds), bool),
            Op.GE: bounds.has_nans,
        }[leaf.op]
    limit = scalar(kind, value)
    if leaf.op in (Op.LT, Op.LE):
        reaches = pc.less if leaf.op is Op.LT else pc.less_equal
        return _unless(reaches(bounds.lower, limit)) & bounds.has_numbers
    reaches = pc.greater if leaf.op is Op.GT else pc.greater_equal
    may_match = _unless(reaches(bounds.upper, limit)) & bounds.has_numbers
    return may_match | bounds.has_nans if is_float(kind) else may_match  # NaN is greater than all else


def _one_of(kind: str, values: Sequence[Value], bounds: Bounds) -> NDArray[np.bool_]:
    numbers = [value for value in values if not _is_nan(value)]
    may_match = bounds.has_nans if len(numbers) < len(values) else np.zeros(len(bounds), bool)
    if not numbers:
        return may_match
    if len(numbers) > _FEW:
        return may_match | (_between_many(kind, numbers, bounds) & bounds.has_numbers)
    for value in numbers:
        wanted = scalar(kind, value)
        inside = _unless(pc.less_equal(bounds.lower, wanted))
        inside &= _unless(pc.greater_equal(bounds.upper, wanted))
        may_match = may_match | (inside & bounds.has_numbers)
    return may_match


def _not_one_of(kind: str, values: Sequence[Value], bounds: Bounds) -> NDArray[np.bool_]:
    """Impossible only where all that is there is one value, and that is among these."""
    single = _surely(pc.equal(bounds.lower, bounds.upper))
    options = pa.array([scalar(kind, value).as_py() for value in values if not _is_nan(value)], form_of(kind))
    if is_float(kind):
        single &= bounds.nans == 0  # -0.0 and 0.0 are one value, which a hash would not know
        among = np.zeros(len(bounds), bool)
        for option in options:
            among |= _surely(pc.equal(bounds.lower, option))
    else:
        among = _surely(pc.is_in(bounds.lower, value_set=options))
    return bounds.has_values & ~(single & among)


def _between_many(kind: str, values: Sequence[Value], bounds: Bounds) -> NDArray[np.bool_]:
    """Whether any of many values is between the bounds of each unit."""
    base = base_type(kind)
    if base == "decimal":
        edges = (scalar(kind, min(values)), scalar(kind, max(values)))
        return _unless(pc.less_equal(bounds.lower, edges[1])) & _unless(
            pc.greater_equal(bounds.upper, edges[0])
        )
    if pa.types.is_large_binary(form_of(kind)):
        # The first eight bytes decide; where those are equal, the value may be there.
        wanted = np.sort(_prefixes(pa.array([scalar(kind, v).as_py() for v in values], pa.large_binary())))
        lower, upper = _prefixes(bounds.lower), _prefixes(bounds.upper)
    else:
        wanted = np.sort(np.array([scalar(kind, v).as_py() for v in values]))
        lower = bounds.lower.fill_null(0).to_numpy(zero_copy_only=False)
        upper = bounds.upper.fill_null(0).to_numpy(zero_copy_only=False)
    first = np.searchsorted(wanted, lower, "left")
    last = np.searchsorted(wanted, upper, "right")
    first[np.asarray(bounds.lower.is_null())] = 0
    last[np.asarray(bounds.upper.is_null())] = len(wanted)
    any_between: NDArray[np.bool_] = last > first
    return any_between


def _prefixes(values: pa.Array) -> NDArray[np.uint64]:
    """The first eight bytes of each value as a number that sorts as they do; 0 for null."""
    cut = pc.binary_slice(values.cast(pa.binary()), 0, 8).fill_null(b"")
    lengths = pc.binary_length(cut).to_numpy(zero_copy_only=False)
    padded = np.zeros((len(cut), 8), np.uint8)
    offsets = np.cumsum(lengths) - lengths
    data = np.frombuffer(b"".join(cut.to_pylist()), np.uint8)
    rows = np.repeat(np.arange(len(cut)), lengths)
    padded[rows, np.arange(len(data)) - np.repeat(offsets, lengths)] = data
    return padded.view(">u8").reshape(-1).astype(np.uint64)


def _like(leaf: Like, bounds: Bounds) -> NDArray[np.bool_]:
    prefix = leaf.prefix.encode("utf-8", "surrogatepass")
    after = successor(prefix)
    if leaf.negated:
        if leaf.regex is not None:
            return np.ones(len(bounds), bool)
        inside = _surely(pc.greater_equal(bounds.lower, prefix))
        inside &= _surely(pc.less(bounds.upper, after)) if after else inside
        return ~inside
    may_match = _unless(pc.greater_equal(bounds.upper, prefix))
    return may_match & _unless(pc.less(bounds.lower, after)) if after else may_match


def successor(prefix: bytes) -> bytes | None:
    """The least bytes that are greater than all that begin with *prefix*; None if there are none.

    >>> successor(b"ab"), successor(b"a\\xff"), successor(b"\\xff")
    (b'ac', b'b', None)
    """
    cut = prefix.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _unless(test: Any) -> NDArray[np.bool_]:
    """True unless proved false: the unknown counts as true."""
    return np.asarray(test.fill_null(True).to_numpy(zero_copy_only=False), bool)


def _surely(test: Any) -> NDArray[np.bool_]:
    return np.asarray(test.fill_null(False).to_numpy(zero_copy_only=False), bool)
