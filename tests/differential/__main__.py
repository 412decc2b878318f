"""The command: random tables and predicates for some seconds, or one case once more."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rookery
from tests.differential.history import World
from tests.differential.run import Find, Size, Tally, prepared, run_case
from tests.interop.java import IcebergJava

PROGRESS_SECONDS = 10.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=None, help="the same seed makes the same cases")
    parser.add_argument("--case", type=int, default=None, help="run this case alone")
    parser.add_argument("--predicates", type=int, default=Size.predicates, help="of each table")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first find")
    return parser.parse_args()


@contextmanager
def world() -> Iterator[World]:
    """A session with a catalog of its own, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="rookery-differential-") as home:
        os.environ["ROOKERY_HOME"] = os.environ["PYICEBERG_HOME"] = home
        lake = rookery.connect("lake")
        spark = lake.spark()
        spark.sql("CREATE NAMESPACE IF NOT EXISTS db")
        try:
            with prepared(spark):
                yield World(spark, lake, IcebergJava(spark))
        finally:
            spark.stop()


def main() -> int:
    asked = arguments()
    seed = str(int(time.time())) if asked.seed is None else asked.seed
    tally, found, number = Tally(), 0, 0 if asked.case is None else asked.case
    size = Size(predicates=asked.predicates)
    sys.stdout.write(f"seed {seed}\n")
    with world() as lived:
        started = told = time.monotonic()
        while True:
            try:
                run_case(lived, seed, number, tally, size)
            except Find as find:
                found += 1
                sys.stdout.write(f"--- a find:\n{find}\n")
                sys.stdout.flush()
            seconds = time.monotonic() - started
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                sys.stderr.write(f"case {number}, {tally.cases / seconds:.0f} a second: {tally}\n")
            number += 1
            if asked.case is not None or seconds >= asked.seconds or (found and not asked.keep_going):
                break
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"{tally} in {seconds:.0f} s, {tally.cases / seconds:.0f} a second; seed {seed}, {found} finds\n"
    )
    for reason, count in tally.refusals.most_common(8):
        sys.stdout.write(f"  {count} refused: {reason}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
