"""All tables of TPC-H, analysed, and what is true of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import rookery
from benchmarks.harness import Effort
from benchmarks.lake import CATALOG, Bench, generated
from rookery.discover import ForeignKey

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
COLUMN_SETS = {"lineitem": ("l_partkey", "l_suppkey"), "partsupp": ("ps_partkey", "ps_suppkey")}
REFERENCES = {
    ("lineitem", ("l_orderkey",), "orders", ("o_orderkey",)),
    ("lineitem", ("l_partkey",), "part", ("p_partkey",)),
    ("lineitem", ("l_suppkey",), "supplier", ("s_suppkey",)),
    ("lineitem", ("l_partkey", "l_suppkey"), "partsupp", ("ps_partkey", "ps_suppkey")),
    ("partsupp", ("ps_partkey",), "part", ("p_partkey",)),
    ("partsupp", ("ps_suppkey",), "supplier", ("s_suppkey",)),
    ("orders", ("o_custkey",), "customer", ("c_custkey",)),
    ("customer", ("c_nationkey",), "nation", ("n_nationkey",)),
    ("supplier", ("s_nationkey",), "nation", ("n_nationkey",)),
    ("nation", ("n_regionkey",), "region", ("r_regionkey",)),
}
"""The foreign keys that the specification of TPC-H declares."""


def made(bench: Bench, effort: Effort) -> Path:
    """Make the tables that are missing, and analyse all; return the folder of the files they are made of."""
    folder = bench.folder / "generated-1"
    for table in TABLES:
        name = f"tpch.{table}"
        source = generated(folder, table, effort.scale)
        if not bench.exists(name):
            frame = bench.spark.read.parquet(str(source))
            frame.writeTo(f"{CATALOG}.{name}").tableProperty("format-version", "2").create()
        column_sets = [COLUMN_SETS[table]] if table in COLUMN_SETS else []
        rookery.analyze(bench.spark, name, lake=bench.lake, column_sets=column_sets)
    return folder


def named(key: ForeignKey) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    """A key by the names that `REFERENCES` has."""
    tables = (key.table.rpartition(".")[2], key.parent_table.rpartition(".")[2])
    return tables[0], key.columns, tables[1], key.parent_columns


class Truth:
    """What the rows say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = lru_cache(maxsize=8)(self._read)

    def holds(self, key: ForeignKey) -> bool:
        """Whether every value of the child is one of the parent, and the parent has none twice."""
        table, columns, parent_table, parent_columns = named(key)
        child, parent = self._values(table, columns), self._values(parent_table, parent_columns)
        distinct = pc.unique(parent)
        contained = pc.all(pc.is_in(pc.unique(child), value_set=distinct)).as_py()
        return bool(contained) and len(distinct) == len(parent)

    def is_unique(self, table: str, columns: Sequence[str]) -> bool:
        """Whether no value is there twice."""
        values = self._values(table.rpartition(".")[2], tuple(columns))
        return len(pc.unique(values)) == len(values)

    def _read(self, table: str, columns: tuple[str, ...]) -> pa.Array:
        read = pq.read_table(self._folder / f"{table}.parquet", columns=list(columns))
        texts = [read[name].cast(pa.string()) for name in columns]
        joined = pc.binary_join_element_wise(*texts, "|") if len(texts) > 1 else read[columns[0]]
        return joined.drop_null()
