"""The entry point: signals are handled before the command line is imported."""

from __future__ import annotations

import os
import sys

from rookery.cli.streams import leave, prepare_streams
from rookery.model.interrupts import SIGNALLED, end_on_signals, received


def main(args: list[str] | None = None) -> None:
    """Run a command and exit with its code; a signal ends the imports of the command line too."""
    end_on_signals()
    try:
        prepare_streams()
        from rookery.cli.app import run
    except BaseException:
        number = received()
        if number is None:
            raise
        sys.stderr.write("error: interrupted\n")
        sys.stderr.flush()
        os._exit(SIGNALLED + number)
    leave(run(sys.argv[1:] if args is None else args))
