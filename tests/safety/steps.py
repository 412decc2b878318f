"""The steps of an analysis, and a way to have something happen at each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest


@dataclass(frozen=True)
class Step:
    """A moment: before or after a call of a function, which is found by its module and name."""

    function: str
    after: bool
    call: int = 1

    def owner(self) -> tuple[Any, str]:
        module, _, path = self.function.partition(":")
        *outer, name = path.split(".")
        found: Any = import_module(module)
        for part in outer:
            found = getattr(found, part)
        return found, name


_SEGMENT = "rookery.collect.segments:write_segment"
_BLOB = "rookery.sidecar.checksums:ChecksumWriter.add"
_STATE = "rookery.sidecar.store:Store.write_state"
_STATISTICS = "rookery.collect.analyze:register"
_COMMIT = "rookery.tables.iceberg.table:IcebergTable.register_statistics"
_GARBAGE = "rookery.sidecar.store:Store.collect_garbage"

STEPS = {
    "before the segment": Step(_SEGMENT, after=False),
    "inside the segment": Step(_BLOB, after=True, call=2),
    "after the segment": Step(_SEGMENT, after=True),
    "before the state": Step(_STATE, after=False),
    "inside the state": Step(_BLOB, after=True, call=7),  # a segment of two columns has five blobs
    "after the state": Step(_STATE, after=True),
    "before the statistics file": Step(_STATISTICS, after=False),
    "after the statistics file": Step(_COMMIT, after=False),
    "after the commit": Step(_COMMIT, after=True),
    "before the garbage is collected": Step(_GARBAGE, after=False),
    "after the garbage is collected": Step(_GARBAGE, after=True),
}


@contextmanager
def at(step: Step, act: Callable[[], None]) -> Iterator[None]:
    """Do something at a step of whatever runs inside."""
    owner, name = step.owner()
    original = getattr(owner, name)
    calls = 0

    def stand_in(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        mine = calls == step.call
        if mine and not step.after:
            act()
        result = original(*arguments, **options)
        if mine and step.after:
            act()
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, stand_in)
        yield
