"""How many rows of a snapshot match a predicate, with bounds and with the conditions it rests on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rookery.estimate.axis import Floats
from rookery.estimate.combine import estimate_part
from rookery.estimate.conditions import Condition, Part
from rookery.estimate.deleted import DeletedRows, deleted_rows
from rookery.estimate.known import KnownTable
from rookery.estimate.proofs import Proved, index_counts, proved, with_cascade
from rookery.model import Certainty, Estimate, counted
from rookery.prune.cascade import Pruning


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The rows that match a predicate."""

    rows: Estimate
    proven: bool  # whether low and high are proved; else they are likely, by sketches
    by_file: Floats  # about, of each file
    least: Floats  # proved, of each file
    most: Floats
    table_rows: float  # of all files, without deleted ones as far as is known
    possible_rows: float  # of the files that may match, in the same way
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]
    known: KnownTable

    @property
    def selectivity(self) -> float:
        """The share of the table's rows that match."""
        return min(self.rows.value / self.table_rows, 1.0) if self.table_rows else 0.0


def select(pruning: Pruning) -> Selection:
    """Return the rows that match the predicate of a cascade that has run."""
    table = KnownTable(pruning)
    part = estimate_part(table, pruning.predicate)
    known = with_cascade(table, proved(table, pruning.predicate))
    deleted = deleted_rows(table)
    by_file = _limited(table, part, known)
    least = np.maximum(known.least - deleted.most, 0.0)
    most = np.minimum(known.most, table.rows - deleted.least)
    rows, proven = _total(table, part, Proved(least, most), deleted, by_file)
    alive = 1 - deleted.about / np.maximum(table.rows, 1.0)
    notes = [line.note for line in part.conditions if line.note]
    if deleted.by_equality:
        notes.append("how many rows equality deletes remove is not known")
    return Selection(
        rows=rows,
        proven=proven,
        by_file=by_file * alive,
        least=least,
        most=most,
        table_rows=float((table.rows - deleted.about).sum()),
        possible_rows=float((table.rows - deleted.about)[table.pruning.keep].sum()),
        conditions=part.conditions,
        notes=tuple(dict.fromkeys([*notes, *table.files.notes, *table.notes, *_staleness(table)])),
        known=table,
    )


def _limited(table: KnownTable, part: Part, known: Proved) -> Floats:
    """The expected rows of each file, where indexes have left some out or counted them."""
    rows = part.rows
    counts, exact = index_counts(table.pruning)
    rows = np.where(exact, counts, rows)
    return np.clip(rows, known.least, known.most)


def _total(
    table: KnownTable, part: Part, known: Proved, deleted: DeletedRows, by_file: Floats
) -> tuple[Estimate, bool]:
    low, high = float(known.least.sum()), float(known.most.sum())
    value = float((by_file * (1 - deleted.about / np.maximum(table.rows, 1.0))).sum())
    if low == high:
        return Estimate.exact(low), True
    likely_low = max(part.low - float(deleted.most.sum()), low)
    likely_high = min(part.high, high)
    if likely_low > likely_high:
        likely_low, likely_high = low, high
    narrowed = (likely_low, likely_high) != (low, high)
    proven = part.proven or not narrowed
    if proven and likely_low == likely_high:
        return Estimate.exact(likely_low), True
    value = min(max(value, likely_low), likely_high)
    return Estimate(value, likely_low, likely_high, Certainty.SKETCHED), proven


def _staleness(table: KnownTable) -> list[str]:
    files = table.files
    if files.state is None:
        return ["the table was never analyzed: only its metadata is used"]
    if files.fresh:
        return [f"{files.fresh:,} of {counted(len(files), 'file')} are newer than the statistics"]
    return []
