"""How many rows of each file are deleted, as far as metadata shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rookery.estimate.axis import Floats
from rookery.estimate.known import KnownTable
from rookery.read.survivors import attached_deletes
from rookery.tables.files import EQUALITY_DELETES, single_target


@dataclass(frozen=True, slots=True, eq=False)
class DeletedRows:
    """Deleted rows of each file: about, at least, at most."""

    about: Floats
    least: Floats
    most: Floats
    by_equality: bool = False  # whether there are equality deletes, of which nothing is known


def deleted_rows(table: KnownTable) -> DeletedRows:
    """Return the deleted rows of the files that may match; of other files, none."""
    rows = table.rows
    about, least, most = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    numbers = table.pruning.numbers
    attached = attached_deletes(table.pruning, table.files.files.take(numbers)) if table.has_deletes else {}
    shared: defaultdict[str, list[int]] = defaultdict(list)
    counts: dict[str, int] = {}
    equality = False
    for place, deletes in attached.items():
        number = int(numbers[place])
        (about[number], least[number], most[number]), others = _own(deletes)
        for row in others:
            shared[_name(row)].append(number)
            counts[_name(row)] = int(row["rows"])
            by_equality = row["content"] == EQUALITY_DELETES  # a value of it may be in any number of rows
            most[number] += rows[number] if by_equality else int(row["rows"])
            equality |= by_equality
    for name, of in shared.items():  # a file of deletes of several data files: by the rows of each
        weights = rows[of]
        about[of] += min(counts[name], weights.sum()) * weights / max(weights.sum(), 1.0)
    about = np.minimum(about, rows)
    most = np.minimum(most, rows)
    return DeletedRows(np.clip(about, least, most), least, most, equality)


def _own(
    deletes: Sequence[Mapping[str, Any]],
) -> tuple[tuple[float, float, float], list[Mapping[str, Any]]]:
    """The positions that are deleted in one file alone (about, at least, at most), and the other deletes.

    A deletion vector replaces all delete files of positions. Positions of several files may be the same.
    """
    vectors = [row for row in deletes if row["format"] == "puffin" and row["content"] != EQUALITY_DELETES]
    equality = [row for row in deletes if row["content"] == EQUALITY_DELETES]
    if vectors:
        count = float(vectors[-1]["rows"])
        return (count, count, count), equality
    single = [row for row in deletes if row["content"] != EQUALITY_DELETES and single_target(row) is not None]
    others = [row for row in deletes if row["content"] != EQUALITY_DELETES and single_target(row) is None]
    sizes = [float(row["rows"]) for row in single]
    return (sum(sizes), max(sizes, default=0.0), sum(sizes)), [*others, *equality]


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['path']} {row['content_offset']}"
