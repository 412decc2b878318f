"""Tables of many columns whose data files do not exist: `discover` reads none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from benchmarks.lake import Bench, append_files, forget, made_anew
from benchmarks.plan.state import describe
from rookery.sketch import K, ThetaSketch

THETA = 1 << 58
ROWS = K << 5  # as many as a sketch of K hashes estimates: the first column of each table is unique
COLUMNS = 50  # of each table


def wide_tables(bench: Bench, columns: int) -> int:
    """Make tables with about so many columns, of one type; return how many there are."""
    schema = Schema(*(NestedField(number, f"c{number}", LongType()) for number in range(1, COLUMNS + 1)))
    tables = max(columns // COLUMNS, 2)
    keys = [_hashes(np.random.default_rng(number), K) for number in range(tables)]
    for number in range(tables):
        name = f"many.wide{number:03d}"
        table = made_anew(bench, name, schema)
        append_files(table, [_file(table.location(), schema)])
        forget(bench, name)
        describe(bench, name, dict(zip(range(1, COLUMNS + 1), _sketches(keys, number), strict=False)))
    return tables * COLUMNS


def _sketches(keys: list[NDArray[np.uint64]], number: int) -> Iterator[ThetaSketch]:
    """A key, then columns of which a third refer to the key of some table."""
    random = np.random.default_rng(1000 + number)
    yield ThetaSketch(keys[number], THETA)
    while True:
        yield ThetaSketch(np.sort(random.choice(keys[random.integers(len(keys))], K // 2, False)), THETA)
        for _ in range(2):
            yield ThetaSketch(_hashes(random, 2 * K - 1), THETA)


def _hashes(random: np.random.Generator, count: int) -> NDArray[np.uint64]:
    return np.unique(random.integers(1, THETA, count, np.uint64))


def _file(location: str, schema: Schema) -> DataFile:
    ids = [field.field_id for field in schema.fields]
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{location}/data/00000.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=4 << 20,
        column_sizes=dict.fromkeys(ids, 250_000),
        value_counts=dict.fromkeys(ids, ROWS),
        null_value_counts=dict.fromkeys(ids, 0),
        nan_value_counts={},
        lower_bounds=dict.fromkeys(ids, to_bytes(LongType(), 1)),
        upper_bounds=dict.fromkeys(ids, to_bytes(LongType(), ROWS)),
        split_offsets=[4],
        sort_order_id=None,
        spec_id=0,
        equality_ids=None,
        key_metadata=None,
    )
