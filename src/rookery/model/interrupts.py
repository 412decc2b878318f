"""A signal that ends the process, remembered: whoever waited for another process may not let it through.

py4j loses the KeyboardInterrupt that a signal raises if the JVM got the signal too and is gone already.
"""

from __future__ import annotations

_received: list[int] = []


def interrupt(number: int, _: object) -> None:
    """Take a signal: end what runs as Ctrl-C does, so that leases are given back and runs recorded.

    Another one is not heeded: it would interrupt just that.
    """
    _received.append(number)
    if len(_received) == 1:
        raise KeyboardInterrupt(number)


def check_interrupted() -> None:
    """Raise the KeyboardInterrupt of a signal that has come once more: what failed since failed by it."""
    if _received:
        raise KeyboardInterrupt(_received[0])
