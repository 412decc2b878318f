from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api.lake import Lake, connect
from rookery.cli.app import run
from rookery.indexes import KINDS
from rookery.model.cache import clear_caches
from rookery.sidecar import store_of
from tests.collect.plain import PlainTable
from tests.indexes.toy import LengthsKind
from tests.isolation import isolate
from tests.lakehouse import sqlite_options, sqlite_words

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])
ROWS = 20
Rookery = Callable[..., tuple[int, str, str]]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> LengthsKind:
    """The toy kind, registered."""
    kind = LengthsKind()
    monkeypatch.setitem(KINDS, kind.name, kind)
    return kind


def rows_of(number: int) -> pa.Table:
    """Rows of a file whose words are of two lengths, and lie between the same bounds as those of others."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    words = [None if n % 7 == 6 else "az"[n % 2] * (2 + 3 * number + n % 2) for n in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "word": pa.array(words)}, schema=SCHEMA)


class LakeTable(PlainTable):
    """A table of a lake, so that commands find what is kept of it."""

    def __init__(self, lake: Lake, where: tuple[str, ...]) -> None:
        self.catalog, self.where = lake.catalog, where
        self.catalog.create_namespace_if_not_exists("db")
        self.name = lake.table_name("db.t")
        self.table = self.catalog.create_table("db.t", SCHEMA)
        self.store = store_of(self.load())

    def append_files(self, *numbers: int) -> None:
        for number in numbers:
            self.append(rows_of(number))

    def words(self) -> list[str | None]:
        return self.table.refresh().scan().to_arrow()["word"].to_pylist()

    def assert_answers(self) -> None:
        """The index changes no answer, whichever text is looked for."""
        clear_caches()
        words = self.words()
        for word in {"", "a", "m" * 9, "z" * 3, "a" * 6, *(word for word in words if word)}:
            assert self.count(f"word = '{word}'") == words.count(word), word
        assert self.count("word IN ('aa', 'zzz')") == words.count("aa") + words.count("zzz")
        assert self.count("word IS NULL") == words.count(None)
        assert self.count("word <> 'aa'") == len([word for word in words if word not in ("aa", None)])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeTable:
    isolate(tmp_path, monkeypatch)
    clear_caches()
    return LakeTable(connect(**sqlite_options(tmp_path)), tuple(sqlite_words(tmp_path)))


@pytest.fixture
def rookery(table: LakeTable, capsys: pytest.CaptureFixture[str]) -> Rookery:
    """Run a command on the table's lake; return the exit code, standard output and standard error."""

    def call(*words: object) -> tuple[int, str, str]:
        code = run([*map(str, words), *table.where])
        return code, *capsys.readouterr()

    return call


def stage_of(table: PlainTable, where: str, name: str = "lengths") -> tuple[int, int, str]:
    """How many files go into a stage, how many are left, and its note."""
    (found,) = (stage for stage in table.explain(where).stages if stage.name == name)
    return found.files_in, found.files_out, found.note
