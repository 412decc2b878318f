"""Files that only Iceberg's reader understands (deletes, ORC, Avro): read by Spark, exactly those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rookery.collect.arrow import leaf_array
from rookery.collect.column_sets import is_column_set
from rookery.collect.lengths import FileLengths, has_lengths
from rookery.collect.plan import Group
from rookery.collect.pyworkers import forget_jars, on_spark
from rookery.collect.read import ENGINE, add_column_set
from rookery.collect.readable import readable_only
from rookery.collect.task import Costs, Partial
from rookery.model import Field, Snapshot, quote_part
from rookery.model.type_names import member_ids
from rookery.sketch import InvertedThetaBuilder, ThetaSketch
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.lengths import Lengths
from rookery.sketch.values import add_arrow
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

FileBatch = tuple[str, pa.RecordBatch]
"""Rows, and the file that they are of."""
_FILE = "_file"
SCHEMA = "file string, field int, theta binary, count bigint, lengths array<bigint>"
_ARROW = pa.schema(
    [
        ("file", pa.string()),
        ("field", pa.int32()),
        ("theta", pa.binary()),
        ("count", pa.int64()),
        ("lengths", pa.list_(pa.int64())),
    ]
)


def run_engine(
    spark: SparkSession, table: Table, snapshot: Snapshot, group: Group, ordinals: Sequence[int]
) -> Partial:
    """Sketch files of a group, by ordinal, through Iceberg's own reader."""
    by_path = ordinals_by_path(group, ordinals)
    thetas = {column.id: InvertedThetaBuilder(group.files.num_rows) for column in group.fields}
    lengths = FileLengths()
    values = 0
    only = readable_only(table, snapshot)
    with on_spark(spark):
        frame = table.for_engine(spark).staged(snapshot.id, list(by_path), only)
        if frame is not None:
            roots = list(dict.fromkeys(root for column in group.fields for root in roots_of(column)))
            # Staged tables show no metadata columns, but Iceberg sets the name of the file for Spark.
            # PySpark cannot resolve names with dots, so columns are sent under numbers.
            columns = [f"{quote_part(root)} AS c{number}" for number, root in enumerate(roots)]
            selected = frame.selectExpr(f"input_file_name() AS {_FILE}", *columns)
            rows = selected.mapInArrow(_mapper(group.fields, roots), SCHEMA).collect()
            values = add_rows(thetas, lengths, rows, by_path)
    sizes = group.files["size"].to_pylist()
    read = sum(sizes[ordinal] for ordinal in ordinals)  # an upper limit of what the engine read of them
    ways = Counter({ENGINE: len(ordinals) * len(group.fields)})
    sketches = {field_id: theta.result() for field_id, theta in thetas.items()}
    costs = Costs(files=len(ordinals), chunks=ways, values=values, bytes_read=read, reads=0)
    return Partial(group.number, sketches, costs, lengths=lengths)


def ordinals_by_path(group: Group, ordinals: Sequence[int]) -> dict[str, list[int]]:
    """Return the ordinals that each path has: a file may be committed twice."""
    paths = group.files["path"].to_pylist()
    by_path: dict[str, list[int]] = {}
    for ordinal in ordinals:
        by_path.setdefault(paths[ordinal], []).append(ordinal)
    return by_path


def add_rows(
    thetas: Mapping[int, InvertedThetaBuilder],
    lengths: FileLengths,
    rows: Iterable[Mapping[str, Any] | Row],
    by_path: Mapping[str, Sequence[int]],
) -> int:
    """Add the sketches and lengths of workers, and return how many values they read."""
    values = 0
    for row in rows:
        for ordinal in by_path[row["file"]]:
            thetas[row["field"]].add(ThetaSketch.decode(bytes(row["theta"])), ordinal)
            if row["lengths"] is not None:
                lengths.add(row["field"], ordinal, Lengths(*row["lengths"]))
        values += row["count"]
    return values


def _mapper(
    fields: tuple[Field, ...], roots: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def sketch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        named = (batch.rename_columns([_FILE, *roots]) for batch in batches)
        yield sketched((pair for batch in named for pair in _by_file(batch)), fields)

    return sketch


def sketched(batches: Iterable[FileBatch], fields: Sequence[Field]) -> pa.RecordBatch:
    """Sketch each column of each file, and return a row for each of them. Called in a worker."""
    builders: dict[tuple[str, int], ThetaBuilder] = {}
    counts: Counter[tuple[str, int]] = Counter()
    for file, rows in batches:
        for column in fields:
            key = (file, column.id)
            builder = builders.setdefault(key, ThetaBuilder())
            counts[key] += rows.num_rows
            _add(builder, column, rows)
    with_lengths = {column.id for column in fields if has_lengths(column)}
    sketches = [
        {
            "file": file,
            "field": field,
            "theta": builder.result().encode(),
            "count": counts[file, field],
            "lengths": astuple(builder.take_lengths()) if field in with_lengths else None,
        }
        for (file, field), builder in builders.items()
    ]
    return pa.RecordBatch.from_pylist(sketches, _ARROW)


def roots_of(column: Field) -> tuple[str, ...]:
    """Return the top-level columns that must be read for a column, or for a column set."""
    return column.parts if is_column_set(column) else column.parts[:1]


def _add(builder: ThetaBuilder, column: Field, rows: pa.RecordBatch) -> None:
    if is_column_set(column):
        members = zip(member_ids(column.type), column.parts, strict=True)
        add_column_set(builder, column, {number: rows.column(name) for number, name in members})
    else:
        root, *path = column.parts
        add_arrow(builder, column.type, leaf_array(rows.column(root), path))


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Split a batch by its file; mostly it has only one."""
    files = batch.column(_FILE)
    distinct = files.unique().to_pylist()
    if len(distinct) == 1:
        yield distinct[0], batch
        return
    for file in distinct:
        yield file, batch.filter(pa.compute.equal(files, file))
