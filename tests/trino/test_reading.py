"""Tables that Trino has written: what Rookery reads and tells of them, against Trino's own answers."""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.model import RookeryError
from tests.trino.client import Trino, TrinoError
from tests.trino.written import COLUMNS, SHARED, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def namespace(trino: Trino, lake: Lake) -> Iterator[str]:
    name = f"lake.r{uuid.uuid4().hex[:10]}"
    trino.sql(f"CREATE SCHEMA {name}")
    yield name
    trino.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(scope="module", params=["PARQUET", "ORC", "AVRO"])
def written(request: pytest.FixtureRequest, trino: Trino, namespace: str) -> str:
    name = f"{namespace}.{request.param.lower()}"
    write(trino, name, SHARED, f"format = '{request.param}'")
    return name


def test_predicates(spark: SparkSession, trino: Trino, lake: Lake, written: str) -> None:
    """First by what Trino has written alone, then with all that is kept beside the table."""
    handle = rookery.table(written, lake)
    _check_predicates(spark, trino, handle)
    for kind, column in (("bloom", "s"), ("bloom", "u"), ("bitmap", "n"), ("bloom", "v"), ("bitmap", "b")):
        handle.add_index(kind, column)
    rookery.analyze(spark, written, lake=lake, histogram=["x", "c"], top_k=["n", "s"])
    _check_predicates(spark, trino, handle)


def _check_predicates(spark: SparkSession, trino: Trino, handle: TableHandle) -> None:
    for said, meant in [condition for name in SHARED for condition in COLUMNS[name].conditions]:
        rows = trino.sql(f'SELECT id, "$path" FROM {handle.name} WHERE {meant}')
        wanted = sorted(row[0] for row in rows)
        assert sorted(row.id for row in handle.scan(spark, said, ["id"]).collect()) == wanted, said
        assert {row[1] for row in rows} <= {file.path for file in handle.explain(said).files}, said
        if str(handle.name).endswith("parquet"):
            assert sorted(handle.read(said, ["id"])["id"].to_pylist()) == wanted, said
            assert handle.count(said) == len(wanted), said


def test_rows(spark: SparkSession, trino: Trino, lake: Lake, written: str) -> None:
    listed = ", ".join(f'"{each}"' for each in SHARED)
    wanted = trino.sql(f"SELECT {listed} FROM {written} ORDER BY id")
    handle = rookery.table(written, lake)
    if written.endswith("parquet"):
        found = handle.read(columns=SHARED).sort_by("id").to_pylist()
        assert [[_as_json(row[each]) for each in SHARED] for row in found] == wanted
    else:
        with pytest.raises(RookeryError, match="read here"):
            handle.read(columns=SHARED)
    found = handle.scan(spark, columns=SHARED).orderBy("id").toArrow().to_pylist()
    assert [[_as_json(row[each]) for each in SHARED] for row in found] == wanted


def test_bounds_and_nulls(trino: Trino, lake: Lake, written: str) -> None:
    """Least and greatest values hold every value that is there; nulls are no fewer than there are."""
    columns = {column.name: column for column in rookery.table(written, lake).stats().columns}
    for name in ("id", "n", "c", "d"):
        column = columns[name]
        (low, high, nulls) = trino.sql(
            f'SELECT min("{name}"), max("{name}"), count_if("{name}" IS NULL) FROM {written}'
        )[0]
        assert column.min is None or Decimal(str(column.min)) <= Decimal(str(low)), name
        assert column.max is None or Decimal(str(column.max)) >= Decimal(str(high)), name
        assert column.nulls is None or column.nulls >= nulls, name


def test_distinct_values(spark: SparkSession, trino: Trino, lake: Lake, written: str) -> None:
    """Trino shows what Rookery registered, and its own ANALYZE counts the same."""
    report = rookery.analyze(spark, written, lake=lake)
    ours = {column.name: column.ndv for column in report.columns if column.name in SHARED}
    shown = trino.show_stats(written).columns
    assert {name: shown[name].ndv for name in ours} == ours
    trino.sql(f"ALTER TABLE {written} EXECUTE drop_extended_stats")
    trino.sql(f"ANALYZE {written}")
    shown = trino.show_stats(written).columns
    assert {name: shown[name].ndv for name in ours} == ours


def test_time_columns(trino: Trino, lake: Lake, namespace: str) -> None:
    """Spark reads no table with a column of this type; without Spark it is read."""
    name = f"{namespace}.times"
    write(trino, name, ["id", "n", "s", "t"], "format = 'PARQUET'")
    handle = rookery.table(name, lake)
    wanted = trino.sql(f"SELECT id, t FROM {name} ORDER BY id")
    found = handle.read(columns=["id", "t"]).sort_by("id").to_pylist()
    assert [[row["id"], _as_json(row["t"])] for row in found] == wanted
    for said, meant in COLUMNS["t"].conditions:
        assert handle.count(said) == trino.sql(f"SELECT count(*) FROM {name} WHERE {meant}")[0][0]


def test_deletion_vectors_are_not_written(trino: Trino, namespace: str) -> None:
    """Trino 476 does not write version 3: once it does, the tests above have to cover it."""
    with pytest.raises(TrinoError, match="format_version"):
        trino.sql(f"CREATE TABLE {namespace}.v3 (id bigint) WITH (format_version = 3)")


def _as_json(value: Any) -> Any:
    """A value of Arrow's as Trino's protocol shows it."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() | uuid.UUID():
            return str(value)
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S.%f}" + (" UTC" if value.tzinfo else "")
        case time():
            return f"{value:%H:%M:%S.%f}"
        case date():
            return value.isoformat()
        case dict():
            return [_as_json(each) for each in value.values()]
        case [(_, _), *_]:
            return {str(key): _as_json(each) for key, each in value}
        case list():
            return [_as_json(each) for each in value]
    return value
