"""The product's main job on the embedded default, from nothing: run by `make demo`.

TPC-H data goes into two Iceberg tables; Rookery analyses them, some rows are added, and the refresh shows
what it cost. Then what Spark makes of it, the Puffin file that all engines read, and one order looked up.
At last a table goes stale, and `rookery maintain` makes it healthy again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import rookery
from rookery.api import puffin_files
from rookery.cli.console import out, talk
from rookery.cli.sheets import as_text
from rookery.model import Report, RookeryError, counted

HOME = Path("build/demo").absolute()
SCALE = "0.1"
LOOKUP = "o_orderkey = 44417"
COUNT = "o_orderpriority = '1-URGENT'"
TABLES = ("orders", "lineitem")


def step(words: str) -> None:
    talk().print(f"\n[bold green]▸[/] {words}")


def show(report: Report) -> None:
    out().print(as_text(report))


def generate(folder: Path) -> None:
    generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run(
        [generator, "parquet", "-s", SCALE, f"--tables={','.join(TABLES)}", f"--output-dir={folder}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    os.environ["ROOKERY_HOME"] = str(HOME)
    lake = rookery.connect("lake")

    step(f"TPC-H orders and lineitem at scale {SCALE}, in Iceberg, on a local Spark and a SQLite catalog")
    generate(HOME / "tpch")
    spark = lake.spark()
    spark.sql("CREATE NAMESPACE tpch")
    for table in TABLES:
        rows = spark.read.parquet(str(HOME / "tpch" / f"{table}.parquet"))
        rows.repartition(16).writeTo(f"lake.tpch.{table}").create()
    planned = "SELECT * FROM lake.tpch.lineitem WHERE l_shipmode = 'AIR'"
    spark.conf.set("spark.sql.cbo.enabled", "true")
    before = expected_rows(spark.sql(planned))

    step("rookery analyze: every column, from dictionaries and pages (the first run compiles its kernels)")
    orders = rookery.table("lake.tpch.orders", lake)
    orders.add_index("bloom", "o_orderkey")
    orders.add_index("bitmap", "o_orderpriority")
    show(rookery.analyze(spark, "lake.tpch.orders", lake=lake))
    first = rookery.analyze(spark, "lake.tpch.lineitem", histogram=["l_quantity", "l_shipdate"], lake=lake)
    show(first)

    step("new orders arrive; the refresh reads them, and nothing else")
    spark.sql("INSERT INTO lake.tpch.lineitem SELECT * FROM lake.tpch.lineitem WHERE l_orderkey < 3000")
    started = time.perf_counter()
    refresh = rookery.analyze(spark, "lake.tpch.lineitem", lake=lake)
    seconds = time.perf_counter() - started
    share = refresh.bytes_read / first.bytes_read
    talk().print(
        f"  {refresh.files_read} of {refresh.files} files and {refresh.bytes_read:,} bytes read,"
        f" {share:.1%} of the first run, in {seconds:.2f} s"
    )
    show(rookery.table("lake.tpch.lineitem", lake).stats())

    step("Spark's optimizer now knows what to expect of  WHERE l_shipmode = 'AIR'")
    after = expected_rows(spark.sql(planned))
    actual = spark.sql(planned).count()
    talk().print(f"  rows planned: {before:,} before, {after:,} now; there are {actual:,}")

    step("the statistics file beside the table, which Spark, Trino and PyIceberg read")
    newest = lake.load("lake.tpch.orders").metadata.statistics[-1]
    show(puffin_files.inspect(newest.statistics_path))

    step(f"one order is looked up:  WHERE {LOOKUP}  — the files are not sorted by it")
    show(orders.explain(LOOKUP))
    by_spark = best(lambda: spark.sql(f"SELECT * FROM lake.tpch.orders WHERE {LOOKUP}").collect())
    by_index = best(lambda: orders.read(LOOKUP))
    talk().print(
        f"  rookery read: {by_index * 1000:.1f} ms; Spark's own scan: {by_spark * 1000:.0f} ms,"
        f" {by_spark / by_index:.0f} times as long"
    )
    counted = best(lambda: orders.count(COUNT))
    count = spark.sql(f"SELECT count(*) FROM lake.tpch.orders WHERE {COUNT}")
    talk().print(
        f"  count of {COUNT} from the bitmap index: {orders.count(COUNT):,} in {counted * 1000:.1f} ms;"
        f" Spark: {count.first()[0]:,} in {best(count.collect) * 1000:.0f} ms"
    )

    go_stale_and_heal(lake, spark)
    spark.stop()
    talk().print("\nlook around: ROOKERY_HOME=build/demo .venv/bin/rookery stats tpch.orders")


def go_stale_and_heal(lake: rookery.Lake, spark: object) -> None:
    """Small commits and deletes wear a table out; its policy says when that is too much."""
    step("orders go stale: nine small commits, and cancelled orders deleted")
    target = "'write.target-file-size-bytes' = '8388608', 'write.delete.mode' = 'merge-on-read'"
    spark.sql(f"ALTER TABLE lake.tpch.orders SET TBLPROPERTIES ({target})")  # type: ignore[attr-defined]
    for day in range(9):
        new = f"SELECT * FROM lake.tpch.orders WHERE o_orderkey % 30 = {day}"
        spark.sql(f"INSERT INTO lake.tpch.orders {new}")  # type: ignore[attr-defined]
    spark.sql("DELETE FROM lake.tpch.orders WHERE o_orderkey % 2 = 0")  # type: ignore[attr-defined]
    before = rows_of(spark)
    show(rookery.table("lake.tpch.orders", lake).status(columns=False))

    step("rookery maintain --dry-run: what would be done, and why, with no Spark")
    show(lake.maintain("tpch.orders", dry_run=True))

    step("rookery maintain: each step verified after it ran")
    show(lake.maintain("tpch.orders"))
    stand = rookery.table("lake.tpch.orders", lake).status(columns=False)
    found = stand.tables[0]
    same = "the same" if rows_of(spark) == before else "DIFFERENT"
    talk().print(
        f"  score {found.score.total:.0f} of 100, statistics {found.statistics.freshness},"
        f" {counted(found.layout.files, 'file')}; all {before[0]:,} rows are {same}"
    )


def rows_of(spark: object) -> tuple[int, int]:
    """The number of orders, and a hash of all of them."""
    columns = "count(*), sum(CAST(xxhash64(*) AS DECIMAL(38, 0)))"
    counted, hashed = spark.sql(f"SELECT {columns} FROM lake.tpch.orders").first()  # type: ignore[attr-defined]
    return int(counted), int(hashed)


def best(work: Callable[[], object]) -> float:
    """The shortest of three runs, in seconds."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def expected_rows(frame: object) -> int:
    """How many rows the optimizer expects; before there are statistics, it does not know."""
    count = frame._jdf.queryExecution().optimizedPlan().stats().rowCount()  # type: ignore[attr-defined]
    return int(str(count.get())) if count.isDefined() else 0


if __name__ == "__main__":
    try:
        main()
    except RookeryError as error:
        talk().print(f"error: {error.message}\nhint: {error.hint}", markup=False)
        sys.exit(2)
