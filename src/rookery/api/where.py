"""The forms of a predicate: SQL text, a PyIceberg expression, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rookery.model import ALWAYS, Predicate, Snapshot, UsageError
from rookery.tables import Table

if TYPE_CHECKING:
    from rookery.tables.iceberg.expressions import BooleanExpression

Where: TypeAlias = "str | BooleanExpression | None"


def bind(where: Where, table: Table, snapshot: Snapshot | None, zone: str = "UTC") -> Predicate:
    """Return the predicate, bound to the columns of a snapshot; local times in it are in *zone*."""
    if where is None:
        return ALWAYS
    fields = table.fields(snapshot)
    if isinstance(where, str):
        from rookery.where.sql_text import parse_predicate  # brings sqlglot, which the others do without

        return parse_predicate(where, fields, zone=zone)
    from rookery.tables.iceberg.expressions import BooleanExpression, predicate_from_expression

    if isinstance(where, BooleanExpression):
        return predicate_from_expression(where, fields, zone=zone)
    raise UsageError(
        f"a predicate cannot be a {type(where).__name__}", hint="give SQL text, or a PyIceberg expression"
    )
