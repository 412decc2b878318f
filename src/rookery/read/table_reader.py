"""Reading a table with no Spark: the cascade, then the rows of the files that it leaves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from rookery.model import ALWAYS, Predicate, Snapshot, UsageError, column_named, opaque_parts
from rookery.model.schema import Column
from rookery.prune.by_bounds import sure_files
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.read.file import FileRead, ReadCosts, Request, count_file, read_file
from rookery.read.survivors import attached_deletes, survivors
from rookery.read.types import arrow_field
from rookery.sidecar import Store
from rookery.tables import Table
from rookery.values.row_filter import not_exact

_WORKERS = 8
_AHEAD = 2 * _WORKERS  # files that are read before their rows are taken
_SHOWN = 8  # columns that a hint lists
_FEW = 2  # files that are read one after the other: threads would take longer to start
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result:
    """Rows, and how they were found."""

    rows: pa.Table
    pruning: Pruning
    costs: ReadCosts = field(default_factory=ReadCosts)


def read_table(
    table: Table,
    store: Store,
    snapshot: Snapshot,
    predicate: Predicate,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> Result:
    """Return the rows of a snapshot of which the predicate is true."""
    request = make_request(table, store, snapshot, predicate, columns)
    nothing = no_rows(request.columns)
    pruning = prune(table, snapshot, file_set(table, store, snapshot), predicate)
    costs = ReadCosts()
    return Result(pa.concat_tables([nothing, *_parts(request, pruning, costs, limit)]), pruning, costs)


def read_batches(
    table: Table,
    store: Store,
    snapshot: Snapshot,
    predicate: Predicate,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Return the same rows batch by batch; files are read while the batches are taken."""
    request = make_request(table, store, snapshot, predicate, columns)
    schema = no_rows(request.columns).schema
    pruning = prune(table, snapshot, file_set(table, store, snapshot), predicate)
    parts = _parts(request, pruning, ReadCosts(), limit)
    return pa.RecordBatchReader.from_batches(schema, (batch for part in parts for batch in part.to_batches()))


def _parts(request: Request, pruning: Pruning, costs: ReadCosts, limit: int | None) -> Iterator[pa.Table]:
    """Yield the matching rows file by file, at most *limit*."""
    left = limit
    if left is not None and left <= 0:
        return
    files = survivors(pruning, request.io_properties)
    for part in _read_all(request, files, costs, ordered=limit is not None):
        if left is None:
            yield part
            continue
        yield part.slice(0, left)
        left -= part.num_rows
        if left <= 0:
            return


def count_rows(
    table: Table, store: Store, snapshot: Snapshot, predicate: Predicate
) -> tuple[int, Pruning, ReadCosts]:
    """Return how many rows match: by indexes and metadata where they decide, by reading the other files."""
    request = make_request(table, store, snapshot, predicate, ())
    pruning = prune(table, snapshot, file_set(table, store, snapshot), predicate)
    total = _known_counts(pruning)
    costs = ReadCosts()
    counted = _each(survivors(pruning, store.io_properties), lambda file: count_file(request, file, costs))
    return total + sum(counted), pruning, costs


def _known_counts(pruning: Pruning) -> int:
    """Count the files whose count is known, and remove them from the files to read.

    That of a file with deletes is not: indexes and metadata count deleted rows too. Neither is any
    where columns are found by name: a name may now be that of another column.
    """
    if pruning.predicate != ALWAYS and pruning.table.maps_names:
        return 0
    numbers = pruning.numbers
    attached = attached_deletes(pruning, pruning.files.files.take(numbers))
    plain = pruning.keep & pruning.alone
    plain[[int(numbers[place]) for place in attached]] = False
    whole = plain & sure_files(pruning, pruning.predicate)
    total = int(pruning.files.files["rows"].to_numpy()[whole].sum())
    pruning.keep &= ~whole
    sure = cache(partial(sure_files, pruning))  # segments mostly leave the same undecided
    for place in pruning.files.places:
        rows = pruning.rows.get(place.segment)
        if rows is not None:
            decided = rows.covered[place.ordinals] & sure(rows.undecided)[place.numbers]
            decided &= (plain & pruning.keep)[place.numbers]
            total += int(rows.counts[place.ordinals[decided]].sum())
            pruning.keep[place.numbers[decided]] = False
    return total


def make_request(
    table: Table, store: Store, snapshot: Snapshot, predicate: Predicate, columns: Sequence[str] | None
) -> Request:
    """Check the request: every column exists, and every part of the predicate can be decided."""
    for part in opaque_parts(predicate):
        raise not_exact(part)
    schema = table.schema(snapshot)
    chosen = schema.columns if columns is None else _chosen(schema.columns, columns)
    fields = {each.id: each for each in table.fields(snapshot)}
    return Request(
        predicate=predicate,
        columns=chosen,
        schema=schema,
        fields=fields,
        io_properties=store.io_properties,
        cache=store.cache,
    )


def _chosen(fields: Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
    chosen = tuple(column_named(fields, name) for name in names)
    seen: set[int] = set()
    for column in chosen:
        if column.id in seen:
            raise UsageError(f"the column '{column.name}' is named twice", hint="name each column once")
        seen.add(column.id)
    return chosen


def no_rows(columns: Sequence[Column]) -> pa.Table:
    """Return the columns in Arrow, without a row."""
    arrow_fields = []
    for column in columns:
        arrow = arrow_field(column)
        if arrow is None:
            raise UsageError(
                f"'{column.name}' has a type that is not read here: {column.type}",
                hint=_others(columns),
            )
        arrow_fields.append(arrow)
    # `Schema.empty_table` has no nested UUIDs.
    return pa.table([pa.nulls(0, field.type) for field in arrow_fields], schema=pa.schema(arrow_fields))


def _others(columns: Sequence[Column]) -> str:
    names = [column.name for column in columns if arrow_field(column) is not None]
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"name only columns that are read ({listed or 'none of these'}), or use table.scan(spark, …)"


def _read_all(
    request: Request, files: Sequence[FileRead], costs: ReadCosts, *, ordered: bool
) -> Iterator[pa.Table]:
    if ordered or len(files) <= _FEW:
        for file in files:
            yield from read_file(request, file, costs)
        return
    for parts in _each(files, lambda file: list(read_file(request, file, costs))):
        yield from parts


def _each(files: Sequence[FileRead], work: Callable[[FileRead], T]) -> Iterator[T]:
    if len(files) <= _FEW:
        yield from map(work, files)
        return
    pool = ThreadPoolExecutor(min(_WORKERS, len(files)))
    rest = iter(files)
    waiting = deque(pool.submit(work, file) for file in islice(rest, _AHEAD))
    try:
        while waiting:
            done = waiting.popleft().result()
            waiting.extend(pool.submit(work, file) for file in islice(rest, 1))
            yield done
    finally:  # all are done, or no longer needed
        pool.shutdown(wait=False, cancel_futures=True)
