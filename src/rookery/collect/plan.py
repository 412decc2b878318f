"""The plan: which files are read for which columns. Pure; no Spark, no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Field
from rookery.sketch import MAX_FILES
from rookery.store import State

# A core has one task, as starting one costs tens of milliseconds, but up to four where they are long; not
# more, as each sends what it found of every column.
LONG_TASK_BYTES = 256 << 20
TASKS_PER_CORE = 4
SPLIT_BYTES = 64 << 20  # smaller pieces of a file are not worth reading its footer again


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to read."""

    ordinal: int
    path: str
    size: int
    part: int = 0  # of a large file that several tasks share, the row groups of this remainder
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """Files that will share a segment, and the columns to collect of them."""

    number: int
    files: pa.Table
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """Files of one group that are read by one process."""

    group: int
    group_size: int
    files: tuple[FileTask, ...]
    fields: tuple[Field, ...]


def coverage(keys: pa.Array, state: State | None, column: Field | None = None) -> NDArray[np.bool_]:
    """Return which of the files are described by *state*, for one column or at all."""
    if state is None or not len(keys):
        return np.zeros(len(keys), bool)
    known = state.files
    if column is not None:
        having = [number for number, entry in enumerate(state.index.segments) if entry.describes(column)]
        known = known.filter(pc.is_in(known["segment"], pa.array(having, pa.int32())))
    found: NDArray[np.bool_] = pc.is_in(keys, value_set=known["key"].combine_chunks()).to_numpy(False)
    return found


def groups(files: pa.Table, keys: pa.Array, fields: Sequence[Field], state: State | None) -> list[Group]:
    """Return the groups to read: files that lack the same columns together, at most 1,024 a group."""
    lacking = np.zeros((files.num_rows, len(fields)), bool)
    for column, field in enumerate(fields):
        usable = state is not None and _usable(state, field)
        lacking[:, column] = ~coverage(keys, state, field) if usable else True
    found: list[Group] = []
    patterns, inverse = np.unique(lacking, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if not pattern.any():
            continue
        wanted = tuple(field for field, needed in zip(fields, pattern, strict=True) if needed)
        rows = np.flatnonzero(inverse.reshape(-1) == number)
        for start in range(0, len(rows), MAX_FILES):
            found.append(Group(len(found), files.take(pa.array(rows[start : start + MAX_FILES])), wanted))
    return found


def _usable(state: State, field: Field) -> bool:
    """A column whose type was promoted has other bytes now, so its old hashes are of no use."""
    return state.index.types.get(field.id, field.type) == field.type


def tasks(found: Sequence[Group], parallelism: int, skip: Mapping[int, Sequence[int]]) -> list[Task]:
    """Spread the groups' files over tasks of about equal bytes; a task stays within a group.

    *skip* are the ordinals, by group, of files that are read in another way.
    """
    total = sum(int(pc.sum(group.files["size"]).as_py()) for group in found) or 1
    share = max(min(total // parallelism, LONG_TASK_BYTES), total // (parallelism * TASKS_PER_CORE), 1)
    result: list[Task] = []
    for group in found:
        pieces = _pieces(group, share, set(skip.get(group.number, ())))
        if not pieces:
            continue
        size = sum(piece.size // piece.parts for piece in pieces)
        bins: list[list[FileTask]] = [[] for _ in range(min(max(round(size / share), 1), len(pieces)))]
        loads = np.zeros(len(bins), np.int64)
        for piece in pieces:  # the largest first, each to the lightest
            lightest = int(loads.argmin())
            loads[lightest] += piece.size // piece.parts
            bins[lightest].append(piece)
        result += [Task(group.number, group.files.num_rows, tuple(files), group.fields) for files in bins]
    return result


def _pieces(group: Group, share: int, passed_over: set[int]) -> list[FileTask]:
    """The files to read, the largest first; one that exceeds a task's share comes in several pieces."""
    paths, sizes = group.files["path"].to_pylist(), group.files["size"].to_numpy()
    pieces: list[FileTask] = []
    for ordinal in np.argsort(-sizes, kind="stable").tolist():
        if ordinal not in passed_over:
            size = int(sizes[ordinal])
            parts = max(size // max(share, SPLIT_BYTES), 1)
            pieces += [FileTask(ordinal, paths[ordinal], size, part, parts) for part in range(parts)]
    return pieces
