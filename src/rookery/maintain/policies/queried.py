"""Which columns of a table queries filter, join and group by: read from their texts."""

from __future__ import annotations

import glob
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec
from sqlglot import exp
from sqlglot.dialects import Spark, Trino
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.tokenizer_core import TokenType

from rookery.model import Field, TableName
from rookery.where.parsing import with_depth

log = logging.getLogger(__name__)
_DIALECTS: tuple[type[Dialect], ...] = (Spark, Trino)
_QUOTED_NAME = re.compile(r'"\s*\.|\.\s*"|\b(?:from|join|into|update)\s+"', re.I)
_MEMBERS = ("query", "sql")
_Sources = Mapping[str, "exp.Expr | Scope"]
_Parts = tuple[str, ...]


def queried_columns(files: Sequence[str], name: TableName, fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the columns of a table that queries filter, join or group by, the most frequent first.

    *files* are patterns of paths: `.jsonl` has an object with a `query` or `sql` a line, any other file has
    statements of SQL. What cannot be read or parsed is skipped, with a warning.
    """
    texts, broken = _texts(files)
    columns = _Columns(name, fields)
    counts: Counter[str] = Counter()
    unread = broken
    for text, times in texts.items():
        try:
            with _silent():
                used = with_depth(partial(columns.used_by, text))
        except Exception:  # noqa: BLE001  # a query log may contain any text
            unread += times
            continue
        counts.update(dict.fromkeys(used, times))
    if unread:
        log.warning("%s of %s queries could not be read", unread, texts.total() + broken)
    order = {field.name: place for place, field in enumerate(fields)}
    return tuple(sorted(counts, key=lambda column: (-counts[column], order[column])))


@contextmanager
def _silent() -> Iterator[None]:
    """Keep sqlglot from printing what it does not know: it is not a query, and may contain secrets."""
    logger, nothing = logging.getLogger("sqlglot"), _Nothing()
    logger.addFilter(nothing)
    try:
        yield
    finally:
        logger.removeFilter(nothing)


class _Nothing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return False


def _texts(patterns: Sequence[str]) -> tuple[Counter[str], int]:
    """Return the statements of all files with how often each occurs, and how many lines have none."""
    texts: Counter[str] = Counter()
    broken = 0
    for pattern in patterns:
        paths = sorted(glob.glob(pattern, recursive=True))
        if not paths:
            log.warning("no file of queries matches '%s'", pattern)
        for path in paths:
            try:
                for text in _lines(path) if path.endswith(".jsonl") else _statements(path):
                    if text is None:
                        broken += 1
                    elif text.strip():
                        texts[text.strip()] += 1
            except OSError as error:
                log.warning("queries of '%s' cannot be read: %s", path, error.strerror)
    return texts, broken


def _lines(path: str) -> Iterator[str | None]:
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if not line.strip():
                continue
            try:
                entry = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                entry = None
            found = [entry[key] for key in _MEMBERS if key in entry] if isinstance(entry, dict) else []
            if found and isinstance(found[0], str):
                yield from _split(found[0])
            else:
                yield None


def _statements(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8-sig", errors="replace") as stream:
        yield from _split(stream.read())


def _split(text: str) -> Iterator[str]:
    """Split at semicolons that end statements, so that a bad one does not affect others."""
    try:
        ends = [token.start for token in Spark().tokenize(text) if token.token_type is TokenType.SEMICOLON]
    except SqlglotError:
        yield from text.split(";")
        return
    start = 0
    for end in (*ends, len(text)):
        yield text[start:end]
        start = end + 1


def _parsed(text: str) -> exp.Expr | None:
    """Parse a statement as Spark's, else as Trino's; comments are dropped.

    If double quotes are around a name, Trino's is tried first: in Spark they would make a string.
    """
    last: SqlglotError | None = None
    for dialect in reversed(_DIALECTS) if _QUOTED_NAME.search(text) else _DIALECTS:
        try:
            tree = dialect().parser(error_level=ErrorLevel.IMMEDIATE).parse(dialect().tokenize(text), text)
        except SqlglotError as error:
            last = error
        else:
            return tree[0] if tree else None
    assert last is not None
    raise last


class _Columns:
    """The columns of one table, and how texts name them."""

    def __init__(self, name: TableName, fields: Sequence[Field]) -> None:
        self.full = tuple(part.lower() for part in (name.catalog, *name.identifier))
        self.fields = {_lower(field.parts): field.name for field in reversed(fields) if not field.repeated}
        self.walked: set[tuple[int, _Parts]] = set()

    def used_by(self, text: str) -> set[str]:
        """Return the columns that one statement filters, joins or groups by."""
        if self.full[-1] not in text.lower():  # the usual case: of another table, and not worth parsing
            return set()
        if (tree := _parsed(text)) is None:
            return set()
        used: set[str] = set()
        for scope in traverse_scope(tree):
            sources = _visible(scope)
            for parts in _clauses(scope.expression):
                used.update(self.resolve(parts, sources, scope.expression))
        for node in tree.find_all(exp.Delete, exp.Update, exp.Merge):
            sources = _named_tables(node)
            for clause in (node.args.get("where"), node.args.get("on")):
                for parts in _columns_in(clause):
                    used.update(self.resolve(parts, sources, None))
        return used

    def is_this(self, node: exp.Expr) -> bool:
        """Whether a table's name in a query is this one's, in full or in part."""
        if not isinstance(node, exp.Table):
            return False
        parts = _lower([part.name for part in node.parts])
        return bool(parts) and self.full[-len(parts) :] == parts

    def resolve(self, parts: _Parts, sources: _Sources, select: exp.Expr | None) -> set[str]:
        """Return the column of this table that a name in a query refers to, if any."""
        for end in range(len(parts) - 1, 0, -1):  # alias.column, namespace.table.column
            source = sources.get(parts[end - 1])
            if source is not None and (end == 1 or self._qualifies(source, parts[:end])):
                return self._within(source, parts[end:])
        for source in sources.values():
            if found := self._within(source, parts):
                return found
        if select is not None and len(parts) == 1:  # GROUP BY the name of a result
            return self._projected(select, parts, sources, stars=False)
        return set()

    def _qualifies(self, source: exp.Expr | Scope, parts: _Parts) -> bool:
        return isinstance(source, exp.Table) and self.is_this(source) and self.full[-len(parts) :] == parts

    def _within(self, source: exp.Expr | Scope, parts: _Parts) -> set[str]:
        if isinstance(source, Scope):
            return self._through(source, parts)
        return {self.fields[parts]} if self.is_this(source) and parts in self.fields else set()

    def _through(self, source: Scope, parts: _Parts) -> set[str]:
        if (step := (id(source), parts)) in self.walked:  # a CTE that reads itself
            return set()
        self.walked.add(step)
        try:
            found: set[str] = set()
            for scope in _branches(source):
                found |= self._projected(scope.expression, parts, _folded(scope.sources), stars=True)
            return found
        finally:
            self.walked.discard(step)

    def _projected(self, query: exp.Expr, parts: _Parts, sources: _Sources, *, stars: bool) -> set[str]:
        """Follow a name through the results of a query to the column that it refers to."""
        for result in query.selects if isinstance(query, exp.Query) else ():
            if result.is_star and stars:
                for source in sources.values():
                    if found := self._within(source, parts):
                        return found
            elif result.alias_or_name.lower() == parts[0]:
                inner = result.unalias()
                if not isinstance(inner, exp.Column | exp.Dot):
                    return set()  # computed
                return self.resolve((*_named(inner), *parts[1:]), sources, None)
        return set()


def _visible(scope: Scope) -> _Sources:
    """Return what a SELECT reads, followed by what the SELECTs around a subquery read."""
    sources = _folded(scope.sources)
    while scope.is_subquery and scope.parent is not None:
        scope = scope.parent
        sources |= {alias: each for alias, each in _folded(scope.sources).items() if alias not in sources}
    return sources


def _folded(sources: _Sources) -> dict[str, exp.Expr | Scope]:
    return {alias.lower(): source for alias, source in sources.items()}


def _branches(scope: Scope) -> list[Scope]:
    """Return the SELECTs of a UNION, each with its own sources."""
    below = scope.set_operation_scopes
    return [branch for each in below for branch in _branches(each)] if below else [scope]


def _named_tables(node: exp.Expr) -> dict[str, exp.Expr | Scope]:
    """Return the tables that a DELETE, UPDATE or MERGE names itself, by their aliases."""
    places = (node.this, node.args.get("using"), node.args.get("from_"))
    nodes = [place.this if isinstance(place, exp.From) else place for place in places]
    return {each.alias_or_name.lower(): each for each in nodes if isinstance(each, exp.Table)}


def _clauses(query: exp.Expr) -> Iterator[_Parts]:
    """Go through the columns in WHERE, JOIN and GROUP BY of one SELECT, not of those within it."""
    if not isinstance(query, exp.Select):
        return
    yield from _columns_in(query.args.get("where"))
    for join in query.args.get("joins") or ():
        yield from _columns_in(join.args.get("on"))
        for key in join.args.get("using") or ():
            yield _lower([key.name])
    group = query.args.get("group")
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(query.selects):
            yield from _columns_in(query.selects[int(key.name) - 1])
    yield from _columns_in(group)


def _columns_in(clause: exp.Expr | None) -> Iterator[_Parts]:
    if clause is None:
        return
    for node in clause.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            yield _named(node)


def _named(node: exp.Expr) -> _Parts:
    """Return the parts of a column's name; a longer one is a column followed by dots."""
    column = node if isinstance(node, exp.Column) else node.find(exp.Column)
    parts = [part.name for part in column.parts] if isinstance(column, exp.Column) else []
    dot = column.parent if column is not None else None
    while isinstance(dot, exp.Dot) and isinstance(dot.expression, exp.Identifier):
        parts.append(dot.expression.name)
        dot = dot.parent
    return _lower(parts)


def _lower(parts: Sequence[str]) -> _Parts:
    return tuple(part.lower() for part in parts)
