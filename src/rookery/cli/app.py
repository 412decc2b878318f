"""The root of the command line: shared options, and one place that reports errors."""

from __future__ import annotations

import logging
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rookery.cli import (
    discover,
    doctor,
    history,
    indexes,
    load,
    maintain,
    policies,
    puffin,
    read,
    statistics,
    status,
    tables,
    watch,
)
from rookery.cli.console import plain, say, say_error, talk
from rookery.cli.help import SHARED, HelpfulGroup, HelpfulTyper
from rookery.cli.options import Options, Output
from rookery.model import GroupedUsageError, RookeryError
from rookery.model.announce import LOGGER
from rookery.model.interrupts import SIGNALLED, check_interrupted

_SHARED_VALUES = ("--catalog", "--uri", "--warehouse", "--output")
_SHARED_FLAGS = ("--debug",)
BAD_INPUT = 2
FORMATS = "Output format: text or json; of rows also jsonl, csv, arrow, parquet; of `status` also prometheus."


class RootGroup(HelpfulGroup):
    """Accepts the shared options before or after the command."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Bring the shared options to the front, where they are declared."""
        return super().parse_args(ctx, hoist(args))

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command; an interrupt is distinguished from Typer's own abort."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise InterruptedCommand(error.args[0] if error.args else signal.SIGINT) from error


class InterruptedCommand(BaseException):  # not an `Exception`, so that error handlers do not catch it
    """A signal, by its number, has ended the command."""


def hoist(args: list[str]) -> list[str]:
    """Move the shared options to the front; nothing after `--` is touched.

    >>> hoist(["puffin", "inspect", "f", "--output", "json"])
    ['--output', 'json', 'puffin', 'inspect', 'f']
    """
    front: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in _SHARED_VALUES:
            value = next(words, None)
            if value is None:  # the command reports that it is missing, or completes it
                rest.append(word)
            else:
                front += [word, value]
        elif word in _SHARED_FLAGS or word.startswith(tuple(f"{name}=" for name in _SHARED_VALUES)):
            front.append(word)
        else:
            rest.append(word)
    return front + rest


app = HelpfulTyper(
    name="rookery",
    cls=RootGroup,
    help="Statistics and indexes beside lakehouse tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("load")(load.load)
app.command("tables")(tables.tables)
app.command("describe")(tables.describe)
app.command("analyze")(statistics.analyze)
app.command("stats")(statistics.stats)
app.command("explain")(read.explain)
app.command("read")(read.read)
app.command("count")(read.count)
app.command("estimate")(read.estimate)
app.command("status")(status.status)
app.command("discover")(discover.discover)
app.command("maintain")(maintain.maintain)
app.command("watch")(watch.watch)
app.command("history")(history.history)
app.command("doctor")(doctor.doctor)
app.add_typer(indexes.app, name="index")
app.add_typer(policies.app, name="policy")
app.add_typer(puffin.app, name="puffin")


def _print_version(wanted: bool) -> None:
    if wanted:
        from rookery.version import __version__  # which looks into all that is installed

        sys.stdout.write(f"Rookery {__version__}\n")
        raise typer.Exit


def _shared(help_text: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=SHARED, **settings)


@app.callback()
def root(
    context: typer.Context,
    catalog: Annotated[str | None, _shared("Catalog, by its name in .pyiceberg.yaml.")] = None,
    uri: Annotated[str | None, _shared("URI of a catalog.")] = None,
    warehouse: Annotated[str | None, _shared("Warehouse of that catalog.")] = None,
    output: Annotated[Output, _shared(FORMATS, metavar="FORMAT")] = Output.TEXT,
    debug: Annotated[bool, _shared("Show details, and the traceback of an error.", "--debug")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Statistics and indexes beside lakehouse tables."""
    context.obj = Options(catalog=catalog, uri=uri, warehouse=warehouse, output=output, debug=debug)


class Warnings(logging.Handler):
    """Shows warnings of the packages below as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one warning."""
        say(f"[bold yellow]warning:[/] {plain(' '.join(record.getMessage().split()))}")


class Announcements(logging.Handler):
    """Shows what takes long as lines on a terminal's standard error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take announcements alone."""
        return record.name == LOGGER

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        say(f"[dim]{plain(record.getMessage())} …[/]")


@contextmanager
def _logs_shown() -> Iterator[None]:
    """Show warnings, and announcements where people wait for them."""
    log, announcements = logging.getLogger("rookery"), logging.getLogger(LOGGER)
    handlers: list[logging.Handler] = [Warnings(logging.WARNING)]
    before = announcements.level
    if talk().is_terminal:
        handlers.append(Announcements(logging.INFO))
        announcements.setLevel(logging.INFO)
    for handler in handlers:
        log.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            log.removeHandler(handler)
        announcements.setLevel(before)


def run(words: list[str]) -> int:
    """Run a command and return its exit code: 0 done, 1 findings or partial failure, 2 wrong usage or input.

    A command that a signal ends returns 128 and the signal's number: 130 after Ctrl-C.
    """
    with _logs_shown():
        try:
            return _run(words)
        except (InterruptedCommand, KeyboardInterrupt) as error:
            _trace(words)
            _fail("interrupted", None)
            return SIGNALLED + int(error.args[0] if error.args else signal.SIGINT)


def _run(words: list[str]) -> int:
    try:
        code = typer.main.get_command(app).main(words, prog_name="rookery", standalone_mode=False)
        sys.stdout.flush()  # a failure to print is an error here, not when the process ends
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "rookery"
        what = "commands" if context is None or isinstance(context.command, TyperGroup) else "options"
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its help is shown
            with suppress(OSError):
                sys.stderr.write(error.format_message() + "\n")
            return BAD_INPUT
        message = error.format_message().replace("Value error, ", "", 1)  # it is Pydantic's
        return _fail(message, f"`{command} --help` lists the {what}")
    except RookeryError as error:
        check_interrupted(error)
        _trace(words)
        for each in error.errors if isinstance(error, GroupedUsageError) else (error,):
            _fail(each.message, each.hint)
        return BAD_INPUT
    except typer.Abort:
        return _fail("stopped", None)
    except SystemExit as done:  # of Typer's completion, which has printed all
        return done.code if isinstance(done.code, int) else 0
    except BrokenPipeError:  # the reader of the output has ended; there is nobody to report to
        return 1
    except Exception as error:  # noqa: BLE001  # no error ends in a traceback
        check_interrupted(error)
        from rookery.api.errors import as_rookery, hide_secrets  # brings PyIceberg

        _trace(words)
        wrapped = as_rookery(error, " ".join(words[:1]))
        return _fail(hide_secrets(wrapped.message, words), wrapped.hint)


def _trace(words: list[str]) -> None:
    if "--debug" in words:
        from rookery.api.errors import hide_secrets  # brings PyIceberg

        with suppress(OSError):
            sys.stderr.write(hide_secrets(traceback.format_exc(), words))


def _fail(message: str, hint: str | None) -> int:
    say_error(message)
    if hint:
        say(f"[bold]hint:[/] {plain(hint)}")
    return BAD_INPUT
