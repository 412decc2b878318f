"""Random queries over several tables: joins, subqueries, set operations, and all else that names tables."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.differential.columns import Column, Path, paths
from tests.differential.predicates import Predicates, exactly

_WHOLE = {"int", "long"}
_TABLE = re.compile(r"\b(?:lake\.)?db\.(?=d[0-9a-f]{8})")
_JOINS = (
    *("JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN"),
    *("FULL JOIN", "FULL OUTER JOIN", "LEFT SEMI JOIN", "SEMI JOIN", "LEFT ANTI JOIN", "ANTI JOIN"),
)
_ONE_SIDED = ("LEFT SEMI JOIN", "SEMI JOIN", "LEFT ANTI JOIN", "ANTI JOIN")


@dataclass(frozen=True)
class Query:
    """A text, with what must be made before it."""

    form: str
    text: str
    views: tuple[tuple[str, str], ...] = ()  # names of temporary views, and the queries that they are of
    native: bool = False  # copies of the tables have not what it asks for


def on_copies(text: str) -> str:
    """The text for copies of the tables, which are global temporary views."""
    return _TABLE.sub("global_temp.", text)


def bare(text: str) -> str:
    """The text for temporary views with the names of the tables."""
    return _TABLE.sub("", text)


@dataclass(frozen=True)
class Source:
    """Something in FROM: how it is written, how its columns are qualified, what they are."""

    text: str
    alias: str
    columns: Sequence[Column]

    def paths(self) -> list[Path]:
        return list(paths(self.columns, qualifier=self.alias))


class Parts:
    """The parts that queries are made of."""

    def __init__(
        self,
        rng: random.Random,
        tables: Mapping[str, Sequence[Column]],
        branches: Sequence[tuple[str, str]] = (),
        *,
        lenient: bool = False,
    ) -> None:
        self.rng = rng
        self.tables = tables  # by name, without catalog and namespace
        self.branches = branches  # tables and names
        self.lenient = lenient
        self._count = 0

    # -- sources

    def alias(self) -> str:
        self._count += 1
        return f"a{self._count}" if self.rng.random() < 0.9 else f"A{self._count}"

    def named(self, name: str) -> str:
        """A table as it may be named where its namespace is in use."""
        return self.rng.choice((f"lake.db.{name}", f"lake.db.{name}", f"db.{name}", name))

    def table(self, *, aliased: bool = True) -> Source:
        name = self.rng.choice(list(self.tables))
        if not aliased:
            return Source(self.named(name), self.rng.choice(("", name)), self.tables[name])
        alias = self.alias()
        word = self.rng.choice((" ", " AS "))
        return Source(f"{self.named(name)}{word}{alias}", alias, self.tables[name])

    def source(self) -> Source:
        """A table, or a query in its place."""
        choice = self.rng.random()
        if choice < 0.75:
            return self.table()
        inner = self.table()
        alias = self.alias()
        kept = [c for c in inner.columns if self.rng.random() < 0.7 or c.name == "k"] or list(inner.columns)
        renamed = [Column(c.name, c.kind, c.values, c.children) for c in kept]
        flat = [column for column in renamed if column.is_leaf]
        if len(flat) > 1 and self.rng.random() < 0.4:  # names that mean something else from here on
            one, two = self.rng.sample(flat, 2)
            one.name, two.name = two.name, one.name
        listed = ", ".join(
            f"{Path((old.name,), old, inner.alias).sql} AS {Path((new.name,), new).sql}"
            for old, new in zip(kept, renamed, strict=True)
        )
        where = f" WHERE {self.predicate([inner])}" if choice < 0.92 else ""
        return Source(f"(SELECT {listed} FROM {inner.text}{where}) {alias}", alias, renamed)

    # -- conditions

    def predicate(self, scope: Sequence[Source]) -> str:
        """A condition on one of the sources; now and then one that null fulfils."""
        source = self.rng.choice(scope)
        keys = [path for path in source.paths() if path.names[-1] == "k"]
        if keys and self.rng.random() < 0.35:  # which leaves few files, and few keys for its partners
            path = self.rng.choice(keys)
            return f"{path.text} = {self.value(path)}"
        maker = Predicates(self.rng, source.columns, qualifier=source.alias, lenient=self.lenient)
        made = maker.make(self.rng.choice((0, 0, 1))).sql
        return self.of_null(source, made) if self.rng.random() < 0.3 else f"({made})"

    def of_null(self, source: Source, made: str) -> str:
        """A condition that is true where the columns of a source are all null."""
        path = self.rng.choice(source.paths())
        name, value = path.text, self.value(path)
        forms = (
            f"{name} IS NULL",
            f"{name} IS NULL",
            f"{name} <=> NULL",
            f"{name} IS DISTINCT FROM {value}",
            f"NOT ({name} <=> {value})",
            f"coalesce({name}, {value}) = {value}",
            f"coalesce({made}, TRUE)",
            f"({made}) IS NOT TRUE",
            f"({made}) IS NULL",
            f"({made} OR {name} IS NULL)",
            f"NOT coalesce({made}, FALSE)",
            f"CASE WHEN {made} THEN FALSE ELSE TRUE END",
            f"if({name} IS NULL, TRUE, {made})",
        )
        return self.rng.choice(forms)

    def value(self, path: Path) -> str:
        return exactly(path.column.kind, self.rng.choice(path.column.values))

    def key(self, left: Sequence[Source], right: Source) -> str | None:
        """An equality between a column of one of the sources and one of another."""
        pairs = [
            (one, two)
            for source in left
            for one in source.paths()
            for two in right.paths()
            if _comparable(one, two)
        ]
        if not pairs:
            return None
        keys = [(one, two) for one, two in pairs if one.names[-1] == "k" and two.names[-1] == "k"]
        one, two = self.rng.choice(keys if keys and self.rng.random() < 0.85 else pairs)
        one, two = (one, two) if self.rng.random() < 0.5 else (two, one)
        return f"{one.text} {self.rng.choice(('=', '=', '=', '=', '<=>'))} {two.text}"

    def on(self, left: Sequence[Source], right: Source) -> str:
        key = self.key(left, right)
        parts = [] if key is None else [key]
        if self.rng.random() < 0.5:
            parts.append(self.predicate([right]))
        if self.rng.random() < 0.4:
            parts.append(self.predicate(left))
        if self.rng.random() < 0.25:
            either = self.rng.choice([*left, right])
            parts.append(self.of_null(either, self.predicate([either])))
        self.rng.shuffle(parts)
        return (" AND " if self.rng.random() < 0.9 else " OR ").join(parts) or "TRUE"

    def joined(self) -> tuple[str, list[Source]]:
        """Two or three sources joined in some way, and those whose columns can be asked for."""
        rng = self.rng
        first = self.source()
        text, scope = first.text, [first]
        for _ in range(rng.choice((1, 1, 2))):
            right, word = self.source(), rng.choice((*_JOINS, "CROSS JOIN", ","))
            if word == "," and " JOIN " in text:
                word = "CROSS JOIN"
            if word in ("CROSS JOIN", ","):
                text += f"{'' if word == ',' else ' '}{word} {right.text}"
            elif rng.random() < 0.12 and word != "CROSS JOIN" and _has_key(scope, right):
                text += f" {word} {right.text} USING (k)"
            else:
                text += f" {word} {right.text} ON {self.on(scope, right)}"
            scope = scope if word in _ONE_SIDED else [*scope, right]
        return text, scope

    # -- results

    def outputs(self, scope: Sequence[Source], count: int = 0) -> list[Path]:
        """Some columns, of which USING leaves no doubt about the key."""
        found = [path for source in scope for path in source.paths()]
        return self.rng.sample(found, min(count or self.rng.randrange(1, 4), len(found)))

    def listed(self, chosen: Sequence[Path]) -> str:
        return ", ".join(f"{path.text} AS o{number}" for number, path in enumerate(chosen))

    def where(self, scope: Sequence[Source], most: int = 2) -> str:
        conditions = [self.predicate(scope) for _ in range(self.rng.randrange(most + 1))]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _has_key(scope: Sequence[Source], right: Source) -> bool:
    """Whether `k` is there once on either side."""
    having = [source for source in scope if any(column.name == "k" for column in source.columns)]
    return len(having) == 1 and any(column.name == "k" for column in right.columns)


def _comparable(one: Path, two: Path) -> bool:
    kinds = {one.column.kind, two.column.kind}
    return len(kinds) == 1 or kinds <= _WHOLE
