"""A process that analyses a table and at a step kills itself, without a word: `… TABLE STEP`.

The JVM is that of whoever started it: at those steps it has nothing to do.
"""

from __future__ import annotations

import os
import signal
import sys

import rookery
from tests.safety.attached import attached
from tests.safety.steps import STEPS, at


def main(table: str, step: str) -> None:
    lake, spark = rookery.connect("lake"), attached()
    with at(STEPS[step], lambda: os.kill(os.getpid(), signal.SIGKILL)):
        rookery.analyze(spark, table, lake=lake)


if __name__ == "__main__":
    main(*sys.argv[1:])
