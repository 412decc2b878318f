"""How a table lies: its files and their sizes, partitions, manifests, snapshots and deletes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rookery.maintain.facts.sort_order import SortStatus, partition_codes, sort_status
from rookery.maintain.policies.policy import Policy
from rookery.maintain.survey import PUFFIN, Survey
from rookery.tables.files import EQUALITY_DELETES, single_target

TARGET_SIZE_PROPERTY = "write.target-file-size-bytes"
TARGET_SIZE = 512 << 20
MANIFEST_SIZE_PROPERTY = "commit.manifest.target-size-bytes"
MANIFEST_SIZE = 8 << 20
SMALL_SHARE, LARGE_SHARE = 0.75, 1.8  # of the target: what Iceberg's own rewrite leaves alone lies between
DELETE_KINDS = ("deletion vectors", "position deletes", "equality deletes")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What sizes of data files are right, in bytes."""

    target: int
    small: int  # below it
    large: int  # above it


@dataclass(frozen=True, slots=True)
class DeleteStatus:
    """Deletes of one kind."""

    kind: str
    files: int
    bytes: int
    rows: int  # as their entries say; of equality deletes, the rows that they hold
    share: float  # of the rows of all data files


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table lies."""

    files: int
    bytes: int
    rows: int
    target_size: int
    small_files: int
    right_files: int
    large_files: int
    partitions: int
    files_per_partition: float
    files_in_largest: int
    skew: float  # bytes of the largest partition against the mean
    crowded_files: int  # small ones in partitions that have enough of them to be worth rewriting
    delete_heavy_files: int  # of which deletes hide more than the policy bears
    data_manifests: int
    delete_manifests: int
    manifest_bytes: int
    small_manifests: int
    snapshots: int
    branches: int
    tags: int
    oldest_ms: int | None
    newest_ms: int | None
    deletes: tuple[DeleteStatus, ...]
    dangling_deletes: int
    sort: SortStatus | None


def sizes_of(properties: Mapping[str, str], policy: Policy) -> Sizes:
    """Return the sizes that are right for a table, after its policy or else its own properties."""
    target = policy.compaction.target_size or number_of(properties, TARGET_SIZE_PROPERTY, TARGET_SIZE)
    small = policy.compaction.small_size
    return Sizes(target, int(target * SMALL_SHARE) if small is None else small, int(target * LARGE_SHARE))


def number_of(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return a table's property as a whole number; anything else is passed over."""
    stated = properties.get(key, "").strip()
    return int(stated) if stated.isascii() and stated.isdigit() else default


def layout(survey: Survey, policy: Policy) -> Layout:
    """Return how a table lies, held against what its policy wants."""
    properties = survey.table.properties
    size, rows = survey.numbers("size"), survey.numbers("rows")
    right = sizes_of(properties, policy)
    small, large = size < right.small, size > right.large
    codes = partition_codes(survey)
    counts, weights = np.bincount(codes), np.bincount(codes, size)
    small_counts = np.bincount(codes[small], minlength=len(counts))
    crowded = small_counts[small_counts >= max(policy.compaction.min_files, 2)]
    lengths = np.array([manifest.size for manifest in survey.manifests], np.int64)
    manifest_target = number_of(properties, MANIFEST_SIZE_PROPERTY, MANIFEST_SIZE)
    times = [snapshot.timestamp_ms for snapshot in survey.table.snapshots.values()]
    return Layout(
        len(size),
        int(size.sum()),
        int(rows.sum()),
        right.target,
        int(small.sum()),
        int((~small & ~large).sum()),
        int(large.sum()),
        len(counts),
        float(counts.mean()) if len(counts) else 0.0,
        int(counts.max()) if len(counts) else 0,
        float(weights.max() / weights.mean()) if len(weights) and weights.sum() else 1.0,
        int(crowded.sum()),
        int((deleted_share(survey) >= policy.compaction.delete_ratio).sum()),
        sum(manifest.is_data for manifest in survey.manifests),
        sum(not manifest.is_data for manifest in survey.manifests),
        int(lengths.sum()),
        int((lengths < manifest_target / 2).sum()),
        len(times),
        len(survey.table.branches),
        len(survey.table.tags),
        min(times, default=None),
        survey.snapshot.timestamp_ms if survey.snapshot is not None else None,
        _deletes(survey, int(rows.sum())),
        survey.dangling.num_rows,
        sort_status(survey),
    )


def deleted_share(survey: Survey) -> NDArray[np.float64]:
    """Return each file's share of rows that are deleted by deletes of that file alone, as Iceberg does."""
    rows = survey.numbers("rows")
    hidden = np.zeros(len(rows), np.int64)
    for number, deletes in survey.attached.items():
        hidden[number] = sum(row["rows"] for row in deletes if is_of_one_file(row))
    share: NDArray[np.float64] = np.minimum(hidden, rows) / np.maximum(rows, 1)
    return share


def is_of_one_file(delete: Mapping[str, Any]) -> bool:
    """Whether a delete file says itself that it is of one data file."""
    return delete["content"] != EQUALITY_DELETES and single_target(delete) is not None


def _deletes(survey: Survey, rows: int) -> tuple[DeleteStatus, ...]:
    found = survey.deletes
    if not found.num_rows:
        return ()
    contents = found["content"].to_numpy()
    puffin = np.array([name == PUFFIN for name in found["format"].to_pylist()])
    sizes = np.where(puffin, found["content_size"].fill_null(0).to_numpy(), found["size"].to_numpy())
    kinds = np.where(contents == EQUALITY_DELETES, 2, np.where(puffin, 0, 1))
    counts = found["rows"].to_numpy()
    return tuple(
        DeleteStatus(
            name,
            int((kinds == number).sum()),
            int(sizes[kinds == number].sum()),
            int(counts[kinds == number].sum()),
            float(counts[kinds == number].sum() / rows) if rows else 0.0,
        )
        for number, name in enumerate(DELETE_KINDS)
        if (kinds == number).any()
    )
