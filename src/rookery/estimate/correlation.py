"""Conditions on several columns at once: independent, or as dependent as a declared column set shows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from rookery.estimate.axis import Floats
from rookery.estimate.conditions import Condition, Part
from rookery.estimate.known import KnownTable, column_sets
from rookery.estimate.points import frequency_of
from rookery.estimate.regions import Key
from rookery.model import Field, leaves_of
from rookery.model.type_names import base_type, member_types
from rookery.sketch.single_value import UNFIT, single_value
from rookery.sketch.theta import ThetaSketch
from rookery.sketch.value_hashes import theta_hash
from rookery.values.canonical import is_float

_MOST_COMBINATIONS = 256  # of values that are looked up in a sketch
_DECIMAL_BYTES = 16  # in Arrow


def joint_rows(table: KnownTable, parts: Sequence[Part]) -> tuple[Floats, tuple[Condition, ...]]:
    """Return about how many rows of each file match all parts, and a line for each column set used."""
    rows = np.maximum(table.rows, 1.0)
    left = list(range(len(parts)))
    shares, lines = [], []
    for number, members in _sets(table, parts):
        chosen = [place for place in left if _field(parts[place]).id in members]
        if len(chosen) == len(members):
            shares.append(_dependent(table, number, [parts[place] for place in chosen]))
            lines.append(_line(table, shares[-1], [parts[place] for place in chosen]))
            left = [place for place in left if place not in chosen]
    shares += [parts[place].rows / rows for place in left]
    return np.prod(shares, axis=0) * table.rows, tuple(lines)


def _sets(table: KnownTable, parts: Sequence[Part]) -> list[tuple[int, frozenset[int]]]:
    """The column sets all of whose columns are compared with single values, the largest first."""
    fields = {_field(part).id: _field(part).type for part in parts if part.points is not None}
    found = []
    for number, members in column_sets(table).items():
        assert table.state is not None
        types = member_types(table.state.header.types[number])
        if set(members) <= fields.keys() and all(fields[each] == types[each] for each in members):
            found.append((number, frozenset(members)))
    return sorted(found, key=lambda each: -len(each[1]))


def _field(part: Part) -> Field:
    return next((leaf.field for leaf in leaves_of(part.predicate)), Field(0, "", ""))


def _dependent(table: KnownTable, number: int, parts: Sequence[Part]) -> Floats:
    """The share of rows that match conditions on all columns of a set."""
    assert table.state is not None
    joint = table.state.thetas[number]
    rows = np.maximum(table.rows, 1.0)
    ordered = sorted(parts, key=lambda part: -_ndv(table, part))
    degree = dependence(
        [_ndv(table, part) for part in ordered], joint.estimate().value, float(table.rows.sum())
    )
    shares = [part.rows / rows for part in ordered]
    result = _joint(shares, degree) * np.where(
        table.described, _occurring(table, joint, ordered, degree), 1.0
    )
    return np.asarray(np.minimum(result, np.min(shares, axis=0)))


def _joint(shares: Sequence[Floats], degree: float) -> Floats:
    first, *others = shares
    return np.asarray(first * np.prod([np.power(share, 1 - degree) for share in others], axis=0))


def _occurring(table: KnownTable, joint: ThetaSketch, parts: Sequence[Part], degree: float) -> float:
    """The share of the combinations of values that the sketch does not rule out, by their weight."""
    fields = [_field(part) for part in parts]
    lists = [part.points or () for part in parts]
    if not 0 < math.prod(len(each) for each in lists) <= _MOST_COMBINATIONS:
        return 1.0
    columns = [table.column(field) for field in fields]
    frequencies = [
        {key: frequency_of(table, column, key).share for key in keys}
        for column, keys in zip(columns, lists, strict=True)
    ]
    by_id = sorted(range(len(fields)), key=lambda place: fields[place].id)
    total = possible = 0.0
    for keys in itertools.product(*lists):
        weight = float(
            _joint([np.array(each[key]) for each, key in zip(frequencies, keys, strict=True)], degree)
        )
        total += weight
        if _occurs(joint, [(fields[place].type, keys[place]) for place in by_id]) is not False:
            possible += weight
    return possible / total if total > 0 else 0.0 if not possible else 1.0


def dependence(ndvs: Sequence[float], joint: float, rows: float) -> float:
    """Return how far the first column determines the others, from 0 (not at all) to 1 (wholly).

    *ndvs* are the distinct values of each column, the greatest first; *joint* those of all together.

    >>> dependence([100, 10], 100, 1e6), dependence([100, 10], 1000, 1e6)
    (1.0, 0.0)
    """
    most = math.prod(ndvs)
    if ndvs[0] < 1 or most <= 0:
        return 0.0
    expected = most * -math.expm1(-rows / most)  # where the columns have nothing to do with each other
    if expected <= ndvs[0] * (1 + 1e-9):
        return 1.0
    return min(max(1 - math.log(max(joint / ndvs[0], 1.0)) / math.log(expected / ndvs[0]), 0.0), 1.0)


def _ndv(table: KnownTable, part: Part) -> float:
    ndv = table.column(_field(part)).ndv
    return 1.0 if ndv is None else max(ndv.value, 1.0)


def _occurs(joint: ThetaSketch, values: Sequence[tuple[str, Key]]) -> bool | None:
    """Whether a combination of values, each with its type, occurs; None if the sketch does not show it."""
    hashes = [_hash(kind, key) for kind, key in values]
    if None in hashes:
        return None
    joined = theta_hash(np.array(hashes, "<u8").tobytes())
    if joined >= joint.theta:
        return None
    at = int(np.searchsorted(joint.hashes, np.uint64(joined)))
    return at < len(joint.hashes) and int(joint.hashes[at]) == joined


def _hash(type_name: str, key: Key) -> int | None:
    """The hash of a value within a column set; None if it is not known."""
    kind = base_type(type_name)
    try:
        if is_float(kind):  # 0.0 equals -0.0, but not in its bytes
            return None
        if kind == "decimal":
            return theta_hash(int(key).to_bytes(_DECIMAL_BYTES, "little", signed=True))
        return theta_hash(single_value(type_name, bool(key) if kind == "boolean" else key))
    except UNFIT:
        return None


def _line(table: KnownTable, share: Floats, parts: Sequence[Part]) -> Condition:
    about = float((share * table.rows).sum())
    names = ", ".join(_field(part).name for part in parts)
    total = max(float(table.rows.sum()), 1.0)
    return Condition(f"{names} together", about, about / total, "column set")
