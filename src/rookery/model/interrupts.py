"""Signals that end the process, recorded: a call that waits for another process may lose them.

py4j loses the KeyboardInterrupt that a signal raises: a call made while it unwinds fails, and that error is
raised in its place.
"""

from __future__ import annotations

import signal

SIGNALLED = 128  # and the signal's number: the exit code of a command that a signal has ended
_received: list[int] = []


def end_on_signals() -> None:
    """Let signals end the process as Ctrl-C does: leases are given back, runs recorded, new files deleted."""
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # of a terminal that is closed; ignored under nohup
        signal.signal(signal.SIGHUP, interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored in the background of a shell
        signal.signal(signal.SIGINT, interrupt)


def interrupt(number: int, _: object) -> None:
    """Take a signal, and another only if it is SIGINT: the first one has begun a clean-up."""
    _received.append(number)
    if len(_received) == 1 or number == signal.SIGINT:
        raise KeyboardInterrupt(number)


def received() -> int | None:
    """The number of the first signal, if one was received."""
    return _received[0] if _received else None


def check_interrupted(error: BaseException | None = None) -> None:
    """Raise KeyboardInterrupt again if a signal was received, or if *error* was raised while one unwound."""
    if _received:
        raise KeyboardInterrupt(_received[0])
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__context__
