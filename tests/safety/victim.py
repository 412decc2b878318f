"""A process that analyses a table and at a step kills itself, without a word: `… TABLE STEP`."""

from __future__ import annotations

import os
import signal
import sys

import rookery
from tests.safety.steps import STEPS, at


def main(table: str, step: str) -> None:
    lake = rookery.connect("lake")
    spark = lake.spark(conf={"spark.driver.memory": "512m"})
    with at(STEPS[step], lambda: os.kill(os.getpid(), signal.SIGKILL)):
        rookery.analyze(spark, table, lake=lake)


if __name__ == "__main__":
    main(*sys.argv[1:])
