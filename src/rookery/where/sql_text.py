"""Predicates in Spark SQL's text, bound to the columns of a table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from typing import Any, TypeAlias

from sqlglot import exp

from rookery.model.errors import UsageError
from rookery.model.predicate import (
    ALWAYS,
    NEVER,
    IsNaN,
    IsNull,
    Op,
    Opaque,
    Predicate,
    all_of,
    any_of,
)
from rookery.model.table import Field
from rookery.where.binding import Inexact, Names, NestedColumn, not_comparable, null_test
from rookery.where.constants import constant
from rookery.where.literals import NULL, Kind, Literal, among, compare
from rookery.where.parsing import line_column, parse_expression, with_depth
from rookery.where.patterns import begins_with, like
from rookery.where.timestamps import session_zone

_CACHED = 10_000  # characters; longer texts are long lists, which are not used twice
_NULLARY = frozenset({"current_user", "session_user", "user", "current_time", "localtimestamp", "nan"})

_OPS: dict[type[exp.Expression], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_COMPARED: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def parse_predicate(text: str, fields: Sequence[Field], *, zone: str = "UTC") -> Predicate:
    """Parse the condition of a WHERE; local times are in *zone*.

    >>> parse_predicate("NOT (n >= 5)", [Field(1, "N", "int")]).op
    <Op.LT: '<'>
    """
    read = _parsed if len(text) <= _CACHED else _parsed.__wrapped__
    return read(text, tuple(fields), zone)


@lru_cache(maxsize=512)
def _parsed(text: str, fields: tuple[Field, ...], zone: str) -> Predicate:
    binder = _Binder(Names.of(fields), session_zone(zone), text)
    expression = parse_expression(text)
    return with_depth(lambda: binder.build(expression, False))


@dataclass(frozen=True, slots=True)
class _Binder:
    names: Names
    zone: tzinfo
    text: str

    def build(self, node: exp.Expression, negated: bool) -> Predicate:
        """Return a predicate that is true where *node*, or its negation, is true."""
        while isinstance(node, exp.Paren | exp.Not):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            parts = [self.build(part, negated) for part in _flat(node)]
            return all_of(*parts) if isinstance(node, exp.And) is not negated else any_of(*parts)
        build = _BUILDERS.get(type(node))
        try:
            if build is not None:
                return build(self, node, negated)
            if isinstance(node, exp.Column | exp.Dot):
                return self.truth(node, negated)
            literal = constant(node, self.zone)
        except Inexact as inexact:
            return self.opaque(node, negated, inexact.reason)
        if literal is not None:
            return _decided(literal, negated)
        return self.opaque(node, negated, f"{_called(node)} is not understood")

    def opaque(self, node: exp.Expression, negated: bool, reason: str) -> Opaque:
        """Leave a part to Spark, after checking that its columns exist."""
        if node.find(exp.Query, exp.Lambda) is None:
            for column in node.find_all(exp.Column):
                if column.find_ancestor(exp.DataType) is not None:  # the name of a collation
                    continue
                parts = _parts(column) or ("",)
                known = self.names.knows(parts[0]) or parts[0].lower() in _NULLARY
                if not known and not isinstance(column.this, exp.Star):
                    self.names.find(parts, at=self.place(column))
        sql = node.sql(dialect="spark", comments=False)
        return Opaque(f"NOT ({sql})" if negated else sql, reason)

    def place(self, node: exp.Expression) -> str:
        """Return the position of a name in the text."""
        starts = [part.meta["start"] for part in node.find_all(exp.Identifier) if "start" in part.meta]
        if not starts:
            return ""
        line, column = line_column(self.text, min(starts))
        return f" at line {line}, column {column}" if "\n" in self.text else f" at column {column}"

    def column(self, node: exp.Expression | None) -> Field | NestedColumn | None:
        """Return the column that *node* names, or None if it is no name."""
        while isinstance(node, exp.Paren):
            node = node.this
        parts = _parts(node)
        if node is None or not parts:
            return None
        column = self.names.find(parts, at=self.place(node))
        if isinstance(column, NestedColumn) and column.kind == "value of a map":
            raise Inexact("what a map holds under a key is left to Spark")
        return column

    def field(self, node: exp.Expression | None) -> Field | None:
        """Return the leaf column that *node* names; a struct, list or map is an error."""
        column = self.column(node)
        if isinstance(column, NestedColumn):
            assert node is not None
            raise not_comparable(column, self.place(node))
        return column

    def truth(self, node: exp.Expression, negated: bool) -> Predicate:
        """A column by itself, which must be boolean."""
        field = self.field(node)
        if field is None:
            raise Inexact(f"{_called(node)} is not understood")
        return compare(field, Op.EQ, Literal(Kind.BOOLEAN, not negated), self.zone)

    def sides(self, left: exp.Expression, right: exp.Expression) -> tuple[Field, Literal, bool]:
        """Return a comparison's column and literal, and whether the literal is first."""
        for one, other, swapped in ((left, right, False), (right, left, True)):
            field = self.field(one)
            literal = None if field is None else constant(other, self.zone)
            if field is not None and literal is not None:
                return field, literal, swapped
        raise Inexact("only a column and a literal are compared")

    def compared(self, op: Op, left: exp.Expression, right: exp.Expression, negated: bool) -> Predicate:
        field, literal, swapped = self.sides(left, right)
        op = op.flipped if swapped else op
        return compare(field, op.negated if negated else op, literal, self.zone)


_Build: TypeAlias = Callable[[_Binder, exp.Expression, bool], Predicate]


def _comparison(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    literals = constant(node.this, binder.zone), constant(node.expression, binder.zone)
    if literals[0] is not None and literals[1] is not None:
        return _decided(_constant_comparison(_OPS[type(node)], literals[0], literals[1]), negated)
    return binder.compared(_OPS[type(node)], node.this, node.expression, negated)


def _constant_comparison(op: Op, left: Literal, right: Literal) -> Literal:
    """Compare literals, as the `1 = 1` that programs write."""
    if Kind.NULL in (left.kind, right.kind):
        return NULL
    if left.kind is not right.kind or left.kind is Kind.DOUBLE:
        raise Inexact("literals of these types are compared by Spark")
    return Literal(Kind.BOOLEAN, _COMPARED[op](left.value, right.value))


def _decided(literal: Literal, negated: bool) -> Predicate:
    """A constant in place of a condition."""
    if literal.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise UsageError(
            f"a literal of type {literal.kind} is no condition",
            hint="compare a column with it, for instance id = 5",
        )
    return ALWAYS if literal.value is not None and literal.value is not negated else NEVER


def _null_safe(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    field, literal, _ = binder.sides(node.this, node.expression)
    negated ^= isinstance(node, exp.NullSafeNEQ)
    if literal.kind is Kind.NULL:
        return null_test(field, negated=negated)
    if not negated:
        return compare(field, Op.EQ, literal, binder.zone)
    return _or_null(field, compare(field, Op.NE, literal, binder.zone))


def _or_null(field: Field, leaf: Predicate) -> Predicate:
    return ALWAYS if leaf == IsNull(field, negated=True) else any_of(leaf, IsNull(field))


def _membership(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    field = binder.field(node.this)
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise Inexact("subqueries are left to Spark")
    if not node.expressions:
        raise UsageError("IN has an empty list", hint="name at least one value")
    literals = [constant(member, binder.zone) for member in node.expressions]
    given = [literal for literal in literals if literal is not None]
    if field is None or len(given) < len(literals):
        raise Inexact("IN takes a column and literals only")
    return among(field, given, binder.zone, negated=negated)


def _between(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    if node.args.get("symmetric"):
        raise Inexact("BETWEEN SYMMETRIC is not Spark's")
    low = binder.compared(Op.GE, node.this, node.args["low"], negated)
    high = binder.compared(Op.LE, node.this, node.args["high"], negated)
    return any_of(low, high) if negated else all_of(low, high)


def _is(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    if isinstance(node.expression, exp.Null):
        return _null(binder, node.this, negated)
    if not isinstance(node.expression, exp.Boolean):
        raise Inexact("this IS is not understood")
    wanted = bool(node.expression.this)
    field = binder.field(node.this)
    if field is not None:
        leaf = compare(field, Op.EQ, Literal(Kind.BOOLEAN, wanted ^ negated), binder.zone)
        return _or_null(field, leaf) if negated else leaf
    if negated:
        raise Inexact("whether an expression is unknown is left to Spark")
    return binder.build(node.this, not wanted)


def _null(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    column = binder.column(node)
    if isinstance(column, Field):
        return null_test(column, negated=negated)
    if column is None and (literal := constant(node, binder.zone)) is not None:
        return ALWAYS if (literal.kind is Kind.NULL) is not negated else NEVER
    raise Inexact("only plain columns can be tested for null")


def _like(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    escape = "\\"
    if isinstance(node, exp.Escape):
        given = constant(node.expression, binder.zone)
        if not isinstance(node.this, exp.Like) or given is None or given.kind is not Kind.STRING:
            raise Inexact("this ESCAPE is not understood")
        escape, node = given.value, node.this
        if len(escape) != 1:
            raise UsageError(f"ESCAPE takes one character, not '{escape}'", hint="write ESCAPE '/'")
    negated ^= bool(node.args.get("negate"))
    field, pattern = _column_and_text(binder, node, "LIKE takes a string column and a pattern")
    return NEVER if pattern is None else like(field, pattern, escape=escape, negated=negated)


def _starts_with(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    field, prefix = _column_and_text(binder, node, "startswith takes a string column and a text")
    return NEVER if prefix is None else begins_with(field, prefix, negated=negated)


def _column_and_text(binder: _Binder, node: exp.Expression, expected: str) -> tuple[Field, str | None]:
    """Return the two sides of a comparison of text; None for a null."""
    field, text = binder.field(node.this), constant(node.expression, binder.zone)
    if field is None or field.type != "string" or text is None or text.kind not in (Kind.STRING, Kind.NULL):
        raise Inexact(expected)
    return field, text.value


def _is_nan(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    field = binder.field(node.this)
    if field is None or field.type not in ("float", "double"):
        raise Inexact("isnan takes a float or double column")
    return IsNaN(field, negated)


def _function(binder: _Binder, node: exp.Expression, negated: bool) -> Predicate:
    name = str(node.this).lower()
    if name in ("isnull", "isnotnull") and len(node.expressions) == 1:
        return _null(binder, node.expressions[0], negated ^ (name == "isnotnull"))
    raise Inexact(f"the function {name} is not understood")


_BUILDERS: dict[type[exp.Expression], _Build] = {
    **dict.fromkeys(_OPS, _comparison),
    exp.NullSafeEQ: _null_safe,
    exp.NullSafeNEQ: _null_safe,
    exp.In: _membership,
    exp.Between: _between,
    exp.Is: _is,
    exp.Like: _like,
    exp.Escape: _like,
    exp.StartsWith: _starts_with,
    exp.IsNan: _is_nan,
    exp.Anonymous: _function,
}


def _flat(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the parts of a chain of AND or of OR, which the parser nests as deep as it is long."""
    stack = [node]
    while stack:
        part = stack.pop()
        if type(part) is type(node):
            stack += (part.expression, part.this)
        else:
            yield part


def _parts(node: exp.Expression | None) -> tuple[str, ...]:
    """Return the parts of a dotted name, or nothing if *node* is none."""
    if isinstance(node, exp.Column):
        return tuple(part.name for part in node.parts if isinstance(part, exp.Identifier))
    if isinstance(node, exp.Dot):
        first, last = _parts(node.this), node.expression
        return (*first, last.name) if first and isinstance(last, exp.Identifier) else ()
    return ()


def _called(node: exp.Expression) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else type(node).__name__
