"""Run benchmarks, print their tables, and keep them in benchmarks/results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.harness import Effort, Report

RESULTS = Path(__file__).parent / "results"
NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if path.stem != "harness"))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"among {', '.join(NAMES)}; none: all")
    parser.add_argument("--quick", action="store_true", help="small data and few rounds: does it run?")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the tables are kept")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark '{unknown[0]}'; there is {', '.join(NAMES)}")
    effort = Effort.quick() if options.quick else Effort.full()
    for name in options.names or NAMES:
        module = import_module(f"benchmarks.{name}")
        report = Report.of(name, module.TITLE, effort, module.rows(effort))
        report.show()
        report.write(options.results)
    return 0  # a peer that wins is a finding for people, not a failure


if __name__ == "__main__":
    sys.exit(main())
