"""Conditions as Spark has resolved them, from the JVM's encoding: columns by id, literals with their types.

A condition is used only where its literals are of exactly the column's type, so that nothing is left to
interpret; every other part is opaque, and stays with Spark.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from rookery.model import ALWAYS, NEVER, Compare, Field, IsNull, Op, Opaque, Predicate, all_of, any_of
from rookery.model.errors import UsageError
from rookery.model.type_names import base_type, precision_and_scale
from rookery.where.binding import Inexact, null_test
from rookery.where.literals import NULL, Kind, Literal, among, compare
from rookery.where.patterns import begins_with, contains, ends_with
from rookery.where.timestamps import session_zone

_Node: TypeAlias = Mapping[str, Any]
_UTC = session_zone("UTC")  # no literal of a column's own type depends on a zone
_OPS = {"=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_PATTERNS = {"STARTS_WITH": begins_with, "ENDS_WITH": ends_with, "CONTAINS": contains}


def _text(value: str) -> str:
    try:
        return base64.b64decode(value).decode()
    except UnicodeDecodeError as error:
        raise Inexact("the literal is not UTF-8") from error


_TYPES: Mapping[str, tuple[str, Kind, Callable[[Any], Any]]] = {
    "boolean": ("boolean", Kind.BOOLEAN, bool),
    "int": ("int", Kind.INTEGER, int),
    "long": ("bigint", Kind.INTEGER, int),
    "float": ("float", Kind.DOUBLE, float.fromhex),
    "double": ("double", Kind.DOUBLE, float.fromhex),
    "date": ("date", Kind.DATE, int),
    "timestamp": ("timestamp_ntz", Kind.TIMESTAMP_NTZ, int),
    "timestamptz": ("timestamp", Kind.TIMESTAMP, int),
    "string": ("string", Kind.STRING, _text),
    "uuid": ("string", Kind.STRING, _text),
    "binary": ("binary", Kind.BINARY, base64.b64decode),
    "fixed": ("binary", Kind.BINARY, base64.b64decode),
}
"""By the type of a column: the type of Spark's literal, and how its value is read."""


def predicate_of(conditions: Sequence[_Node], fields: Mapping[int, Field]) -> Predicate:
    """Return the predicate of conditions that must all be true."""
    return all_of(*(_build(each, False, fields) for each in conditions))


def _build(node: _Node, negated: bool, fields: Mapping[int, Field]) -> Predicate:
    match node.get("op"):
        case "ALWAYS_TRUE" | "ALWAYS_FALSE":
            return ALWAYS if (node["op"] == "ALWAYS_TRUE") is not negated else NEVER
        case "NOT":
            return _build(node["of"][0], not negated, fields)
        case "AND" | "OR":
            parts = [_build(part, negated, fields) for part in node["of"]]
            return all_of(*parts) if (node["op"] == "AND") is not negated else any_of(*parts)
    try:
        return _leaf(node, negated, fields)
    except (Inexact, UsageError) as error:
        return Opaque(_shown(node), str(error))


def _leaf(node: _Node, negated: bool, fields: Mapping[int, Field]) -> Predicate:
    op, parts = node.get("op"), node.get("of", ())
    if "column" in node or (op == "BOOLEAN_EXPRESSION" and len(parts) == 1):
        field = _column(node if "column" in node else parts[0], fields)
        if field.type != "boolean":
            raise Inexact("not a condition")
        return Compare(field, Op.EQ, not negated)
    if op in ("IS_NULL", "IS_NOT_NULL"):
        return null_test(_column(parts[0], fields), negated=negated ^ (op == "IS_NOT_NULL"))
    if op == "IN":
        return _among(_column(parts[0], fields), node["type"], node["values"], negated)
    if op in _PATTERNS:
        field = _column(parts[0], fields)
        literal = _literal(parts[1], field)
        if field.type != "string" or literal.kind is not Kind.STRING:
            raise Inexact("patterns are those of strings")
        return _PATTERNS[op](field, literal.value, negated=negated)
    if op in (*_OPS, "<=>") and len(parts) == 2:
        return _comparison(op, parts, negated, fields)
    raise Inexact("not understood")


def _comparison(op: str, parts: Sequence[_Node], negated: bool, fields: Mapping[int, Field]) -> Predicate:
    flipped = "column" in parts[1]
    column, literal_node = (parts[1], parts[0]) if flipped else (parts[0], parts[1])
    field = _column(column, fields)
    literal = _literal(literal_node, field)
    if op == "<=>":
        if literal.kind is Kind.NULL:
            return null_test(field, negated=negated)
        compared = compare(field, Op.NE if negated else Op.EQ, literal, _UTC)
        return any_of(compared, IsNull(field)) if negated else compared
    known = _OPS[op].flipped if flipped else _OPS[op]
    return compare(field, known.negated if negated else known, literal, _UTC)


def _among(field: Field, kind: str, values: Sequence[Any], negated: bool) -> Predicate:
    literals = [_literal({"type": kind, "value": value}, field) for value in values]
    return among(field, literals, _UTC, negated=negated)


def _column(node: _Node, fields: Mapping[int, Field]) -> Field:
    field = fields.get(node.get("column", -1))
    if field is None or field.repeated:
        raise Inexact("not a column")
    return field


def _literal(node: _Node, field: Field) -> Literal:
    if "type" not in node:
        raise Inexact("not a literal")
    if node["value"] is None:
        return NULL
    if base_type(field.type) == "decimal":
        precision, scale = precision_and_scale(field.type) or (0, 0)
        if node["type"] != f"decimal({precision},{scale})":
            raise Inexact(f"Spark compares it as {node['type']}")
        return Literal(Kind.DECIMAL, Decimal(node["value"]))
    wanted, kind, read = _TYPES.get(base_type(field.type), ("", Kind.NULL, str))
    if node["type"] != wanted:
        raise Inexact(f"Spark compares it as {node['type']}")
    return Literal(kind, read(node["value"]))


def _shown(node: _Node) -> str:
    if "opaque" in node:
        return str(node["opaque"])
    return (
        f"{node.get('op', 'a literal')}({', '.join(_shown(part) for part in list(node.get('of', ()))[:4])})"
    )
