"""Conditions joined by AND and OR, file by file, so that files which cannot match count nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rookery.estimate.axis import Floats
from rookery.estimate.conditions import OPAQUE_SHARE, Condition, Part, part_of, single_column
from rookery.estimate.correlation import joint_rows
from rookery.estimate.known import KnownTable
from rookery.estimate.proofs import index_counts, proved
from rookery.estimate.regions import region_of
from rookery.indexes import KINDS
from rookery.model import Always, And, Never, Opaque, Or, Predicate, all_of, any_of, leaves_of, opaque_parts
from rookery.prune.cascade import Pruning

_COUNTED = "counted by indexes"  # the key of a group; other groups have a column id or a part


def estimate_part(table: KnownTable, predicate: Predicate) -> Part:
    """Return the estimate of a predicate, or of a part of it."""
    if isinstance(predicate, Always | Never):
        rows = table.rows if isinstance(predicate, Always) else np.zeros(len(table.rows))
        return replace(part_of(table, predicate, rows, ""), conditions=())
    if isinstance(predicate, Opaque):
        note = f"not understood ({predicate.reason}): assumed to match {OPAQUE_SHARE:.0%} of the rows"
        rows = table.rows * OPAQUE_SHARE
        return part_of(table, predicate, rows, "default", note, text=predicate.text)
    if (counted := _by_counts(table, predicate)) is not None:
        return counted
    if len({leaf.field.id for leaf in leaves_of(predicate)}) == 1 and not any(opaque_parts(predicate)):
        return single_column(table, predicate)
    assert isinstance(predicate, And | Or)
    grouped = _grouped(table, predicate)
    parts = [estimate_part(table, part) for part in grouped]
    return _all(table, predicate, parts) if isinstance(predicate, And) else _any(table, predicate, parts)


def _grouped(table: KnownTable, predicate: And | Or) -> list[Predicate]:
    """The parts, those on one column together, and those that indexes count together."""
    join = all_of if isinstance(predicate, And) else any_of
    indexed = _indexed(table)
    groups: dict[object, list[Predicate]] = {}
    for part in predicate.parts:
        columns = {leaf.field.id for leaf in leaves_of(part)}
        if any(opaque_parts(part)) or not columns:
            key: object = part
        elif columns <= indexed:
            key = _COUNTED
        else:
            key = next(iter(columns)) if len(columns) == 1 else part
        groups.setdefault(key, []).append(part)
    if len(groups) == 1 and len(predicate.parts) > 1 and next(iter(groups)) == _COUNTED:
        groups = {part: [part] for part in predicate.parts}  # they were not usable together
    return [join(*parts) for parts in groups.values()]


def _indexed(table: KnownTable) -> frozenset[int]:
    """The columns that have an index which counts rows."""
    state = table.files.state
    indexes = () if state is None else state.header.indexes
    return frozenset(
        index.field_id for index in indexes if index.kind in KINDS and KINDS[index.kind].counts_rows
    )


def _by_counts(table: KnownTable, predicate: Predicate) -> Part | None:
    """The rows that indexes count; None if they do not cover every file that may match."""
    columns = {leaf.field.id for leaf in leaves_of(predicate)}
    if not columns or any(opaque_parts(predicate)) or not columns <= _indexed(table):
        return None
    pruning = table.pruning
    known = proved(table, predicate)
    view = Pruning(
        table=pruning.table,
        snapshot=pruning.snapshot,
        files=table.files,
        predicate=predicate,
        keep=known.most > 0,
        alone=pruning.alone,
    )
    for kind in KINDS.values():
        if kind.counts_rows:
            kind.prune(view)
    counts, exact = index_counts(view)
    decided = exact | (known.least == known.most)
    if not decided.all():
        return _partly_counted(table, predicate, counts, exact)
    part = _counted(table, predicate, np.where(exact, counts, known.most))
    total = float(np.where(exact & pruning.alone, counts, known.least).sum())
    return replace(part, low=max(part.low, total), high=min(part.high, max(total, part.low)))


def _counted(table: KnownTable, predicate: Predicate, rows: Floats) -> Part:
    region = region_of(predicate) if len({leaf.field.id for leaf in leaves_of(predicate)}) == 1 else None
    part = part_of(table, predicate, rows, "bitmap index")
    return replace(part, points=None if region is None else region.points)


def _partly_counted(
    table: KnownTable, predicate: Predicate, counts: NDArray[np.int64], covered: NDArray[np.bool_]
) -> Part | None:
    """Files that no index counts have the share of rows that the others have."""
    rows = float(table.rows[covered].sum())
    if rows < float(table.rows.sum()) / 2:
        return None
    share = float(counts[covered].sum()) / max(rows, 1.0)
    known = proved(table, predicate)
    guessed = np.where(known.most > 0, table.rows * share, 0.0)
    part = _counted(table, predicate, np.where(covered, counts, guessed))
    low = float(np.where(covered & table.pruning.alone, counts, known.least).sum())
    high = float(np.where(covered, counts, known.most).sum())
    return replace(part, low=max(part.low, low), high=min(part.high, high))


def _all(table: KnownTable, predicate: And, parts: Sequence[Part]) -> Part:
    rows, lines = joint_rows(table, parts)
    total = float(table.rows.sum())
    known = proved(table, predicate)
    low = max(sum(part.low for part in parts) - (len(parts) - 1) * total, float(known.least.sum()))
    high = min(*(part.high for part in parts), float(known.most.sum()))
    return _joined(predicate, np.clip(rows, known.least, known.most), low, high, parts, lines)


def _any(table: KnownTable, predicate: Or, parts: Sequence[Part]) -> Part:
    rows = np.maximum(table.rows, 1.0)
    none = np.prod([1 - part.rows / rows for part in parts], axis=0)
    known = proved(table, predicate)
    low = max(*(part.low for part in parts), float(known.least.sum()))
    high = min(sum(part.high for part in parts), float(known.most.sum()))
    return _joined(predicate, np.clip((1 - none) * table.rows, known.least, known.most), low, high, parts, ())


def _joined(
    predicate: Predicate,
    rows: Floats,
    low: float,
    high: float,
    parts: Sequence[Part],
    lines: Sequence[Condition],
) -> Part:
    conditions = (*(line for part in parts for line in part.conditions), *lines)
    return Part(
        predicate=predicate,
        rows=rows,
        low=low,
        high=max(high, low),
        proven=all(part.proven for part in parts),
        conditions=conditions,
    )
