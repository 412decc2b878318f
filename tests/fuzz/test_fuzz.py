"""A short, fixed run of the fuzzer; and proof that it would notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.puffin import DeletionVector
from tests.fuzz import batch
from tests.fuzz.batch import INPUTS_PER_BATCH, Tally, inputs, keep, run_batch, watched
from tests.fuzz.corpus import Seed, seeds
from tests.fuzz.drive import READ, drive


@pytest.fixture(scope="module")
def corpus() -> tuple[Seed, ...]:
    return seeds()


def test_the_corpus_is_valid(corpus: tuple[Seed, ...]) -> None:
    for seed in corpus:
        assert drive(seed.data, thorough=True) == {READ}


def test_no_input_is_a_find(corpus: tuple[Seed, ...]) -> None:
    tally = Tally()
    with watched():
        for number in range(10):
            run_batch(corpus, f"fixed-{number}", tally)
    assert tally.failures == []
    assert tally.inputs == 10 * INPUTS_PER_BATCH
    # The mutations reach deep, and some inputs survive them.
    assert READ in tally.outcomes
    assert len(tally.outcomes) >= 35


def test_a_batch_is_determined_by_its_seed(corpus: tuple[Seed, ...]) -> None:
    assert list(inputs(corpus, "a")) == list(inputs(corpus, "a"))
    assert list(inputs(corpus, "a")) != list(inputs(corpus, "b"))


def test_another_kind_of_error_is_a_find(corpus: tuple[Seed, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise OverflowError("not one of ours")

    monkeypatch.setattr(DeletionVector, "from_blob", broken)
    tally = Tally()
    with watched():
        run_batch(corpus, "fixed-0", tally)
    assert tally.failures
    assert "OverflowError: not one of ours" in tally.failures[0][1]


def test_a_hang_is_a_find(corpus: tuple[Seed, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*arguments: object) -> None:
        while True:
            pass

    monkeypatch.setattr(batch, "drive", endless)
    monkeypatch.setattr(batch, "SECONDS_PER_INPUT", 0.001)
    monkeypatch.setattr(batch, "INPUTS_PER_BATCH", 3)
    tally = Tally()
    with watched():
        run_batch(corpus, "fixed-0", tally)
    assert len(tally.failures) == 3
    assert "HangError" in tally.failures[0][1]


def test_a_find_is_kept(tmp_path: Path) -> None:
    path = keep(tmp_path / "build", b"input", "the account")
    assert path.read_bytes() == b"input"
    assert path.with_suffix(".txt").read_text() == "the account"


def test_the_command_runs(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--seconds", "0.2", "--workers", "1", "--seed", "1"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "0 failures; seed 1" in done.stdout
    assert list(tmp_path.iterdir()) == []
