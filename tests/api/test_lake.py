"""A lake on the embedded catalog, and the names that `import rookery` gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError


@pytest.fixture
def own_lake(tmp_path: Path) -> Lake:
    return rookery.connect("mine", uri=f"sqlite:///{tmp_path}/new/c.db", warehouse=f"file://{tmp_path}/w")


def test_load_a_table(own_lake: Lake) -> None:
    own_lake.catalog.create_namespace("db")
    own_lake.catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    assert own_lake.load("db.t").schema().column_names == ["a"]
    assert own_lake.load("mine.db.t").name() == ("db", "t")


@pytest.mark.parametrize("name", ["db.missing", "nowhere.t"])
def test_missing_table(own_lake: Lake, name: str) -> None:
    own_lake.catalog.create_namespace("db")
    with pytest.raises(UsageError, match=f"no table mine.{name}") as caught:
        own_lake.load(name)
    assert caught.value.hint


def test_opening_waits(tmp_path: Path) -> None:
    lake = rookery.connect("mine", uri=f"sqlite:///{tmp_path}/new/c.db", token="s3cret")
    assert not (tmp_path / "new").exists()
    assert repr(lake) == "<Lake mine>"


def _python(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_import_is_light() -> None:
    heavy = "{'pyiceberg', 'pyspark', 'pyarrow', 'numpy', 'fsspec', 'msgspec', 'typer', 'rich'}"
    assert _python(f"import sys, rookery; print({heavy} & set(sys.modules))") == "set()"


def test_names() -> None:
    assert _python(
        "import rookery\n"
        "print(rookery.connect.__name__, rookery.Lake.__name__, rookery.puffin.open_puffin.__name__)\n"
        "print(rookery.spark.session.__name__, rookery.__version__ == '0.0.0')"
    ).split() == ["connect", "Lake", "open_puffin", "session", "False"]


def test_every_exported_name_is_there() -> None:
    assert [name for name in rookery.__all__ if getattr(rookery, name, None) is None] == []


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = rookery.nothing_like_it
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = rookery.spark.nothing_like_it


def test_clear_cache(own_lake: Lake) -> None:
    """What was read of a table is read again, and of other lakes nothing is forgotten."""
    own_lake.catalog.create_namespace("db")
    own_lake.catalog.create_table("db.t", pa.schema([("a", pa.int64())])).append(pa.table({"a": [1, 2]}))
    other = Lake(own_lake.config)
    for lake in (own_lake, other):
        assert lake.cache.count == 0
        assert rookery.table("db.t", lake).explain("a = 7").files == ()
        assert lake.cache.count > 0
    held = other.cache.count
    own_lake.clear_cache()
    assert (own_lake.cache.count, own_lake.cache.nbytes, other.cache.count) == (0, 0, held)
    assert rookery.table("db.t", own_lake).explain("a = 7").files == ()
    assert own_lake.cache.count > 0


LISTS = ("columns", "exclude", "histogram", "top_k", "drop_histogram", "drop_top_k")
SETS = ("column_sets", "drop_column_sets", "together", "drop_together")


@pytest.mark.parametrize("option", [*LISTS, *SETS])
def test_columns_of_an_analysis_are_lists(own_lake: Lake, option: str) -> None:
    """One name would be taken for a list of its letters."""
    own_lake.catalog.create_namespace("db")
    own_lake.catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    for value in ("a", ["a"]) if option in SETS else ("a",):
        with pytest.raises(UsageError, match="list of names") as caught:
            rookery.analyze(own_lake.spark, "db.t", lake=own_lake, **{option: value})  # type: ignore[arg-type]
        assert f"use {option}=[" in str(caught.value.hint)


@pytest.mark.parametrize("option", SETS)
def test_column_sets_by_either_name(own_lake: Lake, option: str) -> None:
    own_lake.catalog.create_namespace("db")
    table = own_lake.catalog.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    table.append(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(UsageError, match="a column set needs two different columns"):
        rookery.analyze(own_lake.spark, "db.t", lake=own_lake, **{option: [["b"]]})  # type: ignore[arg-type]


def test_columns_of_a_table_are_lists(own_lake: Lake) -> None:
    own_lake.catalog.create_namespace("db")
    own_lake.catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    table = rookery.table("db.t", own_lake)
    with pytest.raises(UsageError, match="list of names"):
        table.read(columns="a")
    with pytest.raises(UsageError, match="list of names"):
        table.estimate(group_by="a")
    with pytest.raises(UsageError, match="list of names"):
        table.scan(None, columns="a")  # type: ignore[arg-type]


def test_what_does_not_exist_has_a_hint_by_its_cause(
    own_lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_lake.catalog.create_namespace("db")
    own_lake.catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    monkeypatch.chdir(tmp_path)
    for name in ("my-sales.csv", "s.csv"):
        (tmp_path / name).touch()
    hints = {
        "my-sales.csv": "my-sales.csv is a file: `rookery load my-sales.csv db.my_sales` makes a table of it",
        "./s.csv": "./s.csv is a file: `rookery load ./s.csv db.s` makes a table of it",
        "db.tt": "did you mean db.t?",
        "prod.db.zzzzzzzz": "no catalog 'prod' is configured: add it to .pyiceberg.yaml, "
        "or pass spark= of a session that has it",
        "db.below.zzzzzzzz": "check the name, or use --catalog; `rookery tables` lists them",
    }
    for name, hint in hints.items():
        with pytest.raises(UsageError) as caught:
            rookery.table(name, own_lake).stats()
        assert caught.value.hint == hint


def test_what_is_no_session_is_refused(own_lake: Lake) -> None:
    with pytest.raises(UsageError, match="a str is not a Spark session"):
        rookery.analyze("db.t", "spark", lake=own_lake)  # type: ignore[arg-type]
