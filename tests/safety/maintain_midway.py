"""A process that maintains a table and kills itself, JVM and all, while Spark writes.

Its words are TABLE POLICY HISTORY. It must lead a group of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rookery
from rookery.api.maintain import maintain
from rookery.maintain import compact
from rookery.storage import local_path

_LOOK = 0.002  # seconds


def die_when_written(folder: Path) -> None:
    """Wait for a file that was not there, which has been begun and not been committed."""
    before = set(folder.rglob("*.parquet"))

    def look() -> None:
        while not set(folder.rglob("*.parquet")) - before:
            threading.Event().wait(_LOOK)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=look, daemon=True).start()


def main(table: str, policy: str, history: str) -> None:
    lake = rookery.connect("lake")
    folder = Path(local_path(lake.load(table).location()))
    original = compact.call

    def call(*arguments: Any, **options: Any) -> Any:
        die_when_written(folder)
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact, "call", call)
        maintain(lake, [table], policy=policy, history=history, conf={"spark.driver.memory": "512m"})


if __name__ == "__main__":
    main(*sys.argv[1:])
