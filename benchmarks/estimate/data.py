"""The tables that are filtered, in Iceberg and as Parquet, from which DuckDB counts what is true."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import rookery
from benchmarks.estimate import made
from benchmarks.estimate.filters import Filtered
from benchmarks.harness import Effort
from benchmarks.lake import CATALOG, Bench, generated

TPCH = {"lineitem": ("l_orderkey", 64), "orders": ("o_orderkey", 16), "customer": ("", 4)}
FREE_TEXT = ("l_comment", "o_comment", "c_comment")  # no filter is on them
SAMPLE = 5_000  # rows from which filters take their values
MADE = "made.skewed"


@dataclass(frozen=True)
class Estimated:
    """A table of the lake, its rows in a Parquet file, and what filters on it are made of."""

    name: str
    parquet: Path
    filtered: Filtered

    def true_counts(self, wheres: Sequence[str]) -> list[int]:
        """Count with DuckDB."""
        with duckdb.connect() as connection:
            connection.sql(f"CREATE VIEW rows AS SELECT * FROM read_parquet('{self.parquet}')")
            return [
                connection.sql(f"SELECT count(*) FROM rows WHERE {where}").fetchall()[0][0]
                for where in wheres
            ]


def tpch(bench: Bench, effort: Effort) -> list[Estimated]:
    """Tables of TPC-H, with a histogram of each number and the frequent values of each text."""
    tables = []
    for table, (key, files) in TPCH.items():
        parquet = generated(bench.folder / "generated-1", table, effort.scale)
        schema = pq.read_schema(parquet)
        columns = tuple(name for name in schema.names if name not in FREE_TEXT)
        text = tuple(name for name in columns if _is_text(schema.field(name).type))
        name = f"made.estimated_{table}"
        if not bench.exists(name):
            _write(bench, name, parquet, key, files)
        numbers = [name for name in columns if name not in text]
        rookery.analyze(bench.spark, name, histogram=numbers, top_k=text, lake=bench.lake)
        tables.append(Estimated(name, parquet, Filtered(name, sample_of(parquet, columns), columns)))
    return tables


def skewed(bench: Bench, effort: Effort) -> Estimated:
    """The table with skew and correlation, with the statistics that are declared for it."""
    parquet = bench.folder / "skewed.parquet"
    if not parquet.exists():
        pq.write_table(pa.concat_tables(made.parts(effort.of(made.ROWS))), parquet)
    if not bench.exists(MADE):
        _write(bench, MADE, parquet, "id", made.FILES)
    rookery.analyze(
        bench.spark,
        MADE,
        histogram=made.HISTOGRAM,
        top_k=made.TOP_K,
        column_sets=made.COLUMN_SETS,
        lake=bench.lake,
    )
    columns = tuple(pq.read_schema(parquet).names)
    return Estimated(MADE, parquet, Filtered(MADE, sample_of(parquet, columns), columns))


def sample_of(parquet: Path, columns: Sequence[str]) -> pa.Table:
    """Rows of a file, the same in each run."""
    rows = pq.read_table(parquet, columns=list(columns))
    plain = [(each.name, pa.string() if _is_text(each.type) else each.type) for each in rows.schema]
    rows = rows.cast(pa.schema(plain))  # which has functions that views of text lack
    chosen = random.Random(5).sample(range(rows.num_rows), min(SAMPLE, rows.num_rows))
    return rows.take(pa.array(sorted(chosen)))


def _write(bench: Bench, name: str, parquet: Path, key: str, files: int) -> None:
    frame = bench.spark.read.parquet(str(parquet))
    if key:
        frame = frame.repartitionByRange(files, key).sortWithinPartitions(key)
    else:
        frame = frame.repartition(files)
    frame.writeTo(f"{CATALOG}.{name}").tableProperty("format-version", "2").create()


def _is_text(kind: pa.DataType) -> bool:
    return "string" in str(kind)
