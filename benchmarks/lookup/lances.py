"""Lance: the same rows in a dataset with a BTREE on the key. It is no dependency, so it may be missing."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.dataset as ds

from benchmarks.lookup.data import Lookup, where

HOW = "Lance is left out; to have it: .venv/bin/pip install -r benchmarks/requirements-peers.txt"

try:
    import lance
except ImportError:
    lance: ModuleType | None = None  # type: ignore[no-redef]


@dataclass(frozen=True)
class Dataset:
    """Where it lies, and what its index took to build."""

    path: str
    seconds: float
    index_bytes: int


def made(lookup: Lookup) -> Dataset | None:
    """The dataset, made if it is missing; None where there is no Lance."""
    if lance is None:
        print(HOW, file=sys.stderr)
        return None
    noted = lookup.bench.folder / "events.lance.json"
    if not noted.exists():
        noted.write_text(json.dumps(asdict(_make(lookup, lookup.bench.folder / "events.lance"))))
    return Dataset(**json.loads(noted.read_text()))


def _make(lookup: Lookup, path: Path) -> Dataset:
    rows = ds.dataset(lookup.paths(), format="parquet").scanner().to_reader()
    dataset = lance.write_dataset(rows, str(path), mode="overwrite")
    started = time.perf_counter()
    dataset.create_scalar_index("k", "BTREE")
    seconds = time.perf_counter() - started
    indexes = (file for file in (path / "_indices").rglob("*") if file.is_file())
    return Dataset(str(path), seconds, sum(file.stat().st_size for file in indexes))


class Warm:
    """A dataset that stays open."""

    def __init__(self, path: str) -> None:
        self._dataset = lance.dataset(path)

    def __call__(self, key: str) -> pa.Table:
        return self._dataset.scanner(filter=where(key)).to_table()


class Cold:
    """A dataset that is opened for each question."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, key: str) -> pa.Table:
        return lance.dataset(self._path).scanner(filter=where(key)).to_table()
