"""What an analysis has to be, worked out without it: the hashes of a table's values, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyiceberg.conversions import to_bytes
from pyiceberg.types import PrimitiveType
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.collect.choose import Choice, choose
from rookery.collect.prepare import prepare
from rookery.collect.progress import silent
from rookery.collect.segments import write_groups
from rookery.model import Field
from rookery.model.schema import Schema
from rookery.puffin import THETA_V1, BlobMetadata, open_puffin
from rookery.sidecar import State, Store
from rookery.sketch import MAX_THETA, ThetaSketch, union
from tests.sketch.murmur import theta_hashes

RowValues = Sequence[Mapping[str, Any]]


def values_of(rows: RowValues, field: Field) -> Iterator[Any]:
    """All values of a leaf column, nulls left out, nesting taken off."""
    root, *below = field.parts
    for row in rows:
        yield from _descend(row[root], below)


def _descend(value: Any, path: Sequence[str]) -> Iterator[Any]:
    if value is None:
        return
    if not path:
        yield value
    elif isinstance(value, Mapping):
        yield from _descend(value[path[0]], path[1:])
    elif value and isinstance(value[0], tuple):  # a map, as Arrow gives it
        for entry in value:
            yield from _descend(entry[path[0] == "value"], path[1:])
    else:
        for element in value:
            yield from _descend(element, path[1:])


def expected_hashes(rows: RowValues, schema: Schema, field: Field) -> list[int]:
    """The hashes of Iceberg's single-value bytes, by PyIceberg and a plain Murmur; empty texts count not."""
    kind = PrimitiveType.model_validate(str(schema.by_id[field.id].type))
    distinct = {to_bytes(kind, value) for value in values_of(rows, field)}
    return theta_hashes(distinct)


def rows_of(spark: SparkSession, name: str, snapshot_id: int | None = None) -> RowValues:
    """The table's rows as Spark reads them."""
    at = "" if snapshot_id is None else f" VERSION AS OF {snapshot_id}"
    return spark.sql(f"SELECT * FROM {name}{at}").toArrow().to_pylist()  # type: ignore[no-any-return]


def kept(name: str, lake: Lake) -> State:
    """The state of the table's current snapshot."""
    table, store = rookery.table(name, lake).load()
    snapshot = table.snapshot()
    assert snapshot is not None
    _, state = next(iter(store.newest([ancestor.id for ancestor in table.ancestors(snapshot)])))
    assert state.header.snapshot_id == snapshot.id
    return state


def by_name(name: str, lake: Lake, sketches: Mapping[int, ThetaSketch]) -> dict[str, ThetaSketch]:
    table, _ = rookery.table(name, lake).load()
    return {
        field.name: sketches[field.id] for field in table.fields(table.snapshot()) if field.id in sketches
    }


def statistics_path(name: str, lake: Lake) -> str:
    """Where the statistics of the current snapshot are."""
    metadata = lake.load(name).metadata
    (path,) = [
        s.statistics_path for s in metadata.statistics if s.snapshot_id == metadata.current_snapshot_id
    ]
    return path


def read_statistics(path: str) -> dict[int, ThetaSketch]:
    """The theta sketches of a statistics file, by field id."""
    with open_puffin(path) as reader:
        blobs = [blob for blob in reader.metadata.blobs if blob.type == THETA_V1]
        return {blob.fields[0]: ThetaSketch.decode(payload) for blob, payload in reader.read_many(blobs)}


def blobs_of(path: str) -> tuple[BlobMetadata, ...]:
    with open_puffin(path) as reader:
        return reader.metadata.blobs


def compute_table_stats(spark: SparkSession, name: str) -> str:
    """Iceberg's own analysis; returns its statistics file."""
    (row,) = spark.sql(f"CALL lake.system.compute_table_stats(table => '{name}')").collect()
    return row.statistics_file  # type: ignore[no-any-return]


def same_below(one: ThetaSketch, other: ThetaSketch) -> bool:
    """Whether two sketches agree on everything that both of them can know."""
    theta = min(one.theta, other.theta)
    return np.array_equal(one.hashes[one.hashes < theta], other.hashes[other.hashes < theta])


def recollected(spark: SparkSession, name: str, lake: Lake, folder: Path) -> dict[int, ThetaSketch]:
    """Read the whole table anew; what is found goes to *folder*, and nothing is registered."""
    table, store = rookery.table(name, lake).load()
    snapshot = table.snapshot()
    assert snapshot is not None
    elsewhere = Store(str(folder), store.io_properties)
    fields, _ = choose(table.fields(snapshot), Choice())
    work = prepare(table, elsewhere, snapshot, fields, True)
    written = write_groups(spark, table, elsewhere, work, silent)
    found = {field.id: union(part.sketches[field.id] for part in written) for field in fields}
    assert all(sketch.theta == MAX_THETA or len(sketch.hashes) for sketch in found.values())
    return found


def all_exact(spark: SparkSession, name: str, lake: Lake) -> int:
    """Check that the state, the statistics file and the report all have the exact distinct values."""
    table, _ = rookery.table(name, lake).load()
    snapshot = table.snapshot()
    fields = table.fields(snapshot)
    rows = rows_of(spark, name)
    state = kept(name, lake)
    registered = read_statistics(statistics_path(name, lake))
    stats = {column.field_id: column for column in rookery.table(name, lake).stats().columns}
    for field in fields:
        hashes = expected_hashes(rows, table.schema(snapshot), field)
        assert state.thetas[field.id].hashes.tolist() == hashes, field.name
        # What is 0 is not registered: the empty text may be there all the same.
        assert registered.get(field.id) == (state.thetas[field.id] if hashes else None), field.name
        assert (stats[field.id].ndv, stats[field.id].kind) == (len(hashes), "exact"), field.name
        assert stats[field.id].coverage == 1.0, field.name
    return len(fields)
