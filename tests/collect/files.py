"""Parquet files as Iceberg has them: with a field id on every column, and Iceberg's types beside Arrow's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.collect.arrow import leaf_array
from rookery.collect.read import Reading, read_parquet
from rookery.model import Field
from rookery.sketch import MAX_THETA, ThetaSketch
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import add_arrow

FIELD_ID = b"PARQUET:field_id"


def with_ids(kind: pa.Field, ids: Any) -> pa.Field:
    """Number a field and all below it, parents first."""
    own = {FIELD_ID: str(next(ids)).encode()}
    below = kind.type
    if pa.types.is_struct(below):
        below = pa.struct([with_ids(below.field(i), ids) for i in range(below.num_fields)])
    elif pa.types.is_map(below):
        below = pa.map_(with_ids(below.key_field, ids), with_ids(below.item_field, ids))
    elif pa.types.is_list(below):
        below = pa.list_(with_ids(below.value_field.with_name("element"), ids))
    return pa.field(kind.name, below, kind.nullable, own)


def write(path: Path, table: pa.Table, **options: Any) -> str:
    """Write a table with field ids from 1 on."""
    ids = iter(range(1, 1000))
    schema = pa.schema([with_ids(field, ids) for field in table.schema])
    arrays = [column.cast(field.type) for column, field in zip(table.columns, schema, strict=True)]
    pq.write_table(pa.table(arrays, schema=schema), path, **options)
    return str(path)


def read(path: str, fields: Sequence[Field], theta: int = MAX_THETA) -> Reading:
    return read_parquet(path, Path(path).stat().st_size, fields, {field.id: theta for field in fields}, {})


def decoded(path: str, field: Field) -> ThetaSketch:
    """The same column by pyarrow alone: the whole file decoded, then hashed."""
    root, *below = field.name.split(".")
    builder = ThetaBuilder()
    for chunk in pq.read_table(path).column(root).chunks:
        add_arrow(builder, field.type, leaf_array(chunk, below))
    return builder.result()


def agrees(path: str, *fields: Field) -> Reading:
    """Both ways see the same values, and at least one."""
    reading = read(path, fields)
    for field in fields:
        assert reading.sketches[field.id] == decoded(path, field), field.name
    return reading
