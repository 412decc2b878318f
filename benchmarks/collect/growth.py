"""A refresh costs what the new file costs, however large the table is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import rookery
from benchmarks.collect.data import SMALL_ROWS, append_copy, append_small, lineitem, small_table
from benchmarks.harness import Effort, Measure, Row
from benchmarks.lake import Bench, counted
from rookery.api.analyze import AnalyzeReport
from rookery.io import local_path

COUNTS = (24, 240, 2_400)
MANY = 240
MOST_GROWTH = 1.5
SHARE_OF_FULL = 15
APPENDS = 7


@dataclass
class Refreshes:
    """What refreshes of one table took, one after each appended file."""

    table: str
    files: int
    seconds: list[float] = field(default_factory=list)
    read: list[int] = field(default_factory=list)  # bytes of the appended file
    sizes: list[int] = field(default_factory=list)
    read_elsewhere: int = 0  # bytes of other data files


def rows(bench: Bench, effort: Effort) -> Iterator[Row | Measure]:
    yield from _small(bench, effort)
    yield from _beside_full(bench, effort)


def _small(bench: Bench, effort: Effort) -> Iterator[Row | Measure]:
    counts = [effort.of(count) for count in COUNTS]
    appends = min(APPENDS, effort.rounds)
    runs = [Refreshes(f"made.small_{number}", count) for number, count in enumerate(counts)]
    tables = [small_table(bench, run.table, run.files) for run in runs]
    for run in runs:
        _analyze(bench, run.table)
    for number in range(appends + 1):
        for run, table in zip(runs, tables, strict=True):
            (added,) = append_small(bench, table, [max(counts) + number])
            warm = Refreshes(run.table, run.files) if number == 0 else run
            _refresh(bench, warm, added.file_path, added.file_size_in_bytes)
    first = runs[0]
    for run in runs[1:]:
        what = f"refresh after one file, of {run.files:,}"
        said = f"{SMALL_ROWS:,} rows a file, median of {appends}"
        peer = f"the same, of {first.files:,}"
        yield Row(what, said, median(run.seconds), peer, median(first.seconds), 1 / MOST_GROWTH)
    for run in runs:
        data = f"{run.files:,} files"
        size = median(run.sizes)
        yield Measure("bytes read of the new file", data, median(run.read), "bytes", size, "its size", size)
        yield Measure("bytes read of other files", data, run.read_elsewhere, "bytes", 0)


def _beside_full(bench: Bench, effort: Effort) -> Iterator[Row]:
    """A refresh beside a full run, where the files are as large as those of a real table."""
    files = effort.of(MANY)
    name = lineitem(bench, files, effort)
    rounds = min(APPENDS, effort.rounds)
    _analyze(bench, name, full=True)
    run, whole = Refreshes(name, files), []
    for number in range(rounds + 1):
        size = append_copy(bench, name)
        warm = Refreshes(name, files) if number == 0 else run
        _refresh(bench, warm, None, size)
        whole.append(_analyze(bench, name, full=True)[1])
    yield Row(
        f"refresh after one file, of {files:,}",
        f"lineitem, {files:,} files, medians of {rounds}",
        median(run.seconds),
        "a full run",
        median(whole[1:]),
        SHARE_OF_FULL,
    )


def _analyze(bench: Bench, name: str, full: bool = False) -> tuple[AnalyzeReport, float]:
    started = time.perf_counter()
    report = rookery.analyze(bench.spark, name, full=full, lake=bench.lake)
    return report, time.perf_counter() - started


def _refresh(bench: Bench, run: Refreshes, path: str | None, size: int) -> None:
    with counted() as read:
        report, seconds = _analyze(bench, run.table)
    assert report.files_read == 1
    data = {name: count for name, count in read.items() if name.endswith(".parquet")}
    run.seconds.append(seconds)
    run.sizes.append(size)
    run.read.append(report.bytes_read)
    if path is not None:
        run.read_elsewhere += sum(count for name, count in data.items() if name != local_path(path))
