"""What benchmarks report; how fast anything is does not matter here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.__main__ import NAMES, main
from benchmarks.harness import Effort, Measure, Report, Row, amount, compare, compare_asking, spell


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


@pytest.mark.parametrize(("limit", "reached"), [(None, ""), (2, "yes"), (1.5, "no")])
def test_a_measure_has_a_limit(limit: float | None, reached: str) -> None:
    measure = Measure("w", "d", 2, "bytes", limit)
    assert (measure.cells()[2], measure.cells()[-1]) == ("2 bytes", reached)
    assert measure.document()["value"] == 2


def test_rows_and_measures_share_a_report(tmp_path: Path) -> None:
    rows = (Row("w", "d", 1.0, "p", 2.0, None), Measure("m", "d", 0.01, "share", 0.02, "p", 0.03))
    Report.of("name", "Title", Effort.full(), rows, ["rookery"]).write(tmp_path)
    assert [row["what"] for row in json.loads((tmp_path / "name.json").read_text())["rows"]] == ["w", "m"]
    assert "| m | d | 1.00% | p | 3.00% |  | ≤ 2.00% | yes |" in (tmp_path / "name.md").read_text()


def test_amount() -> None:
    cases = [(2, "s"), (0, "s"), (0.5, "share"), (3 << 20, "bytes"), (7, "bytes")]
    assert [amount(*case) for case in cases] == ["2 s", "0 s", "50.00%", "3 MiB", "7 bytes"]


@pytest.mark.parametrize("peer_rounds", [None, 2])
def test_no_question_is_asked_twice(peer_rounds: int | None) -> None:
    ours: list[int] = []
    theirs: list[int] = []
    rows = compare_asking(
        "w", "d", ours.append, "p", theirs.append, range(12), target=2, peer_rounds=peer_rounds
    )
    assert [row.target for row in rows] == [2, None]
    assert ours == list(range(12))
    assert theirs == (ours if peer_rounds is None else [0, 1, 5, 6])


def test_a_report_says_where_a_peer_wins() -> None:
    rows = (
        Row("slow", "d", 2.0, "p", 1.0, None),
        Row("fast", "d", 1.0, "p", 2.0, 3),
        Measure("m", "d", 1, "s"),
    )
    said = Report.of("name", "Title", Effort.full(), rows, ["rookery", "no-such-package"]).markdown()
    assert "- the peer is faster: slow (d), p, 2.00 times\n- not reached: fast (d), p\n" in said
    assert "no-such-package not installed" in said


def test_small_data_leaves_the_results_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.__main__.RESULTS", tmp_path / "results")
    assert main(["puffin", "--quick", "--data", str(tmp_path)]) == 0
    assert not (tmp_path / "results").exists()
    assert (tmp_path / "scale-0.01" / "results" / "puffin.md").exists()
