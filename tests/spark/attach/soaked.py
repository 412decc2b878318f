"""A program with many queries and sessions in one JVM: what it holds before and after them, as JSON."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import active_count
from typing import Any

from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.spark.attach.planner import Planner

FILES, ROWS = 8, 500
WARM_UP, QUERIES, THREADS, SESSIONS, FEW = 300, 1000, 8, 50, 5
TABLE = "lake.db.events"
SETTINGS = {
    # Each query is to be cheap: none is compiled, and Spark keeps no history of them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "20",
    "spark.sql.ui.retainedExecutions": "20",
}


def make(spark: SparkSession, lake: Lake) -> None:
    """A table in which only the sketches and the Bloom index tell where a key is."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS db")
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, key string) USING iceberg")
    made = spark.range(0, FILES * ROWS, 1, FILES).selectExpr("id", "md5(cast(id AS string)) AS key")
    made.writeTo(TABLE).option("distribution-mode", "none").append()
    rookery.table(TABLE, lake).add_index("bloom", "key")
    rookery.analyze(spark, TABLE, lake=lake)


def ask(spark: SparkSession, number: int) -> bool:
    """One key of another literal each time; some are in no file."""
    rows = spark.sql(f"SELECT id FROM {TABLE} WHERE key = md5('{number}')").collect()
    return [row.id for row in rows] == [number][: number < FILES * ROWS]


def ask_all(spark: SparkSession, numbers: range) -> float:
    started = time.monotonic()
    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(lambda number: ask(spark, number), numbers))
    return time.monotonic() - started


def resident(process: int | str) -> int:
    (line,) = (
        line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return int(line.split()[1]) << 10


def collect(spark: SparkSession, is_done: Callable[[], bool]) -> None:
    """Collect garbage until something is true, for a bounded time: Spark cleans up on another thread."""
    jvm: Any = spark._jvm
    end = time.monotonic() + 60
    while True:
        gc.collect()
        jvm.java.lang.System.gc()
        jvm.java.lang.System.runFinalization()
        if is_done() or time.monotonic() > end:
            return


def heap(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def held(spark: SparkSession) -> dict[str, int]:
    """Threads, files and memory of both processes, without what garbage collection frees."""
    jvm: Any = spark._jvm
    sizes = [heap(spark)]

    def is_stable() -> bool:
        sizes.append(heap(spark))
        # Spark's cleaner removes the broadcasts of earlier queries one by one, on a thread of its own.
        blocks = jvm.org.apache.spark.SparkEnv.get().memoryManager().storageMemoryUsed()
        return not blocks and len(sizes) > 6 and max(sizes[-6:]) - min(sizes[-6:]) < 1 << 20

    collect(spark, is_stable)
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    return {
        "python threads": active_count(),
        "python files": len(os.listdir("/proc/self/fd")),
        "python resident": resident("self"),
        "java threads": int(jvm.java.lang.management.ManagementFactory.getThreadMXBean().getThreadCount()),
        "java files": len(os.listdir(f"/proc/{process}/fd")),
        "java heap": sizes[-1],
        "java resident": resident(process),
    }


def planners() -> int:
    """How many planners there are, each with a cache or a share in one."""
    return sum(isinstance(each, Planner) for each in gc.get_objects())


def drop_sessions(spark: SparkSession) -> int:
    """Attach sessions and drop them without `detach`; return how many planners are left."""
    made = [spark.newSession() for _ in range(SESSIONS)]
    for number, session in enumerate(made):
        if number % 2:
            rookery.attach(session, least_bytes=0)
            assert ask(session, number)
        else:
            rows = rookery.sql(session, f"SELECT id FROM {TABLE} WHERE id = {number}").collect()
            assert [row.id for row in rows] == [number]
    assert planners() == SESSIONS + 1
    del made, session
    # The next query drops what was kept for them. A thread that Spark started for one may hold it for long.
    collect(spark, lambda: ask(spark, 5) and planners() <= FEW)
    return planners()


def begin_again(lake: Lake) -> str:
    """What a session after the first reads of the table."""
    spark = lake.spark(conf=SETTINGS)
    frame = spark.sql(f"SELECT id FROM {TABLE} WHERE key = md5('77')")
    assert [row.id for row in frame.collect()] == [77]
    (query,) = rookery.queries(spark, last=1).queries
    spark.stop()
    return f"{query.tables[0].files_read} of {query.tables[0].files}"


def main() -> None:
    lake = rookery.connect("lake")
    spark = lake.spark(conf=SETTINGS)
    make(spark, lake)
    ask_all(spark, range(FILES * ROWS - WARM_UP, FILES * ROWS))
    told: dict[str, Any] = {"before": held(spark)}
    told["seconds"] = ask_all(spark, range(FILES * ROWS - WARM_UP - QUERIES // 2, FILES * ROWS - WARM_UP))
    told["seconds"] += ask_all(spark, range(FILES * ROWS, FILES * ROWS + QUERIES // 2))
    told["after"] = held(spark)
    told["planners"] = drop_sessions(spark)
    told["after sessions"] = held(spark)
    spark.stop()
    told["again"] = begin_again(lake)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
