"""A process that for each line of TABLE STEP WHICH NOW begets one that maintains, and kills itself there.

They share the JVM of whoever started this: where they die, it has nothing to do. This process opens no
connection to it, so that each child has one of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback

import rookery
from rookery.api.lake import Lake
from rookery.api.maintain import maintain
from tests.safety.attached import attached
from tests.safety.maintain_points import POINTS
from tests.safety.steps import at


def die(table: str, step: str, which: str, now: str, policy: str, history: str) -> None:
    session = attached()
    Lake.spark = lambda self, **_: session  # type: ignore[method-assign]
    with at(POINTS[step][int(which)], lambda: os.kill(os.getpid(), signal.SIGKILL)):
        report = maintain(
            rookery.connect("lake"), [table], policy=policy, history=history, clock=lambda: float(now)
        )
    raise AssertionError(f"it lives: {report}")


def main(*common: str) -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                die(*line.rstrip("\n").split("\t"), *common)
            except BaseException:  # noqa: BLE001  # whatever it is, this is not the process to go on
                traceback.print_exc()
            os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{child} {status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
