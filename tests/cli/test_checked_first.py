"""Arguments are checked before Spark is started: on a machine without Java the error is theirs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.conftest import Rookery
from tests.lakehouse import sqlite_lake, sqlite_words

ROWS = pa.table({"id": pa.array([1, 2, 3]), "name": ["a", "b", "c"], "list": pa.array([[1], [2], [3]])})


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that name a catalog with the table db.t, where Spark cannot be started."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("rookery.spark.sessions.session", refuse)
    monkeypatch.setattr("rookery.spark.session", refuse)
    sqlite_lake(tmp_path).catalog.create_table("db.t", ROWS.schema).append(ROWS)
    return sqlite_words(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["analyze", "db.t", "--columns", "nosuch"], "there is no column 'nosuch'"),
        (["analyze", "db.t", "--exclude", "nosuch"], "there is no column 'nosuch'"),
        (["analyze", "db.t", "--histogram", "nosuch"], "there is no column 'nosuch'"),
        (["analyze", "db.t", "--top-k", "nosuch"], "there is no column 'nosuch'"),
        (["analyze", "db.t", "--column-set", "id,nosuch"], "there is no column 'nosuch'"),
        (["analyze", "db.t", "--drop-histogram", "nosuch"], "nosuch"),
        (["analyze", "db.t", "--top-k", "id", "--sample", "-1"], "-1"),
        (["analyze", "db.t", "--snapshot", "7"], "has no snapshot 7"),
        (["analyze", "db.t", "--conf", "x"], "'x' is not key=value"),
        (["analyze", "db.nosuch"], "there is no table"),
        (["analyze", "nosuch.*"], "no table"),
        (["index", "add", "db.t", "btree", "id"], "there is no index 'btree'"),
        (["index", "add", "db.t", "bloom", "nosuch"], "there is no column 'nosuch'"),
        (["maintain", "db.nosuch"], "there is no table"),
        (["maintain", "db.t", "--only", "dance"], "there is no step 'dance'"),
        (["analyze", "db.t", "--output", "csv"], "cannot be printed as csv"),
        (["index", "add", "db.t", "bloom", "id", "--output", "prometheus"], "printed as prometheus"),
        (["maintain", "db.t", "--output", "arrow"], "cannot be printed as arrow"),
        (["watch", "db.nosuch", "--once"], "there is no table"),
        (["watch", "db.t", "--once", "--every", "soon"], "soon"),
    ],
)
def test_refused_without_spark(rookery: Rookery, options: list[str], words: list[str], said: str) -> None:
    code, out, err = rookery(*options, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "Spark was started" not in err


@pytest.mark.parametrize("words", [["--engine", "spark"], ["--conf", "spark.ui.enabled=false"]])
def test_spark_would_be_started(rookery: Rookery, options: list[str], words: list[str]) -> None:
    code, _, err = rookery(*options, "analyze", "db.t", *words)
    assert (code, "Spark was started" in err) == (2, True)


def test_only_what_is_large_needs_spark(
    rookery: Rookery, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rookery.collect.engine_choice.LOCAL_LIMIT", 0)
    code, _, err = rookery(*options, "analyze", "db.t")
    assert (code, "Spark was started" in err) == (2, True)
    assert rookery(*options, "analyze", "db.t", "--engine", "local")[0] == 0
    assert rookery(*options, "stats", "db.t")[1].count("exact") == 3


def test_small_tables_are_maintained_without_spark(rookery: Rookery, options: list[str]) -> None:
    for ran in ("done", "not needed"):
        code, out, _ = rookery(*options, "maintain", "db.t", "--only", "refresh statistics")
        assert (code, ran in out) == (0, True), out
