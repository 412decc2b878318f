"""Lists of files: bounds of the partitions of all files of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import counted
from rookery.model.text import proven_text
from rookery.model.uuids import proven_uuids
from rookery.prune.bounds import UNKNOWN, Bounds
from rookery.prune.by_partition import useful_columns
from rookery.prune.partitions import PartitionColumn, test_partitions
from rookery.tables.files import FieldSummary
from rookery.tables.partitioning import TransformKind
from rookery.values.canonical import bound_from_bytes, is_float

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Skip the files of lists in which nothing can match."""
    lists = pruning.files.live.lists
    keep = np.ones(len(lists), bool)
    for spec_id, columns in useful_columns(pruning).items():
        of_spec = [number for number, each in enumerate(lists) if each.spec_id == spec_id]

        def bounds(column: PartitionColumn, of_spec: list[int] = of_spec) -> Bounds:
            return _bounds(column, [lists[number].partitions for number in of_spec])

        if of_spec:
            keep[of_spec] = test_partitions(pruning.predicate, columns, bounds, len(of_spec))
    fresh = len(lists) - pruning.files.live.known
    note = f"{int(keep.sum()):,} of {counted(len(lists), 'manifest')} may match; {fresh:,} had to be decoded"
    return keep[pruning.files.lists], note


def _bounds(column: PartitionColumn, summaries: Sequence[Sequence[FieldSummary]]) -> Bounds:
    """The bounds of a partition field by the summaries of some lists."""
    kind = column.field.type
    fields = [parts[column.place] if column.place < len(parts) else None for parts in summaries]
    lower = pa.array([part.lower if part else None for part in fields], pa.binary())
    upper = pa.array([part.upper if part else None for part in fields], pa.binary())
    unknown = np.full(len(fields), UNKNOWN, np.int64)
    nulls = np.array([UNKNOWN if part is None or part.contains_null else 0 for part in fields], np.int64)
    nans = np.array(
        [0 if not is_float(kind) or (part and part.contains_nan is False) else UNKNOWN for part in fields],
        np.int64,
    )
    if kind == "string" and column.transform.kind is not TransformKind.IDENTITY:
        lower, upper = proven_text(lower, upper, pa.array(np.zeros(len(fields), bool)))
    elif kind == "uuid":
        lower, upper = proven_uuids(lower, upper, pc.equal(lower, upper))
    return Bounds(
        lower=bound_from_bytes(kind, lower),
        upper=bound_from_bytes(kind, upper),
        values=unknown,
        nulls=nulls,
        nans=nans,
    )
