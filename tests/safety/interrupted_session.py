"""A program that is interrupted while it maintains, and then uses its session: `… TABLE POLICY HISTORY`."""

from __future__ import annotations

import json
import os
import sys
import threading

import rookery

_LOOKS, _LOOK = 600, 0.1  # for a minute


def main(table: str, policy: str, history: str) -> None:
    lake = rookery.connect("lake")
    spark = lake.spark(conf={"spark.driver.memory": "512m", "spark.ui.enabled": "false"})
    try:
        lake.maintain(table, policy=policy, history=history)
    except KeyboardInterrupt:
        interrupted = True
    else:
        interrupted = False
    jobs = spark.sparkContext.statusTracker()
    pause = threading.Event()
    for _ in range(_LOOKS):
        if not jobs.getActiveJobsIds():
            break
        pause.wait(_LOOK)
    told = {"interrupted": interrupted, "jobs": len(jobs.getActiveJobsIds()), "rows": spark.range(3).count()}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)  # stopping Spark would wait for the task that is held up


if __name__ == "__main__":
    main(*sys.argv[1:])
