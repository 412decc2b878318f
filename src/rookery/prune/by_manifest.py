"""The manifest list: between what the partitions of each manifest lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
    """Leave out the files of manifests in which nothing can match."""
    manifests = pruning.files.live.manifests
    keep = np.ones(len(manifests), bool)
    for spec_id, columns in useful_columns(pruning).items():
        mine = [number for number, found in enumerate(manifests) if found.spec_id == spec_id]

        def bounds(column: PartitionColumn, mine: list[int] = mine) -> Bounds:
            return _bounds(column, [manifests[number].partitions for number in mine])

        if mine:
            keep[mine] = test_partitions(pruning.predicate, columns, bounds, len(mine))
    fresh = len(manifests) - pruning.files.live.known
    note = f"{int(keep.sum()):,} of {len(manifests):,} manifests may match; {fresh:,} had to be decoded"
    return keep[pruning.files.manifests], note


def _bounds(column: PartitionColumn, summaries: Sequence[Sequence[FieldSummary]]) -> Bounds:
    """What the summaries of some manifests say of a partition field."""
    kind = column.field.type
    found = [parts[column.place] if column.place < len(parts) else None for parts in summaries]
    lower = pa.array([part.lower if part else None for part in found], pa.binary())
    upper = pa.array([part.upper if part else None for part in found], pa.binary())
    unknown = np.full(len(found), UNKNOWN, np.int64)
    nulls = np.array([UNKNOWN if part is None or part.contains_null else 0 for part in found], np.int64)
    nans = np.array(
        [0 if not is_float(kind) or (part and part.contains_nan is False) else UNKNOWN for part in found],
        np.int64,
    )
    if kind == "string" and column.transform.kind is not TransformKind.IDENTITY:
        lower, upper = proven_text(lower, upper, pa.array(np.zeros(len(found), bool)))
    elif kind == "uuid":
        lower, upper = proven_uuids(lower, upper, pc.equal(lower, upper))
    return Bounds(bound_from_bytes(kind, lower), bound_from_bytes(kind, upper), unknown, nulls, nans)
