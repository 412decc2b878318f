"""Predicates, bound to the columns of a table: what must be true of a row.

A predicate is in negation normal form: there is no NOT, as it was pushed down to the leaves, under the rules
of three-valued logic, when the predicate was bound. A leaf states when it is *true*; where SQL's answer is
false or unknown, a row does not match. So AND and OR join plain truth values, and any part that is not
understood (`Opaque`) may be taken for true without a row being lost.

Values are in the form of their column's type: whole numbers for integers, for days (date), microseconds
(time, timestamp), nanoseconds (timestamp_ns) and decimals (unscaled, at the column's scale); floats for float
and double; str for string; bytes for binary, fixed and UUID; bool for boolean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rookery.model.table import Field

Value: TypeAlias = int | float | bool | str | bytes


class Op(StrEnum):
    """Comparisons, as Spark has them: NaN equals NaN and is the largest, -0.0 equals 0.0."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> Op:
        """The comparison that is true where this one is false."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Op:
        """The comparison with its sides exchanged."""
        return _FLIPPED[self]


_NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.LE: Op.GT, Op.GT: Op.LE, Op.GE: Op.LT}
_FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`. A float column is compared as a double."""

    field: Field
    op: Op
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (values)`, or NOT IN; the values are distinct and none is null."""

    field: Field
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`, or IS NOT NULL."""

    field: Field
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNaN:
    """`isnan(column)`, or its negation, which is true of nulls too, as in Spark."""

    field: Field
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like:
    """`column LIKE pattern`, or NOT LIKE: texts that match *regex* whole; each of those begins with *prefix*.

    Where *regex* is None, every text that begins with *prefix* matches. Text that is not UTF-8 is matched as
    Java decodes it, or by its bytes.
    """

    field: Field
    prefix: str
    regex: str | None = None
    negated: bool = False
    by_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that is not understood: it might be true of any row."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class And:
    """All parts are true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part is true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Always:
    """True of every row."""


@dataclass(frozen=True, slots=True)
class Never:
    """True of no row."""


Leaf: TypeAlias = Compare | In | IsNull | IsNaN | Like
Predicate: TypeAlias = Leaf | Opaque | And | Or | Always | Never
ALWAYS, NEVER = Always(), Never()


def all_of(*parts: Predicate) -> Predicate:
    """Join by AND, without parts that decide nothing.

    >>> all_of(ALWAYS, NEVER), all_of()
    (Never(), Always())
    """
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, And) else (part,))]
    if NEVER in flat:
        return NEVER
    kept = tuple(part for part in dict.fromkeys(flat) if part != ALWAYS)
    return And(kept) if len(kept) > 1 else kept[0] if kept else ALWAYS


def any_of(*parts: Predicate) -> Predicate:
    """Join by OR, without parts that decide nothing.

    >>> any_of(ALWAYS, NEVER), any_of()
    (Always(), Never())
    """
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, Or) else (part,))]
    if ALWAYS in flat:
        return ALWAYS
    kept = tuple(part for part in dict.fromkeys(flat) if part != NEVER)
    return Or(kept) if len(kept) > 1 else kept[0] if kept else NEVER


def leaves_of(predicate: Predicate) -> Iterator[Leaf]:
    """Yield every leaf."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from leaves_of(part)
    elif isinstance(predicate, Compare | In | IsNull | IsNaN | Like):
        yield predicate


def opaque_parts(predicate: Predicate) -> Iterator[Opaque]:
    """Yield the parts that are not understood."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from opaque_parts(part)
    elif isinstance(predicate, Opaque):
        yield predicate


def wanted_values(leaf: Leaf) -> tuple[Value, ...] | None:
    """Return the values of which a row must have one for the leaf to be true; None if others do too."""
    if isinstance(leaf, Compare) and leaf.op is Op.EQ:
        return (leaf.value,)
    if isinstance(leaf, In) and not leaf.negated:
        return leaf.values
    return None
