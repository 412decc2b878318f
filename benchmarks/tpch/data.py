"""TPC-H of scale factor 1 in Iceberg: lineitem and orders clustered by the order's key, the rest as it is."""

from __future__ import annotations

import rookery
from benchmarks.harness import Effort
from benchmarks.lake import CATALOG, Bench, generated, is_known

CLUSTERED = {"lineitem": ("l_orderkey", 64), "orders": ("o_orderkey", 16)}
WHOLE = ("customer", "supplier", "part", "partsupp", "nation", "region")
INDEXED = ("orders", "o_custkey")  # by which no file is clustered


def make(bench: Bench, effort: Effort) -> None:
    """Make the tables that are missing, and analyse all."""
    for table in (*CLUSTERED, *WHOLE):
        name = f"tpch.{table}"
        if not bench.exists(name):
            _make(bench, table, effort.scale)
        handle = bench.handle(name)
        if table == INDEXED[0] and not handle.indexes().indexes:
            handle.add_index("bloom", INDEXED[1])
        rookery.analyze(bench.spark, name, lake=bench.lake)
        assert is_known(bench.lake, name)


def _make(bench: Bench, table: str, scale: float) -> None:
    made = generated(bench.folder / "generated-1", table, scale)
    frame = bench.spark.read.parquet(str(made))
    if table in CLUSTERED:
        key, files = CLUSTERED[table]
        frame = frame.repartitionByRange(files, key).sortWithinPartitions(key)
    frame.writeTo(f"{CATALOG}.tpch.{table}").tableProperty("format-version", "2").create()
