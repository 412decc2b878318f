"""The product's main job on the embedded default, from nothing: run by `make demo`.

TPC-H data goes into two Iceberg tables, Iceberg computes its statistics, some rows are deleted, and the
Puffin files that all this leaves are shown.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import rookery
from rookery.api import puffin_files
from rookery.cli import views as views  # the views register themselves
from rookery.cli.render import as_text, out, talk
from rookery.model import RookeryError

HOME = Path("build/demo").absolute()
SCALE = "0.1"
TABLES = ("orders", "lineitem")


def step(words: str) -> None:
    talk().print(f"[bold green]▸[/] {words}")


def generate(folder: Path) -> None:
    generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run(
        [generator, "parquet", "-s", SCALE, f"--tables={','.join(TABLES)}", f"--output-dir={folder}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def show(file: str) -> None:
    out().print(as_text(puffin_files.inspect(file)))
    out().print()


def main() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    os.environ["ROOKERY_HOME"] = str(HOME)
    lake = rookery.connect("lake")

    step(f"TPC-H orders and lineitem at scale {SCALE}")
    generate(HOME / "tpch")

    step(
        "a local Spark, and a SQLite catalog that PyIceberg reads too (the first time, Iceberg's jars are fetched)"
    )
    spark = lake.spark()
    spark.sql("CREATE NAMESPACE tpch")
    for table in TABLES:
        rows = spark.read.parquet(str(HOME / "tpch" / f"{table}.parquet"))
        rows.writeTo(f"lake.tpch.{table}").tableProperty("format-version", "3").tableProperty(
            "write.delete.mode", "merge-on-read"
        ).create()
        step(f"lake.tpch.{table}: {spark.table(f'lake.tpch.{table}').count():,} rows")

    step("Iceberg's own compute_table_stats leaves a Puffin file beside the table:")
    spark.sql("CALL lake.system.compute_table_stats(table => 'tpch.orders')").collect()
    [statistics] = lake.load("lake.tpch.orders").metadata.statistics
    show(statistics.statistics_path)

    step("so does a DELETE on a v3 table, with deletion vectors inside:")
    spark.sql("DELETE FROM lake.tpch.orders WHERE o_orderpriority = '1-URGENT' AND o_orderstatus = 'P'")
    [vectors] = spark.sql("SELECT DISTINCT file_path FROM lake.tpch.orders.delete_files").collect()
    show(vectors.file_path)

    step("and the same as rows, for SQL:")
    files = spark.read.format("puffin").load(lake.load("lake.tpch.orders").location())
    files.groupBy("type").agg({"*": "count", "length": "sum"}).show(truncate=False)
    spark.stop()
    step(
        "look around yourself: .venv/bin/rookery puffin inspect "
        + os.path.relpath(statistics.statistics_path[5:])
    )


if __name__ == "__main__":
    try:
        main()
    except RookeryError as error:
        talk().print(f"error: {error.message}\nhint: {error.hint}", markup=False)
        sys.exit(2)
