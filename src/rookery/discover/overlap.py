"""How many hashes any two of many columns have in common: one sort of all hashes, then a count of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rookery.discover.column import ColumnFacts

_MANY = 64  # columns that have a hash
_BLOCK = 4096  # hashes at a time


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Columns whose hashes are comparable, and matrices of counts with a row and a column for each.

    Of the columns i and j, `common[i, j]` hashes are in both; `sampled[i, j]` are those of i below the θ of
    both, which would be in j if their values are.
    """

    columns: tuple[ColumnFacts, ...]
    common: NDArray[np.int32]
    sampled: NDArray[np.int32]
    shares: NDArray[np.float64]  # θ of both


def overlaps(columns: Sequence[ColumnFacts]) -> list[Overlap]:
    """Compare all columns that have values, in groups of comparable ones."""
    groups: dict[tuple[str, ...], list[ColumnFacts]] = {}
    for column in columns:
        if len(column.sketch.hashes):
            groups.setdefault(column.comparable, []).append(column)
    return [_overlap(group) for group in groups.values() if len(group) > 1]


def _overlap(columns: Sequence[ColumnFacts]) -> Overlap:
    hashes = [column.sketch.hashes for column in columns]
    thetas = np.array([column.sketch.theta for column in columns], np.uint64)
    # All hashes of a column are below its θ, so those in both are below both.
    sampled = np.stack([np.searchsorted(each, thetas) for each in hashes]).astype(np.int32)
    shares = np.array([column.sketch.share for column in columns])
    common = _common(hashes)
    return Overlap(tuple(columns), common, sampled, np.minimum.outer(shares, shares))


def _common(hashes: Sequence[NDArray[np.uint64]]) -> NDArray[np.int32]:
    numbers = np.repeat(np.arange(len(hashes), dtype=np.int32), [len(each) for each in hashes])
    joined = np.concatenate(hashes)
    order = np.argsort(joined, kind="stable")  # by hash, then by the column's number
    joined, numbers = joined[order], numbers[order]
    starts = np.flatnonzero(np.concatenate([[True], joined[1:] != joined[:-1]]))
    lengths = np.diff(np.append(starts, len(joined)))
    counts = np.zeros((len(hashes), len(hashes)), np.int32)
    few = lengths <= _MANY
    _count_pairs(starts[few], lengths[few], numbers, counts)
    counts += np.triu(counts, 1).T
    return counts + _of_many(starts[~few], lengths[~few], numbers, len(hashes))


def _of_many(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], numbers: NDArray[np.int32], columns: int
) -> NDArray[np.int32]:
    """The counts of hashes that many columns have, by a product of matrices: pair by pair takes longer."""
    counts = np.zeros((columns, columns), np.int32)
    for first in range(0, len(starts), _BLOCK):
        block, sizes = starts[first : first + _BLOCK], lengths[first : first + _BLOCK]
        rows = np.repeat(np.arange(len(block)), sizes)
        places = np.repeat(block - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        having = np.zeros((len(block), columns), np.float32)  # exact for counts up to 2**24
        having[rows, numbers[places]] = 1
        counts += (having.T @ having).astype(np.int32)
    return counts


@njit(cache=True, nogil=True)
def _count_pairs(starts: np.ndarray, lengths: np.ndarray, numbers: np.ndarray, counts: np.ndarray) -> None:
    """Count each pair of columns that have a hash, the lower number first."""
    for place in range(len(starts)):
        start, end = starts[place], starts[place] + lengths[place]
        for first in range(start, end):
            row = counts[numbers[first]]
            for second in range(first, end):
                row[numbers[second]] += 1
