"""Run benchmarks, print their tables, and keep them: of full size in benchmarks/results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from benchmarks.harness import PACKAGES, Effort, Report, told

RESULTS = Path(__file__).parent / "results"
NAMES = ("attach", "cold", "collect", "discover", "estimate", "lookup", "plan", "puffin", "status")
DEFAULT = ("puffin",)  # the others take minutes, and a JVM


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"among {', '.join(NAMES)}; none: {', '.join(DEFAULT)}"
    )
    parser.add_argument("--quick", action="store_true", help="small data and few rounds: does it run?")
    parser.add_argument("--scale", type=float, help="the size of the data; 1 is what the targets are set for")
    parser.add_argument("--data", type=Path, help="where data is kept between runs")
    parser.add_argument(
        "--results", type=Path, help="where the tables are kept; of small data, with the data"
    )
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark '{unknown[0]}'; there is {', '.join(NAMES)}")
    effort = Effort.quick() if options.quick else Effort.full()
    effort = replace(effort, scale=options.scale or effort.scale, data=options.data or effort.data)
    small = effort.data / f"scale-{effort.scale:g}" / "results"
    results = options.results or (RESULTS if effort.scale >= 1 else small)
    for name in options.names or DEFAULT:
        module = import_module(f"benchmarks.{name}")
        packages = getattr(module, "PACKAGES", PACKAGES)
        report = Report.of(name, module.TITLE, effort, told(module.rows(effort)), packages)
        report.show()
        report.write(results)
    return 0  # a peer that wins is a finding for people, not a failure


if __name__ == "__main__":
    sys.exit(main())
