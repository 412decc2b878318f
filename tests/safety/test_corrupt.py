"""Damaged, missing and foreign files beside a table: a warning, a rebuild, the right answer."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import RookeryError
from rookery.puffin import Blob, Writer
from rookery.sidecar import (
    FILES_SCHEMA,
    Contents,
    SegmentEntry,
    State,
    StateHeader,
    ZoneMap,
    open_segment,
    write_segment,
)
from rookery.sidecar.state import read_state, write_state
from rookery.sidecar.zone_map import nothing_known
from rookery.sketch import InvertedTheta, ThetaSketch
from tests.lakehouse import NewTable, tables
from tests.safety.watch import assert_right, folder, make_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20240501


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scramble(path: Path) -> None:
    path.write_bytes(random.Random(SEED).randbytes(path.stat().st_size))


def make_unreadable(path: Path) -> None:
    """A link to itself: it leads to no file."""
    path.unlink()
    path.symlink_to(path)


def replace_by_another(path: Path) -> None:
    """A good Puffin file, but of another kind."""
    path.unlink()
    with Writer(path) as writer:
        writer.add(Blob("of-somebody-else", b"payload"))


DAMAGES: list[Callable[[Path], None]] = [
    delete, truncate, empty, scramble, make_unreadable, replace_by_another
]  # fmt: skip


@dataclass
class Kept:
    """A table with what was kept of it at a moment, to be put back before each test."""

    name: str
    folder: Path
    copy: Path

    def restore(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.copy, self.folder)

    def files(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"{kind}-*.puffin"))


@pytest.fixture(scope="module")
def kept_then(
    spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Kept]]:
    """One table that has not changed since it was analysed, and one that has lost a file since."""
    found = {}
    with tables(spark) as make:
        for moment in ("unchanged", "changed"):
            name = make("id bigint, word string")
            for start in (0, 20, 40):
                make_rows(spark, name, start, start + 20, modulo=5 + start)
                rookery.analyze(spark, name, lake=lake)
            beside = folder(lake, name)
            copy = tmp_path_factory.mktemp("kept") / "copy"
            shutil.copytree(beside, copy)
            if moment == "changed":
                spark.sql(f"DELETE FROM {name} WHERE id >= 20 AND id < 40")  # the whole second file
            found[moment] = Kept(name, beside, copy)
        yield found


@pytest.fixture(params=["unchanged", "changed"])
def kept(kept_then: dict[str, Kept], request: pytest.FixtureRequest) -> Kept:
    found = kept_then[request.param]
    found.restore()
    return found


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("rookery")]


def assert_mended(spark: SparkSession, lake: Lake, kept: Kept) -> None:
    """After an analysis all is right, and a further one has nothing to do."""
    rookery.analyze(spark, kept.name, lake=lake)
    assert_right(spark, lake, kept.name)
    assert rookery.analyze(spark, kept.name, lake=lake).committed is False


@pytest.mark.parametrize("kind", ["state", "segment"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_every_file_damaged(
    spark: SparkSession,
    lake: Lake,
    kept: Kept,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    damage: Callable[[Path], None],
) -> None:
    files = kept.files(kind)
    assert files
    for file in files:
        damage(file)
    stats = rookery.table(kept.name, lake).stats()
    assert stats.statistics_snapshot_id is None
    assert {column.ndv for column in stats.columns} == {None}  # better none than a wrong one
    caplog.clear()
    report = rookery.analyze(spark, kept.name, lake=lake)
    assert report.files_read == report.files
    if not (kind == "state" and damage is delete):  # nobody misses what there may never have been
        assert warnings(caplog)
    assert_right(spark, lake, kept.name)
    assert rookery.analyze(spark, kept.name, lake=lake).committed is False


@pytest.mark.parametrize("which", [0, 1, 2])
def test_one_segment_damaged(spark: SparkSession, lake: Lake, kept: Kept, which: int) -> None:
    truncate(kept.files("segment")[which])
    rookery.table(kept.name, lake).stats()
    assert_mended(spark, lake, kept)


def test_newest_state_damaged(
    spark: SparkSession, lake: Lake, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    """An older one serves as well; only what it does not know is read."""
    scramble(kept.files("state")[-1])
    report = rookery.analyze(spark, kept.name, lake=lake)
    assert report.files_read == 1
    assert any("is skipped" in text for text in warnings(caplog))
    assert_mended(spark, lake, kept)


def test_bits_flipped(spark: SparkSession, lake: Lake, kept_then: dict[str, Kept]) -> None:
    """Wherever a bit flips, a refresh that needs the file has the right answer."""
    kept = kept_then["changed"]
    chance = random.Random(SEED)
    for kind in ("segment", "state"):
        for _ in range(8):
            kept.restore()
            flip(chance.choice(kept.files(kind)), chance)
            rookery.analyze(spark, kept.name, lake=lake)
            assert_right(spark, lake, kept.name)


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def test_everything_deleted(spark: SparkSession, lake: Lake, kept: Kept) -> None:
    shutil.rmtree(kept.folder)
    assert rookery.table(kept.name, lake).stats().freshness == "never analyzed"
    assert_mended(spark, lake, kept)


def test_statistics_file_deleted(
    spark: SparkSession, lake: Lake, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    """It is written again from what is kept, and no data is read for it."""
    rookery.analyze(spark, kept.name, lake=lake)
    table = lake.load(kept.name)
    current = table.metadata.current_snapshot_id
    (file,) = [file for file in table.metadata.statistics if file.snapshot_id == current]
    Path(file.statistics_path.removeprefix("file:")).unlink()
    assert spark.table(kept.name).count() == len(table.scan().to_arrow())
    report = rookery.analyze(spark, kept.name, lake=lake)
    assert (report.committed, report.files_read) == (True, 0)
    assert_right(spark, lake, kept.name)


def test_foreign_files(spark: SparkSession, lake: Lake, kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    """They are neither read nor deleted, whatever they are called."""
    strangers = ["notes.txt", "state-mine.puffin", "segment.puffin", "state-7-7-7.puffin", ".hidden.puffin"]
    for stranger in strangers:
        (kept.folder / stranger).write_text("hello")
    (kept.folder / "folder").mkdir()
    assert_mended(spark, lake, kept)
    assert warnings(caplog) == []
    loaded, store = rookery.table(kept.name, lake).load()
    store.collect_garbage(str(loaded.table.metadata.table_uuid), loaded.snapshots.keys(), grace=-1)
    assert [name for name in [*strangers, "folder"] if not (kept.folder / name).exists()] == []
    assert_right(spark, lake, kept.name)


def test_no_place_to_write(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """A file stands where the folder should be: one line, and the table is as it was."""
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, 5)
    folder(lake, name).write_text("in the way")
    before = lake.load(name).metadata
    with pytest.raises(RookeryError, match=r"\.rookery"):
        rookery.analyze(spark, name, lake=lake)
    assert lake.load(name).metadata == before
    folder(lake, name).unlink()


class TestEveryByte:
    """Without Spark: no byte of a state or a segment can change unnoticed what is read from it."""

    SKETCH = ThetaSketch(np.array([3, 5, 8, 1 << 40], np.uint64))

    def assert_noticed(self, path: Path, read: Callable[[], object]) -> None:
        good, whole = read(), path.read_bytes()
        chance = random.Random(SEED)
        unnoticed = 0
        for position in range(len(whole)):
            data = bytearray(whole)
            data[position] ^= 1 << chance.randrange(8)
            path.write_bytes(data)
            try:
                assert read() == good
                unnoticed += 1  # of no consequence: a byte of the description that nobody reads
            except RookeryError:
                pass
        assert unnoticed < len(whole) / 4

    def test_state(self, tmp_path: Path) -> None:
        path = tmp_path / "state.puffin"
        index = StateHeader(
            "uuid", 7, 3, 99, 2, (SegmentEntry("segment-a.puffin", 2, (1,)),), ("m.avro",), (), {1: "long"}
        )
        files = pa.table(
            [
                pa.array([bytes(16), bytes(range(16))], pa.binary(16)),
                pa.array([0, 0], pa.int32()),
                pa.array([0, 1], pa.int16()),
                pa.array([0, 0], pa.int32()),
                pa.array([5, 6], pa.int64()),
            ],
            schema=FILES_SCHEMA,
        )
        write_state(str(path), State(index, files, {1: self.SKETCH}), {})

        def read() -> object:
            found = read_state(str(path))
            return found.header, found.files.to_pydict(), found.thetas

        self.assert_noticed(path, read)

    def test_segment(self, tmp_path: Path) -> None:
        path = tmp_path / "segment.puffin"
        theta = InvertedTheta.of(self.SKETCH, 0, 2)
        listed = pa.table({"path": ["a.parquet", "b.parquet"], "rows": [5, 6]})
        contents = Contents(ZoneMap(listed, {1: nothing_known(2)}), {1: theta})
        write_segment(str(path), contents, snapshot_id=7, sequence_number=3, io_properties={})

        def read() -> object:
            with open_segment(str(path)) as segment:
                found = segment.thetas(frozenset({1}))
                zone = segment.zone_map.files.to_pydict(), segment.zone_column(1).to_pydict()
                return zone, {key: theta.encode() for key, theta in found.items()}

        self.assert_noticed(path, read)


def test_the_command_line_says_so(
    spark: SparkSession, lake: Lake, kept_then: dict[str, Kept], capsys: pytest.CaptureFixture[str]
) -> None:
    from rookery.cli.app import run

    kept = kept_then["unchanged"]
    kept.restore()
    truncate(kept.files("state")[-1])
    assert run(["analyze", kept.name]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(kept.name)
    assert err.startswith("warning: a state is skipped")
    assert len(err.splitlines()) == 1
    assert logging.getLogger("rookery").handlers == []
