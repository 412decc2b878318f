"""Ways to learn how tables stand, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyiceberg.manifest import clear_manifest_cache

from benchmarks.lake import open_lake
from rookery.api.lake import Lake
from rookery.api.status import status
from rookery.maintain.policies.policy import DEFAULT
from rookery.maintain.status import table_status
from rookery.sidecar import Store


def status_all(lake: Lake, name: str) -> None:
    report = status(lake, ["many.*"])
    assert not report.failed
    assert {table.statistics.freshness.value for table in report.tables} == {"never", "current", "stale"}


def status_one(lake: Lake, name: str) -> None:
    found = table_status(*lake.open(name), DEFAULT, now=time.time(), columns=True)
    assert found.statistics.freshness.value == "stale"
    assert found.statistics.changes.files_added == found.layout.files // 101


def status_unknown(lake: Lake, name: str) -> None:
    table, store = lake.open(name)
    nothing = Store(f"{store.location}-none", store.io_properties)
    found = table_status(table, nothing, DEFAULT, now=time.time(), columns=True)
    assert found.statistics.freshness.value == "never"


def inspect_all(lake: Lake, name: str) -> None:
    for each in lake.find("many.*"):
        _inspect(lake, str(each))


def inspect_one(lake: Lake, name: str) -> None:
    clear_manifest_cache()
    _inspect(lake, name)


def _inspect(lake: Lake, name: str) -> None:
    """What a person would ask PyIceberg for to learn as much of the layout; it has nothing of statistics."""
    inspect = lake.load(name).inspect
    for found in (inspect.files, inspect.partitions, inspect.manifests, inspect.snapshots, inspect.refs):
        assert found().num_rows


WAYS = {
    "status-all": status_all,
    "status": status_one,
    "status-unknown": status_unknown,
    "inspect-all": inspect_all,
    "inspect": inspect_one,
}

ROUNDS = {"status-all": 2, "inspect-all": 1}  # in a process


def main() -> None:
    folder, way, *words = sys.argv[1:]
    lake = open_lake(Path(folder))
    name = words[0] if words else ""
    lake.load(name) if name else lake.find("many.*")  # the catalog's libraries are no part of it
    times = []
    for number in range(ROUNDS.get(way, 3)):
        started = time.perf_counter()
        WAYS[way](lake, name)
        times.append(time.perf_counter() - started)
        if not number:
            process = time.clock_gettime(time.CLOCK_BOOTTIME) - _begun()
    assert "pyspark" not in sys.modules
    print(json.dumps({"seconds": times[0], "again": min(times), "process": process}))


def _begun() -> float:
    """When this process began, in seconds since the machine did."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
