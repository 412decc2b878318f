"""Which deletes are attached to which data file.

A file is identified together with its deletes: when its deletes change, it counts as changed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.tables.files import EQUALITY_DELETES, single_target


def attached_deletes(data: pa.Table, deletes: pa.Table, unpartitioned: frozenset[int]) -> list[str]:
    """Return for each data file a digest of its deletes; "" for none.

    *unpartitioned* are the ids of the specs without fields, whose equality deletes apply to the whole table.
    """
    by_file = deletes_by_file(data, deletes, unpartitioned)
    return [_digest(by_file[index]) if index in by_file else "" for index in range(data.num_rows)]


def deletes_by_file(
    data: pa.Table, deletes: pa.Table, unpartitioned: frozenset[int]
) -> dict[int, list[Mapping[str, Any]]]:
    """Return the delete files that may apply to each data file, by its number, where there are any."""
    by_file: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    if deletes.num_rows == 0:
        return by_file
    paths: defaultdict[str, list[int]] = defaultdict(list)  # a file may be committed twice
    for index, path in enumerate(data["path"].to_pylist()):
        paths[path].append(index)
    sequence = data["sequence_number"].to_numpy()
    by_partition = _partitions(data)
    everything = np.arange(data.num_rows)
    for row in deletes.to_pylist():
        for index in _reach(row, paths, sequence, by_partition, everything, unpartitioned):
            by_file[index].append(row)
    return by_file


def _partitions(data: pa.Table) -> Mapping[tuple[int, str], NDArray[np.int64]]:
    groups: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for index, key in enumerate(zip(data["spec_id"].to_pylist(), data["partition"].to_pylist(), strict=True)):
        groups[key].append(index)
    return {key: np.array(indexes) for key, indexes in groups.items()}


def _reach(
    row: Mapping[str, object],
    paths: Mapping[str, Sequence[int]],
    sequence: NDArray[np.int64],
    by_partition: Mapping[tuple[int, str], NDArray[np.int64]],
    everything: NDArray[np.int64],
    unpartitioned: frozenset[int],
) -> list[int]:
    """The data files that a delete file may apply to, by the rules of the specification."""
    number = row["sequence_number"]
    assert isinstance(number, int)
    target = single_target(row)
    if target is not None:
        return [index for index in paths.get(str(target), ()) if sequence[index] <= number]
    everywhere = row["content"] == EQUALITY_DELETES and row["spec_id"] in unpartitioned
    none = np.empty(0, np.int64)
    candidates = everything if everywhere else by_partition.get((row["spec_id"], row["partition"]), none)  # type: ignore[arg-type]
    limit = number - 1 if row["content"] == EQUALITY_DELETES else number
    reached: list[int] = candidates[sequence[candidates] <= limit].tolist()
    return reached


_IDENTITY = ("path", "content_offset", "content_size", "size", "rows", "sequence_number", "added_snapshot_id")


def _digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """A hash of the identities of delete files."""
    names = sorted("\0".join(str(row[name]) for name in _IDENTITY) for row in rows)
    return hashlib.blake2b("\n".join(names).encode(), digest_size=12).hexdigest()
