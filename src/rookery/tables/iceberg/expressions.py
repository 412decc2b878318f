"""PyIceberg's expressions, bound to the columns of a table under the same rules as SQL's text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any
from uuid import UUID

from pyiceberg import expressions as ice
from pyiceberg.expressions import literals as given

from rookery.model.errors import UsageError
from rookery.model.names import quote_part
from rookery.model.predicate import (
    ALWAYS,
    NEVER,
    IsNaN,
    Op,
    Opaque,
    Predicate,
    all_of,
    any_of,
)
from rookery.model.table import Field
from rookery.where.binding import Inexact, Names, NestedColumn, not_comparable, null_test
from rookery.where.literals import Kind, Literal, among, compare
from rookery.where.parsing import with_depth
from rookery.where.patterns import begins_with
from rookery.where.timestamps import session_zone
from rookery.where.to_sql import spell_value

BooleanExpression = ice.BooleanExpression

_OPS: dict[type[ice.BooleanExpression], Op] = {
    ice.EqualTo: Op.EQ,
    ice.NotEqualTo: Op.NE,
    ice.LessThan: Op.LT,
    ice.LessThanOrEqual: Op.LE,
    ice.GreaterThan: Op.GT,
    ice.GreaterThanOrEqual: Op.GE,
}
_KINDS: dict[type[given.Literal[Any]], Kind] = {
    given.BooleanLiteral: Kind.BOOLEAN,
    given.LongLiteral: Kind.INTEGER,
    given.FloatLiteral: Kind.DOUBLE,
    given.DoubleLiteral: Kind.DOUBLE,
    given.DateLiteral: Kind.DATE,
    given.TimeLiteral: Kind.TIME,
    given.DecimalLiteral: Kind.DECIMAL,
    given.StringLiteral: Kind.STRING,
    given.FixedLiteral: Kind.BINARY,
    given.BinaryLiteral: Kind.BINARY,
}


def predicate_from_expression(
    expression: ice.BooleanExpression, fields: Sequence[Field], *, zone: str = "UTC"
) -> Predicate:
    """Bind an expression of unbound references.

    >>> predicate_from_expression(ice.Not(ice.IsNull("N")), [Field(1, "n", "int")]).negated
    True
    """
    names, local = Names.of(fields), session_zone(zone)
    return with_depth(lambda: _build(expression, False, names, local))


def _build(node: ice.BooleanExpression, negated: bool, names: Names, zone: tzinfo) -> Predicate:
    match node:
        case ice.AlwaysTrue() | ice.AlwaysFalse():
            return ALWAYS if isinstance(node, ice.AlwaysTrue) is not negated else NEVER
        case ice.Not():
            return _build(node.child, not negated, names, zone)
        case ice.And() | ice.Or():
            parts = (_build(part, negated, names, zone) for part in _flat(node))
            return all_of(*parts) if isinstance(node, ice.And) is not negated else any_of(*parts)
        case ice.UnboundPredicate():
            try:
                return _leaf(node, negated, names, zone)
            except Inexact as inexact:
                return _opaque(node, negated, names, inexact.reason)
    raise UsageError(
        f"{type(node).__name__} is not an unbound predicate of PyIceberg",
        hint="use names of columns, not bound references",
    )


def _flat(node: ice.BooleanExpression) -> Iterator[ice.BooleanExpression]:
    """Yield the parts of a chain of AND or of OR, which is nested as deep as it is long."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ice.And | ice.Or) and type(part) is type(node):
            stack += (part.right, part.left)
        else:
            yield part


def _leaf(node: ice.UnboundPredicate, negated: bool, names: Names, zone: tzinfo) -> Predicate:
    if isinstance(node, ice.IsNull | ice.NotNull):
        field = _column(node, names)
        if isinstance(field, NestedColumn):
            raise Inexact("only plain columns can be tested for null")
        return null_test(field, negated=negated ^ isinstance(node, ice.NotNull))
    field = _column(node, names)
    if isinstance(field, NestedColumn):
        raise not_comparable(field)
    if isinstance(node, ice.IsNaN | ice.NotNaN):
        if field.type not in ("float", "double"):
            raise Inexact("only floats and doubles may be NaN")
        return IsNaN(field, negated ^ isinstance(node, ice.NotNaN))
    if isinstance(node, ice.In | ice.NotIn):
        listed = sorted(node.literals, key=lambda literal: str(literal.value))
        literals = [_literal(literal, field) for literal in listed]
        return among(field, literals, zone, negated=negated ^ isinstance(node, ice.NotIn))
    assert isinstance(node, ice.LiteralPredicate)
    literal = _literal(node.literal, field)
    if isinstance(node, ice.StartsWith | ice.NotStartsWith):
        if field.type != "string" or literal.kind is not Kind.STRING:
            raise Inexact("prefixes are those of strings")
        return begins_with(field, literal.value, negated=negated ^ isinstance(node, ice.NotStartsWith))
    op = _OPS[type(node)]
    return compare(field, op.negated if negated else op, literal, zone)


def _column(node: ice.UnboundPredicate, names: Names) -> Field | NestedColumn:
    """Find a reference by its dotted name, whose parts may contain dots."""
    name = str(getattr(node.term, "name", node.term))
    whole = name.lower()
    for field in names.fields:
        if field.name.lower() == whole:
            return names.find(field.parts)
    return names.find(name.split("."))


def _literal(literal: given.Literal[Any], field: Field) -> Literal:
    value = literal.value
    if isinstance(literal, given.UUIDLiteral):
        return Literal(Kind.STRING, str(UUID(bytes=value)))
    if isinstance(literal, given.TimestampLiteral):
        # PyIceberg keeps only the microseconds: local for columns without a zone, of UTC for others.
        zoned = field.type.startswith("timestamptz")
        return Literal(Kind.TIMESTAMP if zoned else Kind.TIMESTAMP_NTZ, value)
    kind = _KINDS.get(type(literal))
    if kind is None:
        raise Inexact(f"literals of {type(literal).__name__} are not understood")
    if field.type == "uuid" and kind is Kind.BINARY and len(value) == 16:
        return Literal(Kind.STRING, str(UUID(bytes=value)))
    return Literal(kind, value)


def _opaque(node: ice.UnboundPredicate, negated: bool, names: Names, reason: str) -> Opaque:
    """Format an expression as Spark SQL, for messages."""
    column = _column(node, names)
    name = ".".join(map(quote_part, column.parts)) if isinstance(column, Field) else column.name
    text = f"{name} {_TAILS[type(node)]}" if type(node) in _TAILS else f"{type(node).__name__}({name})"
    if isinstance(column, Field) and isinstance(node, ice.In | ice.NotIn):
        listed = ", ".join(sorted(_spelled(_literal(literal, column)) for literal in node.literals))
        text = f"{name} {'NOT ' if isinstance(node, ice.NotIn) else ''}IN ({listed})"
    elif isinstance(column, Field) and isinstance(node, ice.StartsWith | ice.NotStartsWith):
        text = f"startswith({name}, {_spelled(_literal(node.literal, column))})"
        text = text if isinstance(node, ice.StartsWith) else f"NOT {text}"
    elif isinstance(column, Field) and isinstance(node, ice.LiteralPredicate):
        text = f"{name} {_OPS[type(node)]} {_spelled(_literal(node.literal, column))}"
    elif isinstance(node, ice.IsNaN | ice.NotNaN):
        text = f"{'NOT ' if isinstance(node, ice.NotNaN) else ''}isnan({name})"
    return Opaque(f"NOT ({text})" if negated else text, reason)


_TAILS: dict[type[ice.BooleanExpression], str] = {ice.IsNull: "IS NULL", ice.NotNull: "IS NOT NULL"}
_TYPES = {
    Kind.INTEGER: "long",
    Kind.TIMESTAMP: "timestamptz",
    Kind.TIMESTAMP_NTZ: "timestamp",
}


def _spelled(literal: Literal) -> str:
    if literal.kind is Kind.DECIMAL:
        return f"{literal.value:f}BD"
    return spell_value(_TYPES.get(literal.kind, str(literal.kind)), literal.value)
