"""What holds for all commands: where options stand, where words go, how errors leave."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rookery.cli.app import hoist
from rookery.version import __version__
from tests.cli.conftest import Rookery


def _error(result: tuple[int, str, str]) -> str:
    """The message of a refusal: exit code 2, nothing on standard output, one line and a hint."""
    code, out, err = result
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 2, err
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert "Traceback" not in err
    return lines[0].removeprefix("error: ")


@pytest.mark.parametrize("command", [["inspect"], ["verify"], ["cat", "--blob", "0"], ["copy", "out"]])
class TestBadFiles:
    def call(self, rookery: Rookery, command: list[str], path: object) -> tuple[int, str, str]:
        return rookery("puffin", command[0], path, *command[1:])

    def test_missing(self, rookery: Rookery, command: list[str], tmp_path: Path) -> None:
        assert "No such file" in _error(self.call(rookery, command, tmp_path / "missing"))

    def test_directory(self, rookery: Rookery, command: list[str], tmp_path: Path) -> None:
        assert "directory" in _error(self.call(rookery, command, tmp_path))

    def test_unreachable_url(self, rookery: Rookery, command: list[str]) -> None:
        said = _error(self.call(rookery, command, "http://me:s3cret@127.0.0.1:1/a.puffin?sig=s3cret"))
        assert "s3cret" not in said

    def test_unknown_scheme(self, rookery: Rookery, command: list[str]) -> None:
        assert "gopher" in _error(self.call(rookery, command, "gopher://host/a.puffin"))


@pytest.mark.parametrize("command", [["inspect"], ["cat", "--blob", "0"], ["copy", "out"]])
@pytest.mark.parametrize("data", [b"", b"PFA1", b"text that is no Puffin file at all", bytes(100)])
def test_not_a_puffin_file(rookery: Rookery, tmp_path: Path, command: list[str], data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    code, out, err = rookery("puffin", command[0], tmp_path / "x", *command[1:])
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {tmp_path / 'x'}, byte ")
    assert 1 <= err.count("\n") <= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["puffin", "nosuch"], "No such command 'nosuch'"),
        (["--nosuch"], "No such option: --nosuch"),
        (["puffin", "inspect", "f", "--nosuch"], "No such option: --nosuch"),
        (["puffin", "inspect"], "Missing argument 'FILE'"),
        (["puffin", "cat", "f"], "Missing option '--blob'"),
        (["puffin", "cat", "f", "--blob"], "requires an argument"),
        (["puffin", "inspect", "f", "g"], "unexpected extra argument"),
        (["puffin", "inspect", "f", "--output", "yaml"], "'yaml' is not one of"),
        (["doctor", "--only", "nosuch"], "there is no check 'nosuch'"),
        (["doctor", "--catalog", "nosuch"], "there is no catalog 'nosuch'"),
    ],
)
def test_wrong_usage(rookery: Rookery, words: list[str], said: str) -> None:
    assert said in _error(rookery(*words))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nosuch"], "`rookery --help` lists the commands"),
        (["puffin", "nosuch"], "`rookery puffin --help` lists the commands"),
        (["puffin", "inspect", "f", "--nosuch"], "`rookery puffin inspect --help` lists the options"),
        (["discover", "--kind", "nosuch"], "`rookery discover --help` lists the options"),
    ],
)
def test_hints_of_wrong_usage(rookery: Rookery, words: list[str], hint: str) -> None:
    _, _, err = rookery(*words)
    assert err.splitlines()[1] == f"hint: {hint}"
    assert "Value error" not in err


@pytest.mark.parametrize("words", [["--time-zone", "+02:00"], ["--snapshot", "1"], ["--group-by", "a"]])
def test_options_of_a_table_are_not_those_of_a_query(rookery: Rookery, words: list[str]) -> None:
    assert "--sql takes a whole query" in _error(rookery("estimate", "--sql", "SELECT 1", *words))


@pytest.mark.parametrize("words", [[], ["puffin"]])
def test_no_command_shows_the_help(rookery: Rookery, words: list[str]) -> None:
    code, out, err = rookery(*words)
    assert code == 2
    assert "Usage: rookery" in out + err


@pytest.mark.parametrize(
    "words",
    [["--help"], ["doctor", "--help"], ["puffin", "--help"], ["puffin", "copy", "--help"]],
)
def test_help(rookery: Rookery, words: list[str]) -> None:
    code, out, err = rookery(*words)
    assert (code, err) == (0, "")
    assert "Usage: rookery" in out


def test_version(rookery: Rookery) -> None:
    assert rookery("--version") == (0, f"Rookery {__version__}\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ["--output", "json", "puffin", "inspect", "FILE"],
        ["--output=json", "puffin", "inspect", "FILE"],
        ["puffin", "--output", "json", "inspect", "FILE"],
        ["puffin", "inspect", "--output", "json", "FILE"],
        ["puffin", "inspect", "FILE", "--output", "json"],
        ["puffin", "inspect", "FILE", "--output=json", "--debug"],
    ],
)
def test_shared_options_stand_anywhere(rookery: Rookery, sample: Path, words: list[str]) -> None:
    code, out, err = rookery(*(sample if word == "FILE" else word for word in words))
    assert (code, err) == (0, "")
    assert json.loads(out)["file"] == str(sample)


def test_words_behind_two_dashes_are_no_options(
    rookery: Rookery, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = sample.rename(sample.parent / "--output")
    assert hoist(["puffin", "inspect", "--", "--output"]) == ["puffin", "inspect", "--", "--output"]
    monkeypatch.chdir(odd.parent)
    code, out, _ = rookery("puffin", "inspect", "--", "--output")
    assert code == 0
    assert out.startswith("--output")


def test_debug_shows_the_traceback_too(rookery: Rookery, tmp_path: Path) -> None:
    code, out, err = rookery("--debug", "puffin", "inspect", tmp_path / "missing")
    assert (code, out) == (2, "")
    assert err.startswith("Traceback")
    assert "io/source.py" in err
    assert err.splitlines()[-2].startswith("error: ")


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in Rookery itself."""

    def fail(*_: object) -> None:
        raise LookupError("of\nall things")

    monkeypatch.setattr("rookery.api.puffin_files.inspect", fail)


def test_fault_of_our_own(rookery: Rookery, fault: None) -> None:
    assert _error(rookery("puffin", "inspect", "f")) == "LookupError: of all things"


def test_fault_of_our_own_with_debug(rookery: Rookery, fault: None) -> None:
    code, _, err = rookery("puffin", "inspect", "f", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert "error: LookupError: of all things" in err


def test_interrupt(rookery: Rookery, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rookery.api.puffin_files.inspect", interrupt)
    code, out, err = rookery("puffin", "inspect", "f")
    assert code == 130  # as shells have it
    assert "Traceback" not in out + err


def test_error_texts_do_not_steer_the_terminal(rookery: Rookery) -> None:
    said = _error(rookery("puffin", "inspect", "missing\x1b[2J[bold]\n:fire:"))
    assert "\x1b" not in said
    assert "\\x1b[2J[bold] :fire:" in said


def test_no_escape_codes_in_pipes(rookery: Rookery, sample: Path) -> None:
    for command in ("inspect", "verify"):
        assert not re.search("\x1b", rookery("puffin", command, sample)[1])
