"""The plan: which files are read for which columns. Pure; no Spark, no data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.collect.readable import has_other_text, skipped_files
from rookery.indexes import IndexKind
from rookery.model import Field
from rookery.sidecar import Index, State
from rookery.sketch import MAX_FILES
from rookery.tables.column_mapping import BY_FIELD_ID, ColumnMapping

# A core has one task, as starting one costs tens of milliseconds, but up to four where they are long; not
# more, as each sends its results for every column.
LONG_TASK_BYTES = 256 << 20
TASKS_PER_CORE = 4
SPLIT_BYTES = 64 << 20  # smaller pieces of a file are not worth reading its footer again


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """An index to build, its column and its kind; executors are sent the latter, and look up no name."""

    index: Index
    field: Field
    kind: IndexKind[Any]


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to read."""

    ordinal: int
    path: str
    size: int
    rows: int
    part: int = 0  # of a large file that several tasks share, the row groups of this remainder
    parts: int = 1
    only_indexes: bool = False  # its distinct values are counted by the engine's own reader
    mapping: ColumnMapping = BY_FIELD_ID


@dataclass(frozen=True, slots=True)
class Group:
    """Files that will share a segment, and the columns to collect of them."""

    number: int
    files: pa.Table
    fields: tuple[Field, ...]
    indexes: tuple[IndexColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Files of one group that are read by one process."""

    group: int
    group_rows: tuple[int, ...]  # of every file of the group, by ordinal
    files: tuple[FileTask, ...]
    fields: tuple[Field, ...]
    indexes: tuple[IndexColumn, ...] = ()

    @property
    def group_size(self) -> int:
        """How many files the group has."""
        return len(self.group_rows)


def coverage(keys: pa.Array, state: State | None, wanted: Field | Index | None = None) -> NDArray[np.bool_]:
    """Return which of the files *state* describes: for a column, for an index, or in any way."""
    if state is None or not len(keys):
        return np.zeros(len(keys), bool)
    known = state.files
    if wanted is not None:
        having = [
            number
            for number, entry in enumerate(state.header.segments)
            if (wanted in entry.indexes if isinstance(wanted, Index) else entry.describes(wanted))
        ]
        known = known.filter(pc.is_in(known["segment"], pa.array(having, pa.int32())))
    is_known: NDArray[np.bool_] = pc.is_in(keys, value_set=known["key"].combine_chunks()).to_numpy(False)
    return is_known


def groups(
    files: pa.Table,
    keys: pa.Array,
    fields: Sequence[Field],
    indexes: Sequence[IndexColumn],
    state: State | None,
    unreadable: frozenset[int] = frozenset(),
) -> list[Group]:
    """Return the groups to read: files that lack the same columns and indexes together.

    *unreadable* are columns that Spark cannot read: in some files no reader can.
    """
    lacking = np.zeros((files.num_rows, len(fields) + len(indexes)), bool)
    for column, field in enumerate(fields):
        usable = state is not None and _usable(state, field)
        lacking[:, column] = ~coverage(keys, state, field) if usable else True
        lacking[skipped_files(files, field, unreadable), column] = False
    for column, wanted in enumerate(indexes, len(fields)):
        lacking[:, column] = ~coverage(keys, state, wanted.index)
    chosen_groups: list[Group] = []
    patterns, inverse = np.unique(lacking, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if not pattern.any():
            continue
        columns = tuple(field for field, needed in zip(fields, pattern[: len(fields)], strict=True) if needed)
        missing = tuple(
            index for index, needed in zip(indexes, pattern[len(fields) :], strict=True) if needed
        )
        rows = np.flatnonzero(inverse.reshape(-1) == number)
        counts = files["rows"].to_numpy()[rows]
        for start, end in _cuts(counts, missing):
            chosen = files.take(pa.array(rows[start:end]))
            chosen_groups.append(Group(len(chosen_groups), chosen, columns, missing))
    return chosen_groups


def _cuts(rows: NDArray[np.int64], indexes: Sequence[IndexColumn]) -> Iterator[tuple[int, int]]:
    """Cut files into groups: at most 1,024, and no more than one index can hold."""
    weights = np.zeros(len(rows))
    for wanted in indexes:
        weights = np.maximum(weights, wanted.kind.weights(rows))
    start, load = 0, 0.0
    for place, weight in enumerate(weights.tolist()):
        if place > start and (load + weight > 1 or place - start == MAX_FILES):
            yield start, place
            start, load = place, 0.0
        load += weight
    if start < len(rows):
        yield start, len(rows)


def _usable(state: State, field: Field) -> bool:
    """A column whose type was promoted has other bytes now, so its old hashes are of no use."""
    return state.header.types.get(field.id, field.type) == field.type


def tasks(
    planned: Sequence[Group],
    parallelism: int,
    skip: Mapping[int, Sequence[int]],
    mapping: Callable[[str], ColumnMapping] = lambda path: BY_FIELD_ID,
) -> list[Task]:
    """Spread the groups' files over tasks of about equal bytes; a task stays within a group.

    *skip* are the ordinals, by group, of files whose values are read in another way; those of them that are
    Parquet are read for indexes alone, which describe all that is in a file, deleted or not. *mapping* states
    how the columns of a file are found.
    """
    total = sum(int(pc.sum(group.files["size"]).as_py()) for group in planned) or 1
    share = max(min(total // parallelism, LONG_TASK_BYTES), total // (parallelism * TASKS_PER_CORE), 1)
    result: list[Task] = []
    for group in planned:
        pieces = _pieces(group, share, set(skip.get(group.number, ())), mapping)
        if not pieces:
            continue
        size = sum(piece.size // piece.parts for piece in pieces)
        bins: list[list[FileTask]] = [[] for _ in range(min(max(round(size / share), 1), len(pieces)))]
        loads = np.zeros(len(bins), np.int64)
        for piece in pieces:  # the largest first, each to the lightest
            lightest = int(loads.argmin())
            loads[lightest] += piece.size // piece.parts
            bins[lightest].append(piece)
        rows = tuple(group.files["rows"].to_pylist())
        result += [
            Task(
                group=group.number,
                group_rows=rows,
                files=tuple(files),
                fields=group.fields,
                indexes=group.indexes,
            )
            for files in bins
            if files
        ]
    return result


def _pieces(
    group: Group, share: int, passed_over: set[int], mapping: Callable[[str], ColumnMapping]
) -> list[FileTask]:
    """The files to read, the largest first; one that exceeds a task's share is split into several parts."""
    paths, sizes = group.files["path"].to_pylist(), group.files["size"].to_numpy()
    rows, formats = group.files["rows"].to_pylist(), group.files["format"].to_pylist()
    other_text = has_other_text(group.files)
    pieces: list[FileTask] = []
    for ordinal in np.argsort(-sizes, kind="stable").tolist():
        only_indexes = ordinal in passed_over
        if only_indexes and (not group.indexes or formats[ordinal] != "parquet" or other_text[ordinal]):
            continue
        path, size = paths[ordinal], int(sizes[ordinal])
        parts = max(size // max(share, SPLIT_BYTES), 1)
        pieces += [
            FileTask(
                ordinal=ordinal,
                path=path,
                size=size,
                rows=rows[ordinal],
                part=part,
                parts=parts,
                only_indexes=only_indexes,
                mapping=mapping(path),
            )
            for part in range(parts)
        ]
    return pieces
