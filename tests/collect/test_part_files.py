"""Large parts of indexes come from executors by files beside the table, and leave none behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.collect import part_files, run
from rookery.collect.part_files import LEAST_BYTES, IndexRow, read_part_file, write_part_file
from rookery.model import MachineError
from rookery.sidecar import Store, part_name, store_of
from rookery.sidecar.checksums import DamagedError
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[IndexRow] = [(0, 7, os.urandom(LEAST_BYTES)), (1, 0, b"x"), (1, 3, memoryview(b"yz"))]


def test_rows_come_back_and_the_file_is_gone(tmp_path: Path) -> None:
    file = write_part_file(ROWS, str(tmp_path), {})
    assert file is not None
    assert [path.name for path in tmp_path.iterdir()] == [file.path.rpartition("/")[2]]
    found = [
        (number, within, bytes(payload)) for number, within, payload in read_part_file(file.encode(), {})
    ]
    assert found == [(number, within, bytes(payload)) for number, within, payload in ROWS]
    assert not list(tmp_path.iterdir())


def test_few_bytes_need_no_file(tmp_path: Path) -> None:
    assert write_part_file([(0, 0, bytes(LEAST_BYTES - 1))], str(tmp_path), {}) is None
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    assert write_part_file(ROWS, str(tmp_path / "nowhere"), {}) is None


@pytest.mark.parametrize("change", ["flip", "cut", "gone"])
def test_a_file_that_is_not_what_was_written(tmp_path: Path, change: str) -> None:
    file = write_part_file(ROWS, str(tmp_path), {})
    assert file is not None
    path = Path(file.path)
    data = bytearray(path.read_bytes())
    if change == "gone":
        path.unlink()
    elif change == "cut":
        path.write_bytes(data[:-1])
    else:
        data[5] ^= 1
        path.write_bytes(data)
    with pytest.raises(MachineError if change == "gone" else DamagedError):
        list(read_part_file(file.encode(), {}))


def test_what_a_killed_run_has_left_is_garbage(tmp_path: Path) -> None:
    store = Store(str(tmp_path), {})
    old = part_name()
    (tmp_path / old).write_bytes(b"old")
    assert store.garbage("uuid", []) == []
    assert store.collect_garbage("uuid", [], now=time.time() + 2 * 24 * 3600) == [old]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "part-00000-3f1c9d7a-aaaa-4bbb-8ccc-0123456789ab-c000.snappy.parquet",  # of Spark
        f"part-{'0' * 32}.bin",
        f"index-part-{'0' * 31}.bin",
        f"my-index-part-{'0' * 32}.bin",
        "segment-of-the-orange.puffin",
        "index-part-.bin",
    ],
)
def test_files_of_others_are_not_garbage(tmp_path: Path, name: str) -> None:
    """`rookery.location` may be a folder in which others keep theirs."""
    (tmp_path / name).write_bytes(b"live")
    assert Store(str(tmp_path), {}).collect_garbage("uuid", [], now=time.time() + 1e9) == []
    assert (tmp_path / name).exists()


def test_filters_of_many_megabytes(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = new_table("k bigint")
    for start in (0, 1_000_000):
        spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range({start}, {start} + 600000, 2)")
    read: list[int] = []

    def counting(stated: bytes, io_properties: Mapping[str, str]) -> Iterator[IndexRow]:
        for row in part_files.read_part_file(stated, io_properties):
            read.append(len(row[2]))
            yield row

    monkeypatch.setattr(run, "read_part_file", counting)
    monkeypatch.setattr(run, "LOCAL_BYTES", 0)
    handle = rookery.table(name, lake)
    handle.add_index("bloom", "k", fpp=1e-6)
    rookery.analyze(spark, name, lake=lake)
    assert len(read) == 2
    assert min(read) > LEAST_BYTES
    table, _ = lake.open(name)
    folder = Path(store_of(table).location.removeprefix("file://"))
    assert not [path for path in folder.iterdir() if "part-" in path.name]
    assert len(handle.explain("k = 1000001").files) == 0  # between two keys: bounds say nothing of it
    assert [handle.count(f"k = {key}") for key in (0, 599_998, 1_000_002, 1_599_999)] == [1, 1, 1, 0]
