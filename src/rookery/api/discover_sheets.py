"""The tables that `discover` prints, each line short enough for 80 columns as long as names are short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rookery.discover import Dependency, ForeignKey, Likely, NotCompared, SameValues, UniqueKey
from rookery.model import Certainty, Sheet, counted, percent, thousands

if TYPE_CHECKING:
    from rookery.api.discover import DiscoverReport

_MOST_SHOWN = 50  # lines of a sheet; programs read all from the JSON
_MOST_NAMED = 5  # columns in a line
_SAMPLED = "estimated from a sample: a few values may differ"
_DELETES = "a table has deleted rows: they are excluded from the values, but included in the number of rows"


def sheets_of(report: DiscoverReport) -> Sequence[Sheet]:
    """Return a sheet for each kind that was looked for."""
    sheets = [
        Sheet(f"{counted(report.columns, 'column')} of {counted(len(report.tables), 'table')} compared")
    ]
    if report.foreign_keys is not None:
        sheets.append(_foreign_keys(report.foreign_keys))
    if report.unique is not None:
        sheets.append(_unique(report.unique))
    if report.dependencies is not None:
        sheets.append(_dependencies(report.dependencies))
    if report.same_values is not None:
        sheets.append(_same_values(report.same_values))
    if report.not_compared:
        sheets.append(_not_compared(report.not_compared))
    return sheets


def _foreign_keys(keys: Sequence[ForeignKey]) -> Sheet:
    if not keys:
        return Sheet("foreign keys: none")
    shown = _best(keys)
    rows = tuple(
        (
            column_text(key.table, key.columns),
            column_text(key.parent_table, key.parent_columns),
            _share(key.containment, key.certainty),
            percent(key.coverage),
            _confidence(key.confidence),
            str(key.likely),
        )
        for key in shown[:_MOST_SHOWN]
    )
    notes = [
        *_hidden(len(keys) - len(rows), "foreign key"),
        *_marks(shown, any(key.deletes for key in shown)),
    ]
    header = ("foreign keys", "refer to", "contained", "covers", "confidence", "likely")
    return Sheet(title="", header=header, rows=rows, notes=tuple(notes), right=frozenset({2, 3, 4}))


def _best(keys: Sequence[ForeignKey]) -> list[ForeignKey]:
    """Of each column, those of high likelihood, or else the first one."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    best = []
    for key in keys:
        child = (key.table, key.columns)
        if key.likely is Likely.HIGH or child not in seen:
            best.append(key)
        seen.add(child)
    return best


def _unique(keys: Sequence[UniqueKey]) -> Sheet:
    if not keys:
        return Sheet("unique keys: none")
    rows = tuple(
        (
            column_text(key.table, key.columns),
            _about(thousands(key.distinct), key.certainty),
            thousands(key.rows),
            _confidence(key.confidence),
        )
        for key in keys[:_MOST_SHOWN]
    )
    notes = [*_hidden(len(keys) - len(rows), "unique key"), *_marks(keys, any(key.deletes for key in keys))]
    header = ("unique keys", "distinct", "rows not null", "confidence")
    return Sheet(title="", header=header, rows=rows, notes=tuple(notes), right=frozenset({1, 2, 3}))


def _dependencies(found: Sequence[Dependency]) -> Sheet:
    if not found:
        note = "of declared column sets: `rookery analyze TABLE --column-set a,b` declares one"
        return Sheet("dependencies: none", notes=(note,))
    rows = tuple(
        (
            column_text(each.table, each.columns),
            ", ".join(each.determines),
            _about(thousands(each.distinct), each.certainty),
            _about(thousands(each.distinct_together), each.certainty),
            _confidence(each.confidence),
        )
        for each in found[:_MOST_SHOWN]
    )
    notes = [*_hidden(len(found) - len(rows), "dependency", "dependencies"), *_marks(found)]
    header = ("dependencies", "determine", "distinct", "together", "confidence")
    return Sheet(title="", header=header, rows=rows, notes=tuple(notes), right=frozenset({2, 3, 4}))


def _same_values(pairs: Sequence[SameValues]) -> Sheet:
    if not pairs:
        return Sheet("same values: none")
    rows = tuple(
        (
            column_text(pair.table, pair.columns),
            column_text(pair.other_table, pair.other_columns),
            _share(pair.jaccard, pair.certainty),
            thousands(pair.distinct),
            _confidence(pair.confidence),
        )
        for pair in pairs[:_MOST_SHOWN]
    )
    notes = [*_hidden(len(pairs) - len(rows), "pair"), *_marks(pairs)]
    header = ("same values", "as", "in both", "distinct", "confidence")
    return Sheet(title="", header=header, rows=rows, notes=tuple(notes), right=frozenset({2, 3, 4}))


def _not_compared(left_out: Sequence[NotCompared]) -> Sheet:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in left_out:
        by_reason.setdefault((each.table, each.reason), []).extend([each.column] if each.column else [])
    rows = tuple((table, _named(names), reason) for (table, reason), names in by_reason.items())
    return Sheet("", ("not compared", "columns", "why"), rows)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "") if names else "all"


def column_text(table: str, columns: Sequence[str]) -> str:
    """Return a column or a column set with its table.

    >>> column_text("db.t", ("a",)), column_text("db.t", ("a", "b"))
    ('db.t.a', 'db.t.(a, b)')
    """
    return f"{table}.{columns[0]}" if len(columns) == 1 else f"{table}.({', '.join(columns)})"


def _confidence(confidence: float) -> str:
    """Rounded down, so that only what is proved is 1.

    >>> _confidence(1.0), _confidence(0.99999), _confidence(0.5)
    ('1', '0.9999', '0.5000')
    """
    return "1" if confidence >= 1 else f"{int(confidence * 10_000) / 10_000:.4f}"


def _about(text: str, certainty: Certainty) -> str:
    return f"~{text}" if certainty is Certainty.SKETCHED else text


def _share(share: float, certainty: Certainty) -> str:
    return _about(percent(share), certainty)


def _hidden(count: int, one: str, many: str | None = None) -> Iterator[str]:
    if count:
        left = counted(count, f"further {one}", many and f"further {many}")
        yield f"{left}, less likely, with --output json"


def _marks(
    found: Iterable[ForeignKey | UniqueKey | Dependency | SameValues], deletes: bool = False
) -> Iterator[str]:
    if any(each.certainty is Certainty.SKETCHED for each in found):
        yield f"~: {_SAMPLED}"
    if deletes:
        yield _DELETES
