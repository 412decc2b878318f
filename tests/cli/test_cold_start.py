"""What each command imports: a process of its own must not pay for what it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api.puffin_files import CODECS
from rookery.cli import puffin
from tests.collect.plain import PlainTable
from tests.lakehouse import sqlite_words

# Packages that take long to import, or much memory; a SQLite catalog needs no SQLAlchemy.
HEAVY = ("fsspec", "http.client", "numba", "pandas", "prometheus_client", "py4j", "pyspark", "sqlalchemy")
# Without these, PyIceberg's metadata and Arrow's data cannot be read; all else of any size is in `HEAVY`.
NEEDED = ("pyarrow", "pyiceberg")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with one table, analysed, with a Bloom index."""
    folder = tmp_path_factory.mktemp("cold")
    table = PlainTable(folder, pa.schema([("id", pa.int64()), ("city", pa.string())]))
    properties = {"rookery.location": table.store.location}
    table.table.transaction().set_properties(properties).commit_transaction()
    table.append(pa.table({"id": range(100), "city": [f"c{number % 7}" for number in range(100)]}))
    table.add_index("bloom", "id")
    table.analyse()
    return folder


def imported(words: list[str], folder: Path | None = None) -> tuple[str, set[str]]:
    """Run a command in a process; return what it prints, and all modules that it has imported."""
    catalog = [] if folder is None else ["--catalog", "plain", *sqlite_words(folder)]
    program = (
        "import sys\n"
        "from rookery.cli.app import run\n"
        f"code = run({[*words, *catalog]!r})\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert done.returncode in (0, 1), done.stderr  # 1: the status is below its policy
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "shown", "sqlglot"),
    [
        (["read", "plain.db.t", "id = 44"], "c2", True),
        (["count", "plain.db.t", "id = 44"], "1", True),
        (["stats", "plain.db.t"], "city", False),
        (["status", "plain.db.t"], "100 rows in 1 file", False),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_commands_on_a_table(lake: Path, words: list[str], shown: str, *, sqlglot: bool) -> None:
    out, modules = imported(words, lake)
    assert shown in out
    assert modules.issuperset(NEEDED)
    assert not modules & set(HEAVY)
    assert ("sqlglot" in modules) == sqlglot


@pytest.mark.parametrize("words", [["--help"], ["read", "--help"], ["puffin", "copy", "--help"]])
def test_help(words: list[str]) -> None:
    out, modules = imported(words)
    assert "Usage" in out
    assert not modules & {*HEAVY, *NEEDED, "numpy", "sqlglot"}


def test_version() -> None:
    assert not imported(["--version"])[1] & {*HEAVY, *NEEDED, "numpy", "sqlglot"}


def test_pandas_is_there_for_those_who_convert() -> None:
    program = (
        "import sys; from rookery.cli.help import without_pandas; without_pandas(); import pyarrow as pa\n"
        "pa.array(['a']); assert 'pandas' not in sys.modules\n"
        "assert pa.array([1, 2]).to_pandas().sum() == 3; import pandas\n"
        "assert pa.array(pandas.Series([1, float('nan')])).null_count == 1\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_codecs_of_the_command_line_are_all() -> None:
    assert puffin.CODECS == CODECS
