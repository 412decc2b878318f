"""Iceberg's planner of rewrites, from metadata alone: which files it would take, in which groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GROUP_BYTES = 100 << 30


@dataclass(frozen=True, slots=True)
class PackingSizes:
    """Which files are of the right size, and how many of the others are worth a rewrite."""

    target: int
    small: int
    large: int
    min_files: int

    def options(self) -> Mapping[str, str]:
        """The same, as options of Iceberg's procedures."""
        return {
            "target-file-size-bytes": str(self.target),
            "min-file-size-bytes": str(self.small),
            "max-file-size-bytes": str(self.large),
            "min-input-files": str(self.min_files),
        }


def chosen(
    sizes: NDArray[np.int64],
    groups: NDArray[np.int64],
    wanted: PackingSizes,
    forced: NDArray[np.bool_] | None = None,
    *,
    all_files: bool = False,
) -> NDArray[np.int64]:
    """Return the numbers of the files that would be rewritten, group by group.

    *groups* numbers each file's partition; *forced* are files that are rewritten regardless of size.
    """
    if all_files:
        return np.argsort(groups, kind="stable")
    forced = np.zeros(len(sizes), bool) if forced is None else forced
    candidates = np.flatnonzero((sizes < wanted.small) | (sizes > wanted.large) | forced)
    order = candidates[np.argsort(groups[candidates], kind="stable")]
    taken = [part for part in _bins(order, sizes, groups) if _worth_it(part, sizes, forced, wanted)]
    return np.concatenate(taken) if taken else np.empty(0, np.int64)


def _bins(
    order: NDArray[np.int64], sizes: NDArray[np.int64], groups: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Cut each partition's files into bins; one is closed when the next file does not fit."""
    if not len(order):
        return
    for part in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if int(sizes[part].sum()) <= GROUP_BYTES:
            yield part
            continue
        start, load = 0, 0
        for place, size in enumerate(sizes[part].tolist()):
            if place > start and load + size > GROUP_BYTES:
                yield part[start:place]
                start, load = place, 0
            load += size
        yield part[start:]


def _worth_it(
    part: NDArray[np.int64], sizes: NDArray[np.int64], forced: NDArray[np.bool_], wanted: PackingSizes
) -> bool:
    total = int(sizes[part].sum())
    several = len(part) > 1
    return (
        (several and (len(part) >= wanted.min_files or total > wanted.target))
        or total > wanted.large
        or bool(forced[part].any())
    )
