"""Every column's distinct values, from all files, beside engines that compute the same."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

import rookery
from benchmarks.collect.data import lineitem
from benchmarks.harness import Effort, Measure, Row, compare
from benchmarks.lake import CATALOG, Bench, sizes
from rookery.io import local_path
from rookery.sketch import K

FILES = 24
CHECKED = ("l_orderkey", "l_partkey", "l_extendedprice", "l_shipdate", "l_comment")


def rows(bench: Bench, effort: Effort) -> Iterator[Row | Measure]:
    name = lineitem(bench, effort.of(FILES), effort)
    table = bench.table(name)
    files = sizes(table)
    count = sum(int(snapshot.summary["total-records"] or 0) for snapshot in [table.current_snapshot()])  # type: ignore[union-attr,index]
    columns = [field.name for field in table.schema().fields]
    data = (
        f"lineitem, {count:,} rows, {len(columns)} columns, {len(files)} files, "
        f"{sum(files.values()) / 1e6:.0f} MB"
    )

    def ours() -> object:
        return rookery.analyze(bench.spark, name, full=True, lake=bench.lake)

    def iceberg() -> object:
        call = f"CALL {CATALOG}.system.compute_table_stats(table => '{name}')"
        return bench.spark.sql(call).collect()

    threads = bench.spark.sparkContext.defaultParallelism
    database = duckdb.connect(config={"threads": threads})
    paths = [local_path(path) for path in files]

    def counted(function: str, wanted: list[str]) -> dict[str, int]:
        terms = ", ".join(f"{function} {column})" for column in wanted)
        (found,) = database.execute(f"SELECT {terms} FROM read_parquet($1)", [paths]).fetchall()
        return dict(zip(wanted, found, strict=True))

    what = "NDV of all columns"
    peer = f"DuckDB approx_count_distinct, {threads} threads"
    yield compare(
        what, data, ours, peer, lambda: counted("approx_count_distinct(", columns), effort, target=1.3
    )
    yield compare(what, data, ours, "Iceberg compute_table_stats", iceberg, effort, target=15, peer_rounds=2)
    found = {column.name: column.ndv or 0.0 for column in ours().columns}  # type: ignore[attr-defined]
    theirs = counted("approx_count_distinct(", list(CHECKED))
    for column, truth in counted("count(DISTINCT", list(CHECKED)).items():
        yield Measure(
            f"error of the NDV of {column}",
            f"{truth:,} distinct",
            abs(found[column] / truth - 1),
            "share",
            3 / K**0.5 if truth >= K else 0.0,  # three standard errors
            "DuckDB",
            abs(theirs[column] / truth - 1),
        )
