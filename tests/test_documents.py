"""What the documents show does run: Python blocks, and the `rookery` lines of console blocks."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import rookery
from rookery.cli.app import run
from rookery.puffin import THETA_V1, Blob, Writer
from rookery.sketch import ThetaSketch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.M | re.S)


def blocks(document: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(document.read_text()) if kind == language]


def needs_spark(document: Path) -> bool:
    return any("spark" in text for text in blocks(document, "python"))


def documents(language: str, spark: bool) -> list[pytest.ParameterSet]:
    return [
        pytest.param(document, id=str(document.relative_to(ROOT)))
        for document in DOCUMENTS
        if blocks(document, language) and needs_spark(document) == spark
    ]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the documents speak of."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    sketch = ThetaSketch(np.array([3, 5, 8], np.uint64))
    with Writer("statistics.puffin") as writer:
        writer.add(Blob(THETA_V1, sketch.encode(), (1,), 7, 1, properties={"ndv": "3"}))
    return tmp_path


def run_python(document: Path) -> None:
    namespace: dict[str, object] = {}
    for text in blocks(document, "python"):
        exec(compile(text, str(document), "exec"), namespace)


@pytest.mark.parametrize("document", documents("python", spark=False))
def test_python_blocks(document: Path, desk: Path) -> None:
    run_python(document)


@pytest.fixture
def orders(spark: SparkSession) -> Iterator[None]:
    """The table that the documents speak of."""
    spark.sql(
        "CREATE TABLE db.orders (id bigint, amount decimal(9, 2), country string, city string) "
        "PARTITIONED BY (country)"
    )
    spark.sql(
        "INSERT INTO db.orders VALUES "
        "(1, 9.50, 'NL', 'Delft'), (2, 3.20, 'NL', 'Gouda'), (3, 7.00, 'BE', 'Gent')"
    )
    yield
    spark.sql("DROP TABLE db.orders PURGE")


def test_example_of_the_package(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `help(rookery)` shows, in a catalog of its own."""
    assert rookery.__doc__ is not None
    lines = [line for line in rookery.__doc__.splitlines() if line.startswith("    ") or not line]
    namespace: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOKERY_HOME", str(desk / "home"))
        exec(textwrap.dedent("\n".join(lines)), namespace)
    assert namespace["rows"].num_rows == 1
    assert "500 rows in 5 files" in capsys.readouterr().out


def test_the_quickstart_needs_no_java(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROOKERY_HOME", str(desk / "home"))
    monkeypatch.setattr("rookery.spark.session", None)
    quickstart = next(text for text in blocks(ROOT / "README.md", "console") if "rookery load" in text)
    lines = [line.removeprefix("$ rookery ") for line in quickstart.splitlines() if "$ rookery" in line]
    assert [run(shlex.split(line)) for line in lines] == [0] * 5, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "bloom filter check   1 → 1" in out or "5 → 1" in out, out


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("document", documents("python", spark=True))
def test_python_blocks_with_spark(document: Path, desk: Path) -> None:
    run_python(document)


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "console")], ids=lambda d: d.name)
def test_console_blocks(
    document: Path, desk: Path, spark: SparkSession, capfdbinary: pytest.CaptureFixture
) -> None:
    commands = [
        shlex.split(line.removeprefix("$ ").partition(" > ")[0])
        for text in blocks(document, "console")
        for line in text.splitlines()
        if line.startswith("$ rookery ")
    ]
    assert commands
    if ["rookery", "load"] in [
        words[:2] for words in commands
    ]:  # then it is the document that makes the table
        spark.sql("DROP TABLE db.orders PURGE")
    for name, *words in commands:
        assert (name, run(words)) == ("rookery", 0), capfdbinary.readouterr().err
