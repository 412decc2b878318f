"""Standard streams that are closed or full, and the end of the process."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
import threading
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from rookery.model import StorageError
from rookery.model.interrupts import SIGNALLED, received

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OUTPUT = 1
_FAILED = 2


class OutputError(StorageError):
    """Standard output cannot be written to."""


class _Output(FileIO):
    """Standard output, whose errors are of a class of their own."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            written = super().write(data)
        except BrokenPipeError:  # its reader has ended, which is not an error
            raise
        except OSError as error:
            raise OutputError(
                f"standard output cannot be written: {os.strerror(error.errno or errno.EIO)}",
                hint="check where it goes: the space that is left, and that it is open",
            ) from error
        return written


def prepare_streams() -> None:
    """Open the streams that are closed, and distinguish errors of standard output from others.

    Else the next file to be opened would get the number of a closed stream, and be printed into.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Printing to a closed standard output still fails; output to a closed standard error is dropped.
            null = os.open(os.devnull, os.O_RDONLY if number <= _OUTPUT else os.O_WRONLY)
            os.set_inheritable(null, True)
            setattr(sys, name, open(null, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
    if not isinstance(sys.stdout, TextIOWrapper):
        return
    raw = _Output(sys.stdout.fileno(), "w", closefd=False)
    sys.stdout.flush()
    sys.stdout = TextIOWrapper(
        raw if sys.stdout.write_through else BufferedWriter(raw),
        encoding=sys.stdout.encoding,
        errors="backslashreplace",  # a name that the terminal cannot show is shown escaped
        line_buffering=sys.stdout.line_buffering,
        write_through=sys.stdout.write_through,
    )


def leave(code: int) -> NoReturn:
    """End the process once its threads have ended, its exit functions have run and all is printed.

    Native libraries are not torn down: their threads may still run then, which aborts the process. After a
    signal it does not wait.
    """
    try:
        if code <= SIGNALLED:
            threading._shutdown()  # type: ignore[attr-defined]  # thread pools end their threads here
            atexit._run_exitfuncs()
    except KeyboardInterrupt:
        code = SIGNALLED + (received() or signal.SIGINT)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            code = code or 1
        except (OSError, OutputError, ValueError):  # ValueError if an exit function has closed it
            code = code or (_FAILED if stream is sys.stdout else 0)
    os._exit(code)
