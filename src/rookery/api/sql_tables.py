"""The tables of a query, and what its text states of each: its own predicates, and equal join keys.

Only forms of queries that are listed here are read; in any other, tables are left to Spark. A conjunct counts
for a table if leaving out the rows of which it is not true cannot change the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import TokenType

from rookery.model import UsageError
from rookery.where.parsing import spark_tokens, with_depth

_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}
# The clauses that a query, a table and a join may have to be understood.
_SELECT = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
    | {"with_", "windows"}
)
_TABLE = frozenset({"this", "db", "catalog", "alias"})
_SUBQUERY = frozenset({"this", "alias"})
_JOIN = frozenset({"this", "side", "kind", "on", "using"})
_INNER = frozenset({("", ""), ("", "INNER"), ("", "CROSS")})
# Rows of the right table without a match are dropped, and those of the left do not depend on each other.
_LEFT = frozenset(
    {("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("", "SEMI"), ("LEFT", "ANTI"), ("", "ANTI")}
)
# Columns that Iceberg adds to its tables, which views of them lack.
_METADATA = frozenset(
    {"_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number"}
    | {"_change_type", "_change_ordinal", "_commit_snapshot_id"}
)


@dataclass(slots=True, eq=False)
class TableUse:
    """One place in a query where a table is named."""

    node: exp.Table
    alias: str
    columns: frozenset[str] = frozenset()  # known once it is resolved, in lower case
    conditions: list[exp.Expression] = field(default_factory=list)  # true of all rows that affect the result

    @property
    def parts(self) -> list[str]:
        """The name, part by part."""
        return parts_of(self.node)

    def span(self) -> tuple[int, int]:
        """The position of the name in the text: its first character, and the one after its last."""
        places = [part.meta for part in self.node.parts]
        return min(place["start"] for place in places), max(place["end"] for place in places) + 1


@dataclass(frozen=True, slots=True)
class Equality:
    """A column of one use equals a column of another; keys of `source` may prune `target`."""

    source: TableUse
    source_column: str
    target: TableUse
    target_column: str


@dataclass(slots=True)
class SelectTables:
    """The tables of one SELECT of a form that is understood."""

    uses: list[TableUse]
    others: bool  # there are sources that are no tables
    node: exp.Select


@dataclass(frozen=True, slots=True)
class QueryTables:
    """The tables of a query: those of its SELECTs, and the names of those that it uses in some other way."""

    selects: list[SelectTables]
    elsewhere: list[list[str]]


def query_tables(text: str) -> QueryTables | None:
    """Return the tables that a query names; None if the text is no query."""
    try:
        tokens = spark_tokens(text)
        parser = Spark().parser(error_level=ErrorLevel.IMMEDIATE)
        statements = with_depth(lambda: parser.parse(tokens, text))
    except (SqlglotError, UsageError):
        return None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return None
    (query,) = statements
    readable = tokens[0].token_type in _STARTS and all(
        token.token_type is not TokenType.PIPE_GT for token in tokens
    )
    selects = list(_selects(query)) if readable and not _is_unusual(query) else []
    read = {id(use.node) for select in selects for use in select.uses}
    commons = _commons(query)
    elsewhere = [
        parts_of(node)
        for node in query.find_all(exp.Table)
        if id(node) not in read and _is_named(node) and not _is_common(node, commons)
    ]
    return QueryTables(selects, elsewhere)


def parts_of(node: exp.Table) -> list[str]:
    """Return a table's name, part by part."""
    return [part.name for part in node.parts]


def _is_unusual(query: exp.Query) -> bool:
    recursive = any(each.args.get("recursive") for each in query.find_all(exp.With))
    return recursive or any(name.name.lower() in _METADATA for name in query.find_all(exp.Identifier))


def _commons(query: exp.Query) -> set[str]:
    return {common.alias_or_name.lower() for common in query.find_all(exp.CTE)}


def _is_common(node: exp.Table, commons: set[str]) -> bool:
    return len(node.parts) == 1 and node.name.lower() in commons


def _is_named(node: exp.Expression) -> bool:
    return isinstance(node, exp.Table) and all(isinstance(part, exp.Identifier) for part in node.parts)


def _selects(query: exp.Query) -> Iterator[SelectTables]:
    commons = _commons(query)
    qualifiers = _inner_qualifiers(query)
    for select in query.find_all(exp.Select):
        if not _has_only(select, _SELECT) or select.args.get("from_") is None:
            continue
        joins = select.args.get("joins") or []
        nodes = [select.args["from_"].this, *(join.this for join in joins)]
        if not all(map(_is_source, nodes)) or not all(map(_is_plain_join, joins)):
            continue
        tables = [node for node in nodes if isinstance(node, exp.Table) and not _is_common(node, commons)]
        uses = [TableUse(node, node.alias_or_name.lower()) for node in tables]
        # A view with the table's last name for an alias could not be used by its longer names.
        if not any("." in use.alias or (not use.node.alias and use.alias in qualifiers) for use in uses):
            yield SelectTables(uses, len(tables) < len(nodes), select)


def _has_only(node: exp.Expression, known: frozenset[str]) -> bool:
    return all(key in known for key, value in node.args.items() if value)


def _is_source(node: exp.Expression) -> bool:
    if isinstance(node, exp.Subquery):
        return _has_only(node, _SUBQUERY) and isinstance(node.this, exp.Query)
    alias = node.args.get("alias")
    renamed = alias is not None and bool(alias.args.get("columns"))
    return _is_named(node) and _has_only(node, _TABLE) and not renamed


def _is_plain_join(join: exp.Join) -> bool:
    return _has_only(join, _JOIN) and _kind(join) in _INNER | _LEFT


def _kind(join: exp.Join) -> tuple[str, str]:
    return join.side.upper(), join.kind.upper()


def _inner_qualifiers(query: exp.Query) -> set[str]:
    """The names inside dotted names of columns, such as the table's in `db.orders.id`."""
    return {part.name.lower() for column in query.find_all(exp.Column) for part in column.parts[1:-1]}


def read_conditions(select: SelectTables) -> list[Equality]:
    """Give every table the conjuncts that count for it, and return the equalities of join keys.

    The tables must be resolved: columns that are not qualified belong to the table that has them.
    """
    by_node = {id(use.node): use for use in select.uses}
    owner = _Owner(select)
    where = select.node.args.get("where")
    required = list(_conjuncts(where.this)) if where is not None else []
    optional: list[TableUse] = []  # whose rows may be missing where the rest of the row is there
    for join in select.node.args.get("joins") or []:
        on = join.args.get("on")
        parts = list(_conjuncts(on)) if on is not None else []
        if _kind(join) in _INNER:
            required += parts
        elif (right := by_node.get(id(join.this))) is not None:
            right.conditions += [part for part in parts if owner.of(part) == [right]]
            optional.append(right)
    equalities: list[Equality] = []
    for part in required:
        uses = owner.of(part)
        if any(use in optional for use in uses):
            continue
        if len(uses) == 1:
            uses[0].conditions.append(part)
        elif len(uses) == 2 and (pair := _pair(part, owner)) is not None:
            equalities += _both(pair)
    return equalities


class _Owner:
    """Finds the tables to which the columns of an expression belong."""

    def __init__(self, select: SelectTables) -> None:
        self._uses = select.uses
        self._others = select.others

    def of(self, part: exp.Expression) -> list[TableUse]:
        """Return the tables of all columns; none if it is not certain, or if a query is inside."""
        if part.find(exp.Query, exp.Subquery) is not None:
            return []
        uses: list[TableUse] = []
        for column in part.find_all(exp.Column):
            use = self.column(column)
            if use is None:
                return []
            if use not in uses:
                uses.append(use)
        return uses

    def column(self, column: exp.Column) -> TableUse | None:
        """Return the table of one column, if only one can have it."""
        names = [part.name.lower() for part in column.parts]
        named = [use for use in self._uses if use.alias == names[0]]
        if len(names) > 1 and named:
            return named[0] if len(named) == 1 and names[1] in named[0].columns else None
        if self._others or not all(use.columns for use in self._uses):
            return None
        having = [use for use in self._uses if names[0] in use.columns]
        return having[0] if len(having) == 1 else None


def _conjuncts(expression: Any) -> Iterator[exp.Expression]:
    if isinstance(expression, exp.And):
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    elif isinstance(expression, exp.Paren):
        yield from _conjuncts(expression.this)
    else:
        yield expression


def _pair(part: exp.Expression, owner: _Owner) -> list[tuple[TableUse, str]] | None:
    """The two columns of an equality between tables, by table and name; fields of structs are none."""
    if not isinstance(part, exp.EQ):
        return None
    columns = []
    for side in (part.left, part.right):
        if not isinstance(side, exp.Column) or (use := owner.column(side)) is None:
            return None
        qualified = len(side.parts) == 2 and side.parts[0].name.lower() == use.alias
        if len(side.parts) != 1 and not qualified:
            return None
        columns.append((use, side.name))
    return columns


def _both(pair: Sequence[tuple[TableUse, str]]) -> list[Equality]:
    (one, first), (two, second) = pair
    return [Equality(one, first, two, second), Equality(two, second, one, first)]
