"""What a valid policy file names that is not there: tables of a catalog, and columns of its tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rookery.maintain.policies.choosing import Chosen, PolicySet, Selector, SelectorKind
from rookery.maintain.policies.policy import Policy
from rookery.model import Field, RookeryError, TableName, UsageError, column_named, counted, no_column
from rookery.tables import Table
from rookery.tables.config import configured

OpenTable = Callable[[TableName], Table]

_OF_COLUMNS = ("indexes", "compaction.columns", "statistics.columns")


@dataclass(frozen=True, slots=True)
class PolicyWarning:
    """A part of a policy file that has no effect; without a line, of a table as a whole."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


def unmatched(
    policies: PolicySet, catalog: str, names: Sequence[TableName], open_table: OpenTable
) -> list[PolicyWarning]:
    """Return warnings of rules and columns, in the order of the file; *names* are the catalog's tables."""
    found = {*_without_tables(policies, catalog, names), *_without_columns(policies, names, open_table)}
    return sorted(found, key=lambda each: (each.line or 0, each.message))


def _without_tables(policies: PolicySet, catalog: str, names: Sequence[TableName]) -> Iterator[PolicyWarning]:
    others = {name for name in configured() if name.lower() != catalog.lower()}
    for rule in policies.rules:
        selector = rule.selector
        if selector is None or _catalog_of(selector) in others:
            continue
        if all(rule.rank(name) is None for name in names):
            yield PolicyWarning(policies.file or "", rule.line, f"{selector} matches no table of {catalog}")


def _catalog_of(selector: Selector) -> str:
    """The first part of the names that a rule selects, which may be a catalog."""
    first = selector.parts[0]
    return first.partition(".")[0] if selector.kind is SelectorKind.TABLES else first


def _without_columns(
    policies: PolicySet, names: Sequence[TableName], open_table: OpenTable
) -> Iterator[PolicyWarning]:
    """Yield a warning for each column that a setting names, with the tables that do not have it."""
    naming = [rule for rule in policies.rules if any(key in rule.settings for key in _OF_COLUMNS)]
    lacking: defaultdict[tuple[str, int | None, str], list[TableName]] = defaultdict(list)
    for name in names:
        if all(rule.rank(name) is None for rule in naming):
            continue
        try:
            table = open_table(name)
            chosen = policies.policy_of(name, table.properties)
        except RookeryError as error:  # its properties contradict the file, or it cannot be loaded
            yield PolicyWarning(policies.file or "", None, error.message)
            continue
        for line, what in _lacking(chosen, table.fields()):
            lacking[policies.file or "", line, what].append(name)
    for (file, line, what), tables in lacking.items():
        others = f" and in {counted(len(tables) - 1, 'other table')}" if len(tables) > 1 else ""
        yield PolicyWarning(file, line, f"{what} in {tables[0]}{others}")


def _lacking(chosen: Chosen, fields: Sequence[Field]) -> Iterator[tuple[int | None, str]]:
    for key, columns in _columns_of(chosen.policy).items():
        source = chosen.sources[key]
        if source.file is None:  # a property of the table
            continue
        for column in columns:
            if not _is_column(fields, column, with_parents=key == "statistics.columns"):
                yield source.line, f"{key}: {no_column(fields, column).message}"


def _columns_of(policy: Policy) -> dict[str, tuple[str, ...]]:
    return {
        "indexes": tuple(index.column for index in policy.indexes),
        "compaction.columns": policy.compaction.columns,
        "statistics.columns": policy.statistics.columns,
    }


def _is_column(fields: Sequence[Field], column: str, *, with_parents: bool) -> bool:
    if with_parents and any(field.name.startswith(f"{column}.") for field in fields):
        return True
    try:
        column_named(fields, column)
    except UsageError:
        return False
    return True
