"""The benchmarks run, and say what they ought to; how fast is not asked here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.__main__ import NAMES, main
from benchmarks.harness import Effort, Row, compare, spell


def test_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puffin", "--quick", "--results", str(tmp_path)]) == 0
    assert "Puffin files" in capsys.readouterr().out
    document = json.loads((tmp_path / "puffin.json").read_text())
    assert document["quick"] is True
    assert {"rookery", "pyiceberg", "zstandard"} <= document["packages"].keys()
    assert {row["target"] for row in document["rows"]} == {5, 0.9, 10, None}
    for row in document["rows"]:
        assert row["rookery_seconds"] > 0
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["rookery_seconds"], abs=1e-4)
    markdown = (tmp_path / "puffin.md").read_text()
    assert markdown.count("\n| ") == len(document["rows"]) + 2
    assert "A quick run" in markdown
    assert str(tmp_path) not in markdown + json.dumps(document)


def test_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["nosuch"])
    assert caught.value.code == 2
    assert ", ".join(NAMES) in capsys.readouterr().err


def test_both_sides_are_called_in_turns() -> None:
    calls: list[str] = []
    row = compare("w", "d", lambda: calls.append("a"), "p", lambda: calls.append("b"), Effort.quick())
    assert calls[-4:] == ["a", "b", "a", "b"]
    assert (row.what, row.data, row.peer, row.reached) == ("w", "d", "p", None)


@pytest.mark.parametrize(("target", "reached"), [(None, ""), (0.5, "yes"), (2, "yes"), (2.1, "no")])
def test_a_peer_that_wins_is_named(target: float | None, reached: str) -> None:
    assert Row("w", "d", 1.0, "p", 2.0, target).cells()[-1] == reached


def test_spell() -> None:
    assert [spell(seconds) for seconds in (2, 0.0123, 4.56e-5, 7e-8)] == [
        "2 s",
        "12.3 ms",
        "45.6 µs",
        "70 ns",
    ]
