"""A process that maintains a table and kills itself, JVM and all, while Spark is at work.

Its words are TABLE MODULE FILES POLICY HISTORY: when MODULE has called its procedure and the first file has
come that is like FILES, it dies. It must lead a group of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rookery
from rookery.api.maintain import maintain
from rookery.io import local_path

_LOOK = 0.002  # seconds


def die_when_written(folder: Path, files: str) -> None:
    """Wait for a file that was not there: it has been begun, and most likely is not yet named."""
    before = set(folder.rglob(files))

    def look() -> None:
        while not set(folder.rglob(files)) - before:
            threading.Event().wait(_LOOK)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=look, daemon=True).start()


def main(table: str, module: str, files: str, policy: str, history: str) -> None:
    lake = rookery.connect("lake")
    folder = Path(local_path(lake.load(table).location()))
    owner: Any = import_module(f"rookery.maintain.steps.{module}")
    original = owner.call

    def call(*arguments: Any, **options: Any) -> Any:
        die_when_written(folder, files)
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "call", call)
        maintain(lake, [table], policy=policy, history=history, conf={"spark.driver.memory": "512m"})


if __name__ == "__main__":
    main(*sys.argv[1:])
