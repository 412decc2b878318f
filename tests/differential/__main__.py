"""The command: random tables, predicates and queries up to a time or count, or one case once more."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rookery
from tests.differential.run import Size, run_case
from tests.differential.tally import Tally
from tests.differential.world import Find, World, world_of

PROGRESS_SECONDS = 10.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=None, help="no case is begun after that")
    parser.add_argument("--tables", type=int, default=0, help="at least so many")
    parser.add_argument("--predicates", type=int, default=0, help="at least so many, over all tables")
    parser.add_argument("--queries", type=int, default=0, help="at least so many, over all tables")
    parser.add_argument("--seed", default=None, help="the same seed makes the same cases")
    parser.add_argument("--case", type=int, default=None, help="run this case alone")
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    parser.add_argument("--memory", default="2g", help="of the JVM")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first find")
    return parser.parse_args()


@contextmanager
def world(memory: str) -> Iterator[World]:
    """A session with a catalog of its own, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="rookery-differential-") as home:
        os.environ["ROOKERY_HOME"] = os.environ["PYICEBERG_HOME"] = home
        lake = rookery.connect("lake")
        spark = lake.spark(conf={"spark.driver.memory": memory})
        spark.sql("CREATE NAMESPACE IF NOT EXISTS db")
        try:
            with world_of(spark, lake) as lived:
                yield lived
        finally:
            spark.stop()


def enough(asked: argparse.Namespace, tally: Tally, seconds: float) -> bool:
    """Whether all counts are reached, or the time is over; without either, one minute."""
    counts = asked.tables, asked.predicates, asked.queries
    if asked.seconds is not None or not any(counts):
        return seconds >= (asked.seconds or 60)
    done = tally.tables, tally.predicates, tally.queries.total()
    return all(have >= wanted for have, wanted in zip(done, counts, strict=True))


def main() -> int:
    asked = arguments()
    seed = str(int(time.time())) if asked.seed is None else asked.seed
    tally, found = Tally(), 0
    number = asked.first if asked.case is None else asked.case
    sys.stdout.write(f"seed {seed}\n")
    with world(asked.memory) as lived:
        started = told = time.monotonic()
        while True:
            try:
                run_case(lived, seed, number, tally, Size(), keep_going=asked.keep_going)
            except Find as find:
                found += 1
                sys.stdout.write(f"--- a find:\n{find}\n")
                sys.stdout.flush()
            seconds = time.monotonic() - started
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                sys.stderr.write(f"case {number}, {seconds:.0f} s: {tally}\n")
            number += 1
            if asked.case is not None or enough(asked, tally, seconds) or (found and not asked.keep_going):
                break
    seconds = time.monotonic() - started
    sys.stdout.write(f"{tally}\n{tally.details()}\n{seconds:.0f} s, seed {seed}, {found} finds\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
