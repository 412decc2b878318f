"""The memory that planning takes, each way in a process of its own with no JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Effort, Measure
from benchmarks.lake import is_known, open_lake, resident
from benchmarks.plan.planning import SURVIVORS, Plan, plan_ours, plan_pyiceberg

WAYS = {"rookery": plan_ours, "pyiceberg": plan_pyiceberg}


def rows(plan: Plan, effort: Effort) -> Iterator[Measure]:
    ours, theirs = (_measured(plan, way) for way in WAYS)
    for what, key in (("memory after planning", "held"), ("peak memory while planning", "most")):
        yield Measure(what, plan.described, ours[key], "bytes", None, "PyIceberg", theirs[key])


def _measured(plan: Plan, way: str) -> dict[str, int]:
    words = [str(plan.bench.folder), plan.name, str(plan.value), way]
    code = f"from {__name__} import main; main()"
    ran = subprocess.run([sys.executable, "-c", code, *words], check=True, stdout=subprocess.PIPE)
    found: dict[str, int] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main() -> None:
    folder, name, value, way = sys.argv[1:]
    lake = open_lake(Path(folder))
    lake.load(name)  # the catalog's libraries are no part of planning
    before = resident()
    assert WAYS[way](lake, name, int(value)) == SURVIVORS
    found = {"held": resident() - before, "most": resident("VmHWM") - before}
    assert is_known(lake, name)
    print(json.dumps(found))
