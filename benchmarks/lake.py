"""A lake of the benchmarks' own, and what they all do with its tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table

import rookery
from benchmarks.harness import Effort
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.io import LocalSource, local_path
from rookery.model.cache import clear_caches
from rookery.tables.config import HOME_VARIABLE, CatalogConfig, embedded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "bench"
NAMESPACES = ("tpch", "made", "many", "copied")


@dataclass(frozen=True)
class Bench:
    """The lake, a session that knows it, and where its data lies."""

    lake: Lake
    spark: SparkSession  # none, where a benchmark is to show what runs without a JVM
    folder: Path

    def table(self, name: str) -> Table:
        return self.lake.load(name)

    def handle(self, name: str) -> TableHandle:
        return rookery.table(name, self.lake)

    def exists(self, name: str) -> bool:
        return self.lake.catalog.table_exists(tuple(name.split(".")))


def open_bench(effort: Effort, *, jvm: bool = True) -> Bench:
    folder = effort.data.absolute() / f"scale-{effort.scale:g}"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(HOME_VARIABLE, str(folder))
    lake = open_lake(folder)
    bench = Bench(lake, lake.spark(attach=False) if jvm else None, folder)  # type: ignore[arg-type]
    for namespace in NAMESPACES:
        lake.catalog.create_namespace_if_not_exists(namespace)
    return bench


def open_lake(folder: Path) -> Lake:
    """The lake alone, for a process that has no JVM."""
    return Lake(CatalogConfig(CATALOG, embedded(folder).properties))


def sizes(table: Table) -> dict[str, int]:
    """The data files of a table with their sizes."""
    files = table.inspect.data_files()
    return dict(zip(files["file_path"].to_pylist(), files["file_size_in_bytes"].to_pylist(), strict=True))


def rolled_back(bench: Bench, name: str, files: int) -> str:
    """Take back what earlier runs have appended to a table of *files* files."""
    table = bench.table(name)
    for snapshot in table.metadata.snapshots:
        if snapshot.summary is not None and int(snapshot.summary["total-data-files"] or 0) == files:
            if snapshot.snapshot_id != table.metadata.current_snapshot_id:
                _take_back(bench, name, snapshot.snapshot_id)
            return name
    raise LookupError(f"{name} has no snapshot of {files} files; delete {bench.folder} to make it anew")


def _take_back(bench: Bench, name: str, snapshot_id: int) -> None:
    """Roll back, and expire what that leaves: metadata that grew with each run would slow the next."""
    now = datetime.now(UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    for call in (
        f"rollback_to_snapshot('{name}', {snapshot_id})",
        f"expire_snapshots(table => '{name}', older_than => TIMESTAMP '{now}', retain_last => 1)",
    ):
        bench.spark.sql(f"CALL {CATALOG}.system.{call}").collect()


def forget(bench: Bench, name: str) -> None:
    """Delete what earlier runs have left beside a table."""
    shutil.rmtree(beside(bench, name), ignore_errors=True)


def beside(bench: Bench, name: str) -> Path:
    """Where Rookery keeps what it knows of a table."""
    return Path(local_path(bench.table(name).location()) + ".rookery")


def generated(folder: Path, table: str, scale: float) -> Path:
    """A table of TPC-H as a Parquet file."""
    made = folder / f"{table}.parquet"
    if not made.exists():
        tool = str(Path(sys.executable).with_name("tpchgen-cli"))
        words = ["parquet", "-s", f"{scale:g}", f"--tables={table}", f"--output-dir={folder}"]
        subprocess.run([tool, *words], check=True, capture_output=True)
    return made


def made_anew(bench: Bench, name: str, schema: Schema) -> Table:
    """An empty table, whatever was there under its name."""
    identifier = tuple(name.split("."))
    if bench.exists(name):
        forget(bench, name)
        location = local_path(bench.table(name).location())
        bench.lake.catalog.drop_table(identifier)
        shutil.rmtree(location, ignore_errors=True)
    return bench.lake.catalog.create_table(identifier, schema, properties={"format-version": "2"})


def append_files(table: Table, files: Sequence[DataFile]) -> None:
    """Append files in one commit."""
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in files:
            append.append_data_file(file)


# -- caches


def is_known(lake: Lake, name: str) -> bool:
    """Whether a state that can be read knows every file: else something else would be measured."""
    first = rookery.table(name, lake).explain(None, inside=0).stages[0]
    return f", {first.files_in:,} of {first.files_in:,} file" in first.note  # "1 file known", "2 files known"


def forget_all() -> None:
    """Empty every cache of Rookery in this process, as a new process would begin."""
    for clear in _clears(len(sys.modules)):
        clear()


@lru_cache(maxsize=1)
def _clears(_: int) -> tuple[Callable[[], None], ...]:
    """What empties the caches; looked for again only when a module has been imported, as that takes long."""
    modules = [module for name, module in sys.modules.items() if name.startswith("rookery.")]
    found = {id(thing): thing for module in modules for thing in vars(module).values()}
    return (clear_caches, *(thing.cache_clear for thing in found.values() if hasattr(thing, "cache_clear")))


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the bytes that this process reads of each file, by its path."""
    read: Counter[str] = Counter()
    fetch = LocalSource._fetch

    def counting(source: LocalSource, offset: int, length: int) -> bytes:
        data = fetch(source, offset, length)
        read[local_path(source.name)] += len(data)
        return data

    LocalSource._fetch = counting  # type: ignore[method-assign]
    try:
        yield read
    finally:
        LocalSource._fetch = fetch  # type: ignore[method-assign]


def resident(which: str = "VmRSS") -> int:
    """This process's memory now, or at its highest. `getrusage` would count what the parent had, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(f"{which}:"))
    return int(found.split()[1]) * 1024
