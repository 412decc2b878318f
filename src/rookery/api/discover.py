"""`discover`: keys, references and dependencies of the tables of a catalog, from their states alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rookery.api.discover_kinds import LEAST_CONFIDENCE, DiscoverKind
from rookery.api.discover_sheets import sheets_of
from rookery.api.lake import ALL, Lake
from rookery.discover import (
    Dependency,
    ForeignKey,
    NotCompared,
    SameValues,
    TableFacts,
    UniqueKey,
    dependencies,
    describe_table,
    foreign_keys,
    overlaps,
    same_values,
    unique_keys,
)
from rookery.io.redaction import one_line
from rookery.model import Report, Sheet, UsageError
from rookery.tables.java_errors import as_rookery

__all__ = ["DiscoverReport", "discover"]


@dataclass(frozen=True, slots=True)
class DiscoverReport(Report):
    """The findings. A kind that was not requested is None; one without findings is empty."""

    tables: tuple[str, ...]
    columns: int  # that were compared, column sets among them
    min_confidence: float
    foreign_keys: tuple[ForeignKey, ...] | None
    unique: tuple[UniqueKey, ...] | None
    dependencies: tuple[Dependency, ...] | None
    same_values: tuple[SameValues, ...] | None
    not_compared: tuple[NotCompared, ...] = ()

    def sheets(self) -> Sequence[Sheet]:
        """A table for each kind, and one for what was not compared."""
        return sheets_of(self)


def discover(
    lake: Lake,
    patterns: Sequence[str] = (ALL,),
    *,
    kinds: Collection[DiscoverKind | str] = (),
    min_confidence: float = LEAST_CONFIDENCE,
) -> DiscoverReport:
    """Return keys, references and dependencies of the tables that the patterns match.

    Only metadata, states and segments are read, and no Spark is started. *kinds* are all by default.
    """
    wanted = {_kind(kind) for kind in kinds} or set(DiscoverKind)
    if not 0 <= min_confidence <= 1:
        raise UsageError(
            f"{min_confidence:g} is not a confidence", hint="use a number from 0 to 1, such as 0.99"
        )
    names = dict.fromkeys(name for pattern in patterns or (ALL,) for name in lake.find(pattern))
    tables = []
    for name in names:
        try:
            tables.append(describe_table(*lake.open(name)))
        except Exception as error:  # one that is broken is not to hide the others
            if len(names) == 1:
                raise
            shown = ".".join(name.identifier)
            reason = one_line(str(as_rookery(error, f"the state of {name}")))
            tables.append(TableFacts(shown, not_compared=(NotCompared(shown, None, reason),)))
    return discovered(tables, wanted, min_confidence)


def discovered(tables: Iterable[TableFacts], kinds: Collection[DiscoverKind], least: float) -> DiscoverReport:
    """Compare the columns of tables."""
    tables = tuple(tables)
    columns = [column for table in tables for column in table.columns]
    is_compared = DiscoverKind.FOREIGN_KEY in kinds or DiscoverKind.SAME_VALUES in kinds
    compared = overlaps(columns) if is_compared else []
    return DiscoverReport(
        tables=tuple(table.table for table in tables),
        columns=len(columns),
        min_confidence=least,
        foreign_keys=tuple(foreign_keys(compared, least)) if DiscoverKind.FOREIGN_KEY in kinds else None,
        unique=tuple(unique_keys(columns, least)) if DiscoverKind.UNIQUE in kinds else None,
        dependencies=tuple(dependencies(columns, least)) if DiscoverKind.DEPENDENCY in kinds else None,
        same_values=tuple(same_values(compared, least)) if DiscoverKind.SAME_VALUES in kinds else None,
        not_compared=tuple(each for table in tables for each in table.not_compared),
    )


def _kind(text: DiscoverKind | str) -> DiscoverKind:
    try:
        return DiscoverKind(text)
    except ValueError as error:
        raise UsageError(f"'{text}' cannot be discovered", hint=f"use {', '.join(DiscoverKind)}") from error
