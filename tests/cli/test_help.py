"""What `--help` shows of every command, and what shells complete."""

from __future__ import annotations

import itertools
import shlex
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from rookery.cli.app import app, hoist
from rookery.cli.examples import EXAMPLES
from rookery.cli.help import SHARED
from tests.cli.conftest import Rookery

Program = Callable[..., "subprocess.CompletedProcess[bytes]"]
SHARED_OPTIONS = ("--catalog", "--uri", "--warehouse", "--output", "--debug")


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, (*words, name))


COMMANDS = list(_commands(typer.main.get_command(app)))


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_shared_options_have_a_heading_of_their_own(rookery: Rookery, words: tuple[str, ...]) -> None:
    code, out, err = rookery(*words, "--help")
    assert (code, err) == (0, "")
    own, _, shared = out.partition(SHARED)
    for option in SHARED_OPTIONS:
        assert f" {option} " in shared
        assert f" {option} " not in own
    assert "<" not in out  # such as <bool>
    assert rookery(*words, "-h") == (0, out, "")


@pytest.mark.parametrize("words", [words for words in COMMANDS if " ".join(words) in EXAMPLES], ids=" ".join)
def test_examples_are_at_the_end(rookery: Rookery, words: tuple[str, ...]) -> None:
    examples = EXAMPLES[" ".join(words)]
    lines = [line.strip() for line in rookery(*words, "--help")[1].strip().splitlines()]
    assert lines[-len(examples) - 1 :] == ["Examples:", *(f"$ {example}" for example in examples)]


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_are_understood(example: str) -> None:
    program, *words = itertools.takewhile(lambda word: word != ">", shlex.split(example))
    root = typer.main.get_command(app)
    context = root.make_context(program, words)
    while context.args or context._protected_args:
        name, command, rest = context.command.resolve_command(  # type: ignore[attr-defined]
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "commands"):
            break
    assert context.command_path in example


def test_usage_is_as_one_types_it(rookery: Rookery) -> None:
    for name, words in (("read", "TABLE [WHERE]"), ("maintain", "[PATTERN]…")):
        lines = [line.strip() for line in rookery(name, "--help")[1].splitlines()]
        assert f"Usage: rookery {name} {words} [OPTIONS]" in lines


def test_a_shared_option_without_a_value(rookery: Rookery) -> None:
    assert hoist(["status", "--output"]) == ["status", "--output"]
    code, _, err = rookery("status", "--output")
    assert code == 2
    assert "Option '--output' requires an argument." in err


@pytest.mark.parametrize(
    "typed, expected",
    [
        ("rookery mai", {"maintain"}),
        ("rookery puffin in", {"inspect"}),
        ("rookery status --deb", {"--debug"}),
        ("rookery read db.t --output j", {"json", "jsonl"}),
    ],
)
def test_completion(program: Program, typed: str, expected: set[str]) -> None:
    ran = program(_ROOKERY_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(typed.split()) - 1))
    assert (ran.returncode, set(ran.stdout.decode().split())) == (0, expected)


def test_the_script_for_a_shell(program: Program) -> None:
    ran = program("--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert ran.returncode == 2  # the shell must be named then
    ran = program("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert ran.returncode == 0
    assert b"_ROOKERY_COMPLETE=complete_bash" in ran.stdout
