"""The command: fuzz for some seconds, or drive the files that are named once more."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.batch import watched
from tests.fuzz.drive import drive
from tests.fuzz.workers import Plan, Worker, run

FOLDER = Path("build/fuzz")
PROGRESS_SECONDS = 10.0


class Progress:
    """A line to standard error every ten seconds."""

    def __init__(self) -> None:
        self.started = self.told = time.monotonic()

    def __call__(self, team: list[Worker]) -> None:
        if time.monotonic() - self.told >= PROGRESS_SECONDS:
            self.told = time.monotonic()
            sys.stderr.write(self.line(team) + "\n")
            sys.stderr.flush()

    def line(self, team: list[Worker]) -> str:
        seconds = time.monotonic() - self.started
        inputs = sum(worker.inputs for worker in team)
        failures = sum(worker.failures for worker in team)
        outcomes = set().union(*(worker.outcomes for worker in team))
        return (
            f"{inputs:,} inputs in {seconds:.0f} s, {inputs / seconds:,.0f} a second, "
            f"{len(outcomes)} distinct outcomes, {failures} failures"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="drive these again instead of fuzzing")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-mib", type=int, default=1024, help="address space of each worker")
    parser.add_argument("--seed", type=int, default=None, help="the same seed makes the same inputs")
    parser.add_argument("--outcomes", action="store_true", help="list the distinct outcomes at the end")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    if asked.files:
        with watched():
            for path in asked.files:
                sys.stdout.write(f"{path}: {', '.join(sorted(drive(path.read_bytes(), True)))}\n")
        return 0
    seed = int(time.time()) if asked.seed is None else asked.seed
    plan = Plan(asked.seconds, seed, asked.memory_mib, FOLDER)
    progress = Progress()
    team = run(plan, asked.workers, progress)
    if asked.outcomes:
        for outcome in sorted(set().union(*(worker.outcomes for worker in team))):
            sys.stdout.write(outcome + "\n")
    sys.stdout.write(f"{progress.line(team)}; seed {seed}\n")
    failed = any(worker.failures for worker in team)
    if failed:
        sys.stdout.write(f"the inputs that failed are in {FOLDER}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
