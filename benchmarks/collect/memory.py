"""The driver's memory for a table of many files: its growth over a whole run, in a process of its own.

Reading is replaced by making up what it would find, of the size that it would have; all else is the real
run: tasks on executors, merging, segments, state, registration.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyspark import cloudpickle

import rookery
from benchmarks.collect.data import wide_table
from benchmarks.harness import Effort, Measure
from benchmarks.lake import Bench, beside, forget, open_bench, resident
from rookery.collect import run
from rookery.collect.plan import Task
from rookery.collect.task import Costs, Partial
from rookery.sketch import InvertedTheta, K

FILES = 50_000
LIMIT = 1 << 30
FILES_PER_HASH = 4


def rows(bench: Bench, effort: Effort) -> Iterator[Measure]:
    files = effort.of(FILES)
    name = wide_table(bench, files)
    forget(bench, name)
    words = ["--data", str(effort.data.absolute()), "--scale", str(effort.scale)]
    ran = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import main; main()", *words],
        check=True,
        stdout=subprocess.PIPE,
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    data = f"{files:,} files, 16 columns, {found['kept'] / 1e6:.0f} MB of segments"
    yield Measure("growth of the driver's memory, full run", data, found["growth"], "bytes", LIMIT)
    yield Measure("the same run's time", data, found["seconds"], "s")


def made_up(task: Task, io_properties: Mapping[str, str]) -> Partial:
    """What reading a task's files would find in columns of many distinct values."""
    random = np.random.default_rng(task.files[0].ordinal)
    thetas = {}
    for column in task.fields:
        count = int(random.integers(K, 2 * K))
        hashes = np.unique(random.integers(1, 1 << 52, count, np.uint64))
        bits = np.zeros((len(hashes), task.group_size), bool)
        bits[np.arange(len(hashes)), random.integers(0, task.group_size, len(hashes))] = True
        for _ in range(FILES_PER_HASH - 1):
            bits[np.arange(len(hashes)), random.integers(0, task.group_size, len(hashes))] = True
        packed = np.packbits(bits, axis=1, bitorder="little")
        thetas[column.id] = InvertedTheta(hashes, packed, 1 << 52, task.group_size)
    return Partial(task.group, thetas, Costs(files=len(task.files)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    options = parser.parse_args()
    effort = replace(Effort.quick(), data=options.data, scale=options.scale)
    bench = open_bench(effort)
    name = wide_table(bench, effort.of(FILES))
    # Executors have Rookery, but not this module: it travels with the tasks.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    run.run_task = made_up
    before = resident()
    report = rookery.analyze(bench.spark, name, full=True, lake=bench.lake)
    grown = resident("VmHWM") - before
    kept = sum(file.stat().st_size for file in beside(bench, name).iterdir())
    bench.spark.stop()
    assert report.files_read == effort.of(FILES)
    print(json.dumps({"growth": grown, "seconds": report.seconds, "kept": kept}))
