"""What goes wrong beside an attached session: its queries return what Spark alone returns."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model.cache import clear_caches
from rookery.spark.attach.planner import Planner
from tests.lakehouse import NewTable
from tests.spark.attach.ways import attached_session, executed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20261118
FILES, ROWS = 4, 50
COLUMNS = "id bigint, key string, code string, day string, n int"
CONDITIONS = {
    "id = 60": "",
    "key = md5('77')": "inverted theta",
    "code IN (md5('3'), md5('120')) AND n < 9": "bloom filter check",
    "day = 'd2'": "bitmap",
}
"""By a condition, a stage that leaves out files for it; none where Iceberg does it by bounds alone."""


@dataclass
class Known:
    """A table with indexes, and a copy of what is stored beside it."""

    name: str
    folder: Path
    copy: Path

    def files(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"{kind}-*"))

    def restore(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.copy, self.folder)


def fill(spark: SparkSession, name: str, offset: int = 0) -> None:
    """Append 4 files: `id` is clustered; of `key` there are sketches, `code` and `day` have indexes."""
    spark.range(offset, offset + FILES * ROWS, 1, FILES).selectExpr(
        "id",
        "md5(cast(id AS string)) AS key",
        "md5(cast(id AS string)) AS code",
        "concat('d', CASE id % 3 WHEN 0 THEN 0 WHEN 1 THEN 9 "
        f"ELSE (id - {offset}) DIV {ROWS} + 1 END) AS day",
        "cast(id % 10 AS int) AS n",
    ).writeTo(name).option("distribution-mode", "none").append()


def known(spark: SparkSession, lake: Lake, name: str, copy: Path, offset: int = 0) -> Known:
    fill(spark, name, offset)
    handle = rookery.table(name, lake)
    handle.add_index("bloom", "code")
    handle.add_index("bitmap", "day")
    rookery.analyze(spark, name, columns=["id", "key"], lake=lake)
    folder = Path(handle.load()[1].location.removeprefix("file:"))
    shutil.copytree(folder, copy)
    return Known(name, folder, copy)


@pytest.fixture(scope="module")
def events_once(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path_factory: pytest.TempPathFactory
) -> Known:
    return known(spark, lake, new_table(COLUMNS), tmp_path_factory.mktemp("events") / "copy")


@pytest.fixture
def events(events_once: Known) -> Iterator[Known]:
    yield events_once
    events_once.restore()


@pytest.fixture(scope="module")
def other(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path_factory: pytest.TempPathFactory
) -> Known:
    """Another table of the same columns, with other values in its files."""
    copy = tmp_path_factory.mktemp("other") / "copy"
    return known(spark, lake, new_table(COLUMNS), copy, offset=7 * FILES * ROWS)


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    with attached_session(spark) as session:
        yield session


def rows(session: SparkSession, text: str) -> list[str]:
    return sorted(map(repr, session.sql(text).collect()))


def skips(session: SparkSession, text: str) -> bool:
    return " of " in executed(session.sql(text)).partition("Rookery(")[2].partition(")")[0]


def assert_same(alone: SparkSession, session: SparkSession, table: str) -> None:
    for where in CONDITIONS:
        text = f"SELECT * FROM {table} WHERE {where}"
        assert rows(session, text) == rows(alone, text), where


# -- what is stored beside a table


def test_each_stage_has_its_condition(attached: SparkSession, events: Known) -> None:
    """Else the tests below could not fail."""
    for where, stage in CONDITIONS.items():
        assert stage in executed(attached.sql(f"SELECT * FROM {events.name} WHERE {where}"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(share: float) -> Callable[[Path], None]:
    """Change some bytes from a place on: of the head, the blobs, or the footer."""

    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        start = int(len(content) * share)
        chance = random.Random(SEED)
        for place in range(start, min(start + 200, len(content)), 3):
            content[place] ^= chance.randrange(1, 256)
        path.write_bytes(content)

    return damage


DAMAGES = {
    "truncated": truncate,
    "emptied": empty,
    "deleted": Path.unlink,
    "head": flip(0.0),
    "middle": flip(0.4),
    "blobs": flip(0.75),
    "footer": flip(0.97),
}


@pytest.mark.parametrize("kind", ["state", "segment"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(
    spark: SparkSession,
    attached: SparkSession,
    events: Known,
    kind: str,
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = events.files(kind)
    assert found
    for path in found:
        DAMAGES[damage](path)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert_same(spark, attached, events.name)
    warnings = [record.getMessage() for record in caplog.records if record.name.startswith("rookery")]
    assert len(warnings) == len(set(warnings))


@pytest.mark.parametrize("kind", ["state", "segment"])
def test_files_of_another_table_in_their_place(
    spark: SparkSession, attached: SparkSession, events: Known, other: Known, kind: str
) -> None:
    for mine, theirs in zip(events.files(kind), other.files(kind), strict=True):
        shutil.copy(theirs, mine)
    assert_same(spark, attached, events.name)


def test_the_folder_of_another_table_in_its_place(
    spark: SparkSession, attached: SparkSession, events: Known, other: Known
) -> None:
    shutil.rmtree(events.folder)
    shutil.copytree(other.folder, events.folder)
    assert_same(spark, attached, events.name)
    assert not skips(attached, f"SELECT * FROM {events.name} WHERE key = md5('77')")


def test_the_folder_is_deleted_before_planning(
    spark: SparkSession, attached: SparkSession, events: Known
) -> None:
    text = f"SELECT * FROM {events.name} WHERE key = md5('77')"
    assert skips(attached, text)
    shutil.rmtree(events.folder)
    assert_same(spark, attached, events.name)
    clear_caches()
    with attached_session(spark) as new:
        assert_same(spark, new, events.name)
        assert not skips(new, text)


def test_the_folder_is_deleted_before_paths_are_numbered(
    spark: SparkSession, attached: SparkSession, events: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan of many files is answered by numbers; the JVM asks for the paths in a second request."""
    monkeypatch.setattr("rookery.spark.attach.planner._MOST_LISTED", 0)
    answer = Planner._answer

    def deleting(planner: Planner, request: Mapping[str, Any]) -> str:
        found = answer(planner, request)
        shutil.rmtree(events.folder, ignore_errors=True)
        planner.cache.clear()
        return found

    monkeypatch.setattr(Planner, "_answer", deleting)
    text = f"SELECT id FROM {events.name} WHERE key = md5('77')"
    assert rows(attached, text) == ["Row(id=77)"]
    assert not skips(attached, text)


def test_the_folder_is_deleted_between_planning_and_execution(
    spark: SparkSession, attached: SparkSession, events: Known, other: Known
) -> None:
    """The keys of the join are looked for at run time, when the files are gone."""
    text = (
        f"SELECT e.id FROM {events.name} e JOIN {other.name} o ON e.n = o.n AND e.id + 1400 = o.id "
        "WHERE o.id < 1405"
    )
    lookup = f"SELECT * FROM {events.name} WHERE key = md5('77')"
    frames = [attached.sql(each) for each in (text, lookup)]
    for frame in frames:
        executed(frame)
    shutil.rmtree(events.folder)
    for frame, each in zip(frames, (text, lookup), strict=True):
        assert sorted(map(repr, frame.collect())) == rows(spark, each)


# -- the table


def test_a_table_is_dropped_and_made_anew(
    spark: SparkSession, lake: Lake, attached: SparkSession, new_table: NewTable, tmp_path: Path
) -> None:
    name = known(spark, lake, new_table(COLUMNS), tmp_path / "copy").name
    text = f"SELECT * FROM {name} WHERE key = md5('77')"
    assert skips(attached, text)
    attached.sql(f"DROP TABLE {name}")
    attached.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
    assert rows(attached, text) == []
    fill(attached, name, offset=70)
    for where in ("key = md5('77')", "id = 60", "id = 77"):
        text = f"SELECT id FROM {name} WHERE {where}"
        assert rows(attached, text) == ([] if where == "id = 60" else ["Row(id=77)"])
        assert not skips(attached, text) or "id" in where
    rookery.analyze(attached, name, lake=lake)
    assert skips(attached, f"SELECT * FROM {name} WHERE key = md5('77')")
    assert rows(attached, f"SELECT id FROM {name} WHERE key = md5('77')") == ["Row(id=77)"]


def test_a_session_whose_catalog_has_cached_a_table_that_was_dropped(
    spark: SparkSession, lake: Lake, attached: SparkSession, new_table: NewTable, tmp_path: Path
) -> None:
    """It reads what Spark alone would read: the old table, until its entry is refreshed."""
    name = known(spark, lake, new_table(COLUMNS), tmp_path / "copy").name
    text = f"SELECT id FROM {name} WHERE key = md5('77')"
    assert rows(attached, text) == ["Row(id=77)"]
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
    fill(spark, name, offset=1000)
    rookery.analyze(spark, name, lake=lake)
    assert rows(attached, text) in (["Row(id=77)"], [])
    attached.sql(f"REFRESH TABLE {name}")
    assert rows(attached, text) == []
    assert rows(attached, f"SELECT id FROM {name} WHERE id = 1077") == ["Row(id=1077)"]


# -- the Python side


def test_a_planner_that_is_gone(
    spark: SparkSession, attached: SparkSession, events: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """py4j refuses the call, and takes the rest of it for another one: later answers are those of others."""
    gateway: Any = spark.sparkContext._gateway
    pool = gateway.gateway_property.pool.dict
    text = f"SELECT * FROM {events.name} WHERE key = md5('77')"
    assert skips(attached, text)
    with monkeypatch.context() as patch:
        for identifier in [identifier for identifier, each in pool.items() if isinstance(each, Planner)]:
            patch.delitem(pool, identifier)
        assert_same(spark, attached, events.name)
        assert not skips(attached, text)
    with attached_session(spark) as new:
        for number in range(10, 190, 15):
            text = f"SELECT id FROM {events.name} WHERE key = md5('{number}')"
            assert rows(new, text) == [f"Row(id={number})"]
            assert skips(new, text)


@pytest.mark.parametrize("answer", ["", "null", "[]", "{}", "no JSON", '{"skipped": 5}', '{"rows": "x"}', 7])
def test_an_answer_that_makes_no_sense(
    spark: SparkSession,
    attached: SparkSession,
    events: Known,
    monkeypatch: pytest.MonkeyPatch,
    answer: object,
) -> None:
    monkeypatch.setattr("rookery.spark.attach.planner.Planner._answer", lambda *_: answer)
    assert rows(attached, f"SELECT id FROM {events.name} WHERE id = 60") == ["Row(id=60)"]


def test_threads_with_queries_of_many_kinds(
    spark: SparkSession, attached: SparkSession, events: Known, other: Known
) -> None:
    texts = [
        *(f"SELECT * FROM {events.name} WHERE {where}" for where in CONDITIONS),
        f"SELECT day, count(*) c FROM {events.name} WHERE id < 120 GROUP BY day",
        f"SELECT e.id, o.id FROM {events.name} e JOIN {other.name} o ON e.n = o.n "
        "WHERE e.id < 4 AND o.id < 1404",
        f"SELECT count(*) FROM {events.name} WHERE id IN (SELECT n FROM {other.name} WHERE id < 1410)",
        f"SELECT max(id) FROM {events.name}.files JOIN {other.name} ON record_count = n + 48",
    ]
    expected = {text: rows(spark, text) for text in texts}
    asked = random.Random(SEED).choices(texts, k=40)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: rows(attached, text), asked))
    assert answers == [expected[text] for text in asked]
