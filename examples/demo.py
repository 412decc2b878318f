"""A tour of Rookery on the embedded catalog, without any setup: run by `make demo`.

It writes TPC-H data into two Iceberg tables, analyzes them, adds rows and shows what the refresh reads.
Then it shows how Spark uses the statistics, the Puffin file that all engines read, and a lookup of one order:
in plain Spark before and after `attach`, and without Spark.
At the end it makes a table stale and runs `rookery maintain` on it.
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
    spark = lake.spark(attach=False)
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

    step("new orders are inserted; the refresh reads only the new files")
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

    step("Spark's optimizer estimates the number of rows  WHERE l_shipmode = 'AIR'")
    after = expected_rows(spark.sql(planned))
    actual = spark.sql(planned).count()
    talk().print(f"  estimated rows: {before:,} before, {after:,} now; actual rows: {actual:,}")

    step("the statistics file registered with the table, which Spark, Trino and PyIceberg read")
    newest = lake.load("lake.tpch.orders").metadata.statistics[-1]
    show(puffin_files.inspect(newest.statistics_path))

    step(f"lookup of one order:  WHERE {LOOKUP}  (the files are not sorted by this column)")
    show(orders.explain(LOOKUP))
    text = f"SELECT * FROM lake.tpch.orders WHERE {LOOKUP}"
    alone = best(lambda: spark.sql(text).collect())
    rookery.attach(spark)
    attached = best(lambda: spark.sql(text).collect())
    (scan,) = rookery.queries(spark, last=1).queries[0].tables
    by_index = best(lambda: orders.read(LOOKUP))
    talk().print(
        f"  spark.sql: {alone * 1000:.0f} ms, {scan.files} files; the same text after rookery.attach(spark):"
        f" {attached * 1000:.0f} ms, {counted(scan.files_read, 'file')}\n"
        f"  rookery read, without Spark: {by_index * 1000:.1f} ms"
    )
    by_bitmap = best(lambda: orders.count(COUNT))
    count = spark.sql(f"SELECT count(*) FROM lake.tpch.orders WHERE {COUNT}")
    talk().print(
        f"  count of {COUNT} from the bitmap index: {orders.count(COUNT):,} in {by_bitmap * 1000:.1f} ms;"
        f" Spark: {count.first()[0]:,} in {best(count.collect) * 1000:.0f} ms"
    )

    make_stale_and_maintain(lake, spark)
    spark.stop()
    talk().print("\nto explore the tables: ROOKERY_HOME=build/demo .venv/bin/rookery stats tpch.orders")


def make_stale_and_maintain(lake: rookery.Lake, spark: object) -> None:
    """Bring a table below its policy by small commits and deletes, and maintain it."""
    step("the table orders becomes stale: nine small commits, and half of the orders deleted")
    target = "'write.target-file-size-bytes' = '8388608', 'write.delete.mode' = 'merge-on-read'"
    spark.sql(f"ALTER TABLE lake.tpch.orders SET TBLPROPERTIES ({target})")  # type: ignore[attr-defined]
    for day in range(9):
        new = f"SELECT * FROM lake.tpch.orders WHERE o_orderkey % 30 = {day}"
        spark.sql(f"INSERT INTO lake.tpch.orders {new}")  # type: ignore[attr-defined]
    spark.sql("DELETE FROM lake.tpch.orders WHERE o_orderkey % 2 = 0")  # type: ignore[attr-defined]
    before = rows_of(spark)
    show(rookery.table("lake.tpch.orders", lake).status(columns=False))

    step("rookery maintain --dry-run: what would be done, and why, without Spark")
    show(lake.maintain("tpch.orders", dry_run=True))

    step("rookery maintain: each step is verified")
    show(lake.maintain("tpch.orders"))
    found = rookery.table("lake.tpch.orders", lake).status(columns=False).tables[0]
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
    """The number of rows that the optimizer estimates; 0 if it has no estimate, as without statistics."""
    count = frame._jdf.queryExecution().optimizedPlan().stats().rowCount()  # type: ignore[attr-defined]
    return int(str(count.get())) if count.isDefined() else 0


if __name__ == "__main__":
    try:
        main()
    except RookeryError as error:
        talk().print(f"error: {error.message}\nhint: {error.hint}", markup=False)
        sys.exit(2)
