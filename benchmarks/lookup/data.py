"""The table: files of events with an unsorted unique key, and a copy with Parquet's own Bloom filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from itertools import count

import numpy as np

from benchmarks.harness import Effort
from benchmarks.lake import CATALOG, Bench, sizes
from rookery.api.table import TableHandle
from rookery.io import local_path

FILES = 400
ROWS = 50_000
FPP = 0.001
NAME = "made.events"
COPY = "made.events_parquet_bloom"
START = 1_700_000_000_000_000  # in microseconds; one event a second from then on, each up to a minute late
COLUMNS = (
    "md5(cast(id AS string)) AS k",
    "concat('s', pmod(xxhash64(id), 20)) AS status",
    "rand(7) AS price",
    f"timestamp_micros({START} + id * 1000000 + pmod(xxhash64(id, 2), 60000000)) AS ts",
)


@dataclass(frozen=True)
class Lookup:
    """The tables, and keys to ask for."""

    bench: Bench
    files: int
    rows: int
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))
    _absent: count[int] = field(default_factory=count)

    @property
    def described(self) -> str:
        return f"{self.files:,} files × {self.rows:,} rows"

    def handle(self) -> TableHandle:
        return self.bench.handle(NAME)

    def sizes(self, name: str = NAME) -> Mapping[str, int]:
        return sizes(self.bench.table(name))

    def paths(self) -> list[str]:
        return [local_path(path) for path in self.sizes()]

    def present(self, number: int) -> list[str]:
        """Keys that are there; which ones differs from call to call."""
        rows = self._random.choice(self.files * self.rows, number, replace=False)
        return [_digest(str(row)) for row in rows.tolist()]

    def absent(self, number: int) -> list[str]:
        """Keys that are not there."""
        return [_digest(f"absent-{next(self._absent)}") for _ in range(number)]


def _digest(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def where(key: str) -> str:
    return f"k = '{key}'"


def made(bench: Bench, effort: Effort) -> Lookup:
    """The tables, made if they are missing. Parquet's filters get our rate, and the right size."""
    lookup = Lookup(bench, effort.of(FILES), effort.of(ROWS))
    _make(lookup, NAME, {})
    properties = {
        "bloom-filter-enabled.column.k": "true",
        "bloom-filter-fpp.column.k": str(FPP),
        "bloom-filter-ndv.column.k": str(lookup.rows),
    }
    _make(lookup, COPY, {f"write.parquet.{name}": value for name, value in properties.items()})
    return lookup


def _make(lookup: Lookup, name: str, properties: Mapping[str, str]) -> None:
    if lookup.bench.exists(name):
        return
    frame = lookup.bench.spark.range(0, lookup.files * lookup.rows, 1, lookup.files).selectExpr(*COLUMNS)
    writer = frame.writeTo(f"{CATALOG}.{name}").tableProperty("format-version", "2")
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    assert len(lookup.sizes(name)) == lookup.files
