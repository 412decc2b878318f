"""Files that only Iceberg's reader understands (deletes, ORC, Avro): read by Spark, exactly those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rookery.collect.arrow import leaf_array
from rookery.collect.plan import Group
from rookery.collect.read import ENGINE, add_group
from rookery.collect.together import is_group, member_ids
from rookery.collect.work import Costs, Partial
from rookery.collect.workers import forget_jars, on_spark
from rookery.model import Field, TableName, quote_part
from rookery.sketch import InvertedThetaBuilder, ThetaSketch
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import add_arrow
from rookery.tables.iceberg.jvm import staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = "_file"
_SCHEMA = "file string, field int, theta binary, count bigint"
_ARROW = pa.schema(
    [("file", pa.string()), ("field", pa.int32()), ("theta", pa.binary()), ("count", pa.int64())]
)


def run_engine(
    spark: SparkSession, name: TableName, snapshot_id: int, group: Group, ordinals: Sequence[int]
) -> Partial:
    """Sketch the group's files of these ordinals through Iceberg's own reader."""
    paths = group.files["path"].to_pylist()
    by_path: dict[str, list[int]] = {}  # a file may be committed twice
    for ordinal in ordinals:
        by_path.setdefault(paths[ordinal], []).append(ordinal)
    size = len(paths)
    thetas = {column.id: InvertedThetaBuilder(size) for column in group.fields}
    values = 0
    with staged(spark, name, snapshot_id, list(by_path)) as frame, on_spark(spark):
        if frame is not None:
            roots = list(dict.fromkeys(root for column in group.fields for root in _roots(column)))
            # Staged tables show no metadata columns, but Iceberg tells Spark which file it is reading.
            # PySpark trips over names with dots, so columns travel under numbers.
            columns = [f"{quote_part(root)} AS c{number}" for number, root in enumerate(roots)]
            selected = frame.selectExpr(f"input_file_name() AS {_FILE}", *columns)
            for row in selected.mapInArrow(_mapper(group.fields, roots), _SCHEMA).collect():
                for ordinal in by_path[row.file]:
                    thetas[row.field].add(ThetaSketch.decode(bytes(row.theta)), ordinal)
                values += row["count"]
    sizes = group.files["size"].to_pylist()
    read = sum(sizes[ordinal] for ordinal in ordinals)  # what the engine read of them is at most this
    ways = Counter({ENGINE: len(ordinals) * len(group.fields)})
    found = {field_id: theta.result() for field_id, theta in thetas.items()}
    return Partial(group.number, found, Costs(len(ordinals), ways, values, read, 0))


def _mapper(
    fields: tuple[Field, ...], roots: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def sketch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        builders: dict[tuple[str, int], ThetaBuilder] = {}
        counts: Counter[tuple[str, int]] = Counter()
        for batch in batches:
            for file, rows in _by_file(batch.rename_columns([_FILE, *roots])):
                for column in fields:
                    key = (file, column.id)
                    builder = builders.setdefault(key, ThetaBuilder())
                    counts[key] += rows.num_rows
                    _add(builder, column, rows)
        yield pa.RecordBatch.from_pylist(
            [
                {
                    "file": file,
                    "field": field,
                    "theta": builder.result().encode(),
                    "count": counts[file, field],
                }
                for (file, field), builder in builders.items()
            ],
            _ARROW,
        )

    return sketch


def _roots(column: Field) -> tuple[str, ...]:
    """The top-level columns that must be read for a column, or for a group of columns."""
    return column.parts if is_group(column) else column.parts[:1]


def _add(builder: ThetaBuilder, column: Field, rows: pa.RecordBatch) -> None:
    if is_group(column):
        members = zip(member_ids(column.type), column.parts, strict=True)
        add_group(builder, column, {number: rows.column(name) for number, name in members})
    else:
        root, *path = column.parts
        add_arrow(builder, column.type, leaf_array(rows.column(root), path))


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Split a batch by its file; mostly it has but one."""
    files = batch.column(_FILE)
    distinct = files.unique().to_pylist()
    if len(distinct) == 1:
        yield distinct[0], batch
        return
    for file in distinct:
        yield file, batch.filter(pa.compute.equal(files, file))
