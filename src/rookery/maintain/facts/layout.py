"""The layout of a table: its files and their sizes, partitions, lists of files, snapshots and deletes."""

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

SMALL_SHARE, LARGE_SHARE = 0.75, 1.8  # of the target; Iceberg's own rewrite leaves sizes between them alone
DELETE_KINDS = ("deletion vectors", "position deletes", "equality deletes")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which sizes of data files are right, in bytes."""

    target: int
    small: int  # below it
    large: int  # above it


@dataclass(frozen=True, slots=True)
class DeleteStatus:
    """Deletes of one kind."""

    kind: str
    files: int
    bytes: int
    rows: int  # as their entries state; of equality deletes, the rows that they hold
    share: float  # of the rows of all data files


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a table."""

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
    skew: float  # bytes of the largest partition, divided by the mean
    crowded_files: int  # small ones in partitions that have enough of them to be worth rewriting
    delete_heavy_files: int  # files with more deleted rows than the policy allows
    data_manifests: int  # lists of files, by the name that reports have for them
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


def sizes_of(target_file_size: int, policy: Policy) -> Sizes:
    """Return the sizes that are right for a table, by its policy, or else by its own target."""
    target = policy.compaction.target_size or target_file_size
    small = policy.compaction.small_size
    return Sizes(target, int(target * SMALL_SHARE) if small is None else small, int(target * LARGE_SHARE))


def layout(survey: Survey, policy: Policy) -> Layout:
    """Return a table's layout, compared with its policy."""
    size, rows = survey.numbers("size"), survey.numbers("rows")
    right = sizes_of(survey.table.target_file_size, policy)
    small, large = size < right.small, size > right.large
    codes = partition_codes(survey)
    counts, weights = np.bincount(codes), np.bincount(codes, size)
    small_counts = np.bincount(codes[small], minlength=len(counts))
    crowded = small_counts[small_counts >= max(policy.compaction.min_files, 2)]
    lengths = np.array([each.size for each in survey.file_lists], np.int64)
    times = [snapshot.timestamp_ms for snapshot in survey.table.snapshots.values()]
    return Layout(
        files=len(size),
        bytes=int(size.sum()),
        rows=int(rows.sum()),
        target_size=right.target,
        small_files=int(small.sum()),
        right_files=int((~small & ~large).sum()),
        large_files=int(large.sum()),
        partitions=len(counts),
        files_per_partition=float(counts.mean()) if len(counts) else 0.0,
        files_in_largest=int(counts.max()) if len(counts) else 0,
        skew=float(weights.max() / weights.mean()) if len(weights) and weights.sum() else 1.0,
        crowded_files=int(crowded.sum()),
        delete_heavy_files=int((deleted_share(survey) >= policy.compaction.delete_ratio).sum()),
        data_manifests=sum(each.is_data for each in survey.file_lists),
        delete_manifests=sum(not each.is_data for each in survey.file_lists),
        manifest_bytes=int(lengths.sum()),
        small_manifests=int((lengths < survey.table.target_list_size / 2).sum()),
        snapshots=len(times),
        branches=len(survey.table.branches),
        tags=len(survey.table.tags),
        oldest_ms=min(times, default=None),
        newest_ms=survey.snapshot.timestamp_ms if survey.snapshot is not None else None,
        deletes=_deletes(survey, int(rows.sum())),
        dangling_deletes=survey.dangling.num_rows,
        sort=sort_status(survey),
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
    """Whether a delete file states that it applies to one data file only."""
    return delete["content"] != EQUALITY_DELETES and single_target(delete) is not None


def _deletes(survey: Survey, rows: int) -> tuple[DeleteStatus, ...]:
    delete_files = survey.deletes
    if not delete_files.num_rows:
        return ()
    contents = delete_files["content"].to_numpy()
    puffin = np.array([name == PUFFIN for name in delete_files["format"].to_pylist()])
    sizes = np.where(
        puffin, delete_files["content_size"].fill_null(0).to_numpy(), delete_files["size"].to_numpy()
    )
    kinds = np.where(contents == EQUALITY_DELETES, 2, np.where(puffin, 0, 1))
    counts = delete_files["rows"].to_numpy()
    return tuple(
        DeleteStatus(
            kind=name,
            files=int((kinds == number).sum()),
            bytes=int(sizes[kinds == number].sum()),
            rows=int(counts[kinds == number].sum()),
            share=float(counts[kinds == number].sum() / rows) if rows else 0.0,
        )
        for number, name in enumerate(DELETE_KINDS)
        if (kinds == number).any()
    )
