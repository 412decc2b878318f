"""The consoles: data on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Literal, TextIO

from rich.console import Console
from rich.markup import escape

WIDE = 1 << 16  # columns of output to a pipe, so that nothing is wrapped or cut there
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


def out() -> Console:
    """The console for data. Colour goes only to terminals, and not where `NO_COLOR` is set."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return _console(sys.stdout, width, soft_wrap=width is not None)


def talk() -> Console:
    """The console for everything that is not data."""
    return _console(sys.stderr, None, soft_wrap=True)


def say(markup: str) -> None:
    """Print a line that is not data; one that cannot be printed is dropped, and the exit code stays."""
    with suppress(OSError):
        talk().print(markup)


def say_error(message: str) -> None:
    """Print an error on one line."""
    say(f"[bold red]error:[/] {plain(' '.join(message.split()))}")


def _console(file: TextIO, width: int | None, *, soft_wrap: bool) -> Console:
    # Rich applies NO_COLOR only to colours; bold and dim are escape codes as well.
    colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(
        file=file, width=width, color_system=colors, highlight=False, emoji=False, soft_wrap=soft_wrap
    )


def visible(text: str) -> str:
    """Make control characters visible: the contents of a file must not control a terminal.

    >>> visible("a\\x1b[31m\\nb")
    'a\\\\x1b[31m\\\\x0ab'
    """
    return text.translate(_VISIBLE)


def plain(text: str) -> str:
    """Return a text from outside as markup that shows it unchanged."""
    return escape(visible(text))
