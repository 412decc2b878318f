"""The columns by which a scan is worth pruning at run time, by the keys of a join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.indexes import kind_for
from rookery.model import Field, Snapshot
from rookery.prune.bounds import Bounds
from rookery.prune.fileset import FileSet

_LEAST_FILES = 4
_COVERED = 0.5  # of the files, by an index
_OVERLAP = 0.2  # a column is clustered if a file overlaps at most this share of the files


def runtime_columns(files: FileSet, snapshot: Snapshot, fields: Sequence[Field]) -> Iterator[int]:
    """Yield the ids of columns that an index serves, or that are clustered."""
    if files.state is None or len(files) < _LEAST_FILES:
        return
    for field in fields:
        if not field.nested and (_is_indexed(files, field) or _is_clustered(files, snapshot, field)):
            yield field.id


def _is_indexed(files: FileSet, field: Field) -> bool:
    assert files.state is not None
    return any(
        index.field_id == field.id
        and kind_for(index, field) is not None
        and files.covered(index).mean() >= _COVERED
        for index in files.state.header.indexes
    )


def _is_clustered(files: FileSet, snapshot: Snapshot, field: Field) -> bool:
    assert files.state is not None
    key = ("overlap", files.store.path(files.state.name), snapshot.id, field.id)
    overlap: float = files.store.cache.get(key, lambda: _overlap(files.bounds(field)), lambda _: 64)
    return overlap <= _OVERLAP


def _overlap(bounds: Bounds) -> float:
    """The share of files that a file overlaps on average, itself not counted; 1 if bounds are missing."""
    if bounds.lower.null_count or bounds.upper.null_count or len(bounds) < 2:
        return 1.0
    ranks = pc.rank(pa.concat_arrays([bounds.lower, bounds.upper]), tiebreaker="min").to_numpy()
    low, high = np.sort(ranks[: len(bounds)]), np.sort(ranks[len(bounds) :])
    begun = np.searchsorted(low, ranks[len(bounds) :], side="right")
    ended = np.searchsorted(high, ranks[: len(bounds)], side="left")
    return float((begun - ended - 1).mean() / (len(bounds) - 1))
