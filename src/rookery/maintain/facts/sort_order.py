"""How well files follow the table's sort order, by their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.maintain.survey import Survey, partition_numbers
from rookery.model import Field
from rookery.model.type_names import base_type
from rookery.tables import Table
from rookery.tables.partitioning import SortField
from rookery.values.canonical import SUPPORTED


@dataclass(frozen=True, slots=True)
class SortStatus:
    """A declared order, and how files follow its first column: how many of a partition share a value.

    If files are sorted, one or two of them contain the first value of each; if not, most of them do.
    """

    order: str
    column: str | None  # None: the order cannot be determined from bounds
    depth: float | None  # mean, over the files of which bounds are known
    depth_most: int | None
    files: int  # of which bounds are known


def sort_status(survey: Survey) -> SortStatus | None:
    """Return how the table's files follow its order; None where none is declared."""
    order = survey.table.sort_order
    if not order:
        return None
    leading = order[0]
    description = order_text(survey.table, order)
    fields = [field for field in survey.table.fields() if field.id == leading.source_id]
    if not fields or not leading.transform.kind.keeps_order or base_type(fields[0].type) not in SUPPORTED:
        return SortStatus(order=description, column=None, depth=None, depth_most=None, files=0)
    depths = overlap_depths(survey, fields[0])
    if not len(depths):
        return SortStatus(order=description, column=fields[0].name, depth=None, depth_most=None, files=0)
    return SortStatus(
        order=description,
        column=fields[0].name,
        depth=float(depths.mean()),
        depth_most=int(depths.max()),
        files=len(depths),
    )


def overlap_depths(survey: Survey, field: Field) -> NDArray[np.int64]:
    """Return for each file of known bounds how many of its partition hold the value that it begins with."""
    groups, lower, upper = spans(survey, field)
    if not len(groups):
        return groups
    width = int(upper.max()) + 1
    starts, ends = groups * width + lower, groups * width + upper
    begun = np.searchsorted(np.sort(starts), starts, "right")
    over = np.searchsorted(np.sort(ends), starts, "left")
    return np.asarray(begun - over, np.int64)


def spans(survey: Survey, field: Field) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return, of the files whose bounds are known, their partitions by number, and both bounds by rank."""
    none = np.empty(0, np.int64)
    if survey.fileset is None:
        return none, none, none
    bounds = survey.fileset.bounds(field)
    known = np.asarray(pc.and_(bounds.lower.is_valid(), bounds.upper.is_valid()).to_numpy(False), bool)
    if not known.any():
        return none, none, none
    chosen = pa.array(known)
    both = pa.concat_arrays([bounds.lower.filter(chosen), bounds.upper.filter(chosen)])
    ranks = pc.rank(both, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    count = int(known.sum())
    return partition_codes(survey)[known], ranks[:count], ranks[count:]


def partition_codes(survey: Survey) -> NDArray[np.int64]:
    """Return a number for each file that is the same for files of one partition; no file is omitted."""
    codes: NDArray[np.int64] = np.unique(partition_numbers(survey.files), return_inverse=True)[1]
    return codes.reshape(-1).astype(np.int64)


def order_text(table: Table, order: Sequence[SortField]) -> str:
    """Write an order as SQL does."""
    names = {field.id: field.name for field in table.fields()}
    return ", ".join(_sorted_by(field, names.get(field.source_id)) for field in order)


def _sorted_by(field: SortField, name: str | None) -> str:
    column = name or f"field {field.source_id}"
    transform = str(field.transform)
    term = column if transform == "identity" else f"{transform}({column})"
    return f"{term} {field.direction} {field.nulls}"
