"""The tables of a query, and what its text says of each: predicates of their own, and equal join keys.

Only what is certain is taken. A conjunct is counted for a table if rows of which it is not true cannot come
to the result through that table; an equality counts for a table if its rows without a partner vanish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, SqlglotError

from rookery.model import UsageError
from rookery.where.parsing import spark_tokens, with_depth

_UNUSUAL = (
    *("laterals", "pivots", "hints", "system_time", "version", "when", "only", "partition", "changes"),
    *("rows_from", "sample", "indexed", "joins", "pattern", "ordinality"),
)


@dataclass(slots=True)
class TableUse:
    """One place in a query where a table is named."""

    node: exp.Table
    alias: str
    columns: frozenset[str] = frozenset()  # known once it is resolved, in lower case
    nullable: bool = False  # its columns may be null where it has no partner
    wheres: list[exp.Expression] = field(default_factory=list)  # true of every row that matters
    conditions: list[exp.Expression] = field(default_factory=list)  # the same, whether null or not

    @property
    def parts(self) -> list[str]:
        """The name, part by part."""
        return [part.name for part in self.node.parts]

    def span(self) -> tuple[int, int]:
        """Where in the text the name stands: its first character, and the one behind its last."""
        places = [part.meta for part in self.node.parts]
        return min(place["start"] for place in places), max(place["end"] for place in places) + 1


@dataclass(frozen=True, slots=True)
class Equality:
    """A column of one use equals a column of another; keys of `source` may cut `target`."""

    source: TableUse
    source_column: str
    target: TableUse
    target_column: str


@dataclass(slots=True)
class SelectTables:
    """The tables of one SELECT."""

    uses: list[TableUse]
    others: bool  # there are sources that are no plain tables
    node: exp.Select


def selects(text: str) -> list[SelectTables]:
    """Return the SELECTs of a query with the tables that they name; nothing if it is no query."""
    try:
        parser = Spark().parser(error_level=ErrorLevel.IMMEDIATE)
        statements = with_depth(lambda: parser.parse(spark_tokens(text), text))
    except (SqlglotError, UsageError):
        return []
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return []
    (query,) = statements
    commons = {common.alias_or_name.lower() for common in query.find_all(exp.CTE)}
    return [found for select in query.find_all(exp.Select) if (found := _tables(select, commons)) is not None]


def _tables(select: exp.Select, commons: set[str]) -> SelectTables | None:
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    if source is None or select.args.get("laterals") or select.args.get("pivots"):
        return None
    uses: list[TableUse] = []
    others = False
    for node in (source.this, *(join.this for join in joins)):
        plain = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if plain and len(node.parts) == 1 and node.name.lower() in commons:
            plain = False
        unusual = plain and (any(node.args.get(name) for name in _UNUSUAL) or _renames(node))
        if plain and not unusual and not _named_in_full(node):
            uses.append(TableUse(node, node.alias_or_name.lower()))
        else:
            others = True
    return SelectTables(uses, others, select) if uses else None


def _named_in_full(node: exp.Table) -> bool:
    """Whether some column is qualified by more than the last name, to which a view would not answer."""
    if node.alias or not node.db:
        return False
    wanted = (node.db.lower(), node.name.lower())
    for column in node.root().find_all(exp.Column):
        names = [part.name.lower() for part in column.parts]
        if any(pair == wanted for pair in pairwise(names)):
            return True
    return False


def _renames(node: exp.Table) -> bool:
    alias = node.args.get("alias")
    return bool(alias is not None and alias.args.get("columns"))


def read_conditions(found: SelectTables) -> list[Equality]:
    """Give every table the conjuncts that count for it, and return the equalities of join keys.

    The tables must be resolved: columns that are not qualified belong to whichever has them.
    """
    by_node = {id(use.node): use for use in found.uses}
    reached: list[TableUse] = []
    equalities: list[Equality] = []
    owner = _Owner(found)
    first = by_node.get(id(found.node.args["from_"].this))
    reached += [first] if first is not None else []
    for join in found.node.args.get("joins") or []:
        right = by_node.get(id(join.this))
        equalities += _join(join, reached, right, owner)
        reached += [right] if right is not None else []
    where = found.node.args.get("where")
    for part in _conjuncts(where.this) if where is not None else []:
        uses = owner.of(part)
        if len(uses) == 1:
            (use,) = uses
            (use.wheres if use.nullable else use.conditions).append(part)
        elif (pair := _pair(part, owner)) is not None and not any(use.nullable for use, _ in pair):
            equalities += _both(pair)
    return equalities


def _join(join: exp.Join, left: Sequence[TableUse], right: TableUse | None, owner: _Owner) -> list[Equality]:
    side, kind = join.side.upper(), join.kind.upper()
    if join.method or side == "FULL" or (side, kind) not in _KNOWN:
        for use in (*left, *([right] if right is not None else [])):
            use.nullable = True
        return []
    equalities: list[Equality] = []
    keeps_left, keeps_right = _KNOWN[side, kind]
    on = join.args.get("on")
    parts = list(_conjuncts(on)) if on is not None else []
    for part in parts:
        uses = owner.of(part)
        if len(uses) == 1:
            (use,) = uses
            if not (keeps_right if use is right else keeps_left):
                use.conditions.append(part)
        elif (pair := _pair(part, owner)) is not None:
            equalities += [
                edge
                for edge in _both(pair)
                if not (keeps_right if edge.target is right else keeps_left)
                and (edge.source is right or edge.target is right)
            ]
    if keeps_left and right is not None and kind != "ANTI":
        right.nullable = True
    if keeps_right:
        for use in left:
            use.nullable = True
    return equalities


# By side and kind: whether rows without a partner stay, of the left and of the right.
_KNOWN: Mapping[tuple[str, str], tuple[bool, bool]] = {
    ("", ""): (False, False),
    ("", "INNER"): (False, False),
    ("", "CROSS"): (False, False),
    ("LEFT", ""): (True, False),
    ("LEFT", "OUTER"): (True, False),
    ("RIGHT", ""): (False, True),
    ("RIGHT", "OUTER"): (False, True),
    ("LEFT", "SEMI"): (False, False),
    ("", "SEMI"): (False, False),
    ("LEFT", "ANTI"): (True, False),
    ("", "ANTI"): (True, False),
}


class _Owner:
    """Tells to which tables the columns of an expression belong."""

    def __init__(self, found: SelectTables) -> None:
        self._uses = found.uses
        self._others = found.others

    def of(self, part: exp.Expression) -> list[TableUse]:
        """Return the tables of all columns; none if it is not certain, or if a query is inside."""
        if part.find(exp.Query, exp.Subquery) is not None:
            return []
        found: list[TableUse] = []
        for column in part.find_all(exp.Column):
            use = self.column(column)
            if use is None:
                return []
            if use not in found:
                found.append(use)
        return found

    def column(self, column: exp.Column) -> TableUse | None:
        """Return the table of one column."""
        first = column.parts[0].name.lower()
        if len(column.parts) > 1:
            named = [use for use in self._uses if use.alias == first]
            if len(named) == 1:
                return named[0]
            if named:
                return None
        if self._others:
            return None
        having = [use for use in self._uses if first in use.columns]
        return having[0] if len(having) == 1 and all(use.columns for use in self._uses) else None


def _conjuncts(expression: Any) -> Iterator[exp.Expression]:
    if isinstance(expression, exp.And):
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    elif isinstance(expression, exp.Paren):
        yield from _conjuncts(expression.this)
    else:
        yield expression


def _pair(part: exp.Expression, owner: _Owner) -> list[tuple[TableUse, str]] | None:
    """The two columns of an equality between tables, by table and name."""
    if not isinstance(part, exp.EQ):
        return None
    found = []
    for side in (part.left, part.right):
        if not isinstance(side, exp.Column) or (use := owner.column(side)) is None:
            return None
        found.append((use, side.name))
    return found if found[0][0] is not found[1][0] else None


def _both(pair: Sequence[tuple[TableUse, str]]) -> list[Equality]:
    (one, first), (two, second) = pair
    return [Equality(one, first, two, second), Equality(two, second, one, first)]
