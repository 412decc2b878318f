"""The moments at which a run of the pipeline may be ended, and a way to do something at one of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from rookery.maintain import pipeline
from tests.safety.steps import Step

_STEPS = "rookery.maintain.steps"
_RECORD = "rookery.maintain.runs.history:History.step"

# For each step of the pipeline: what has not happened yet, then what has happened and nobody has looked at.
POINTS: dict[str, tuple[Step, Step]] = {
    "expire snapshots": (
        Step(f"{_STEPS}.expire:call", after=False),  # statistics were registered first
        Step(f"{_STEPS}.expire:call", after=True),
    ),
    "remove orphan files": (
        Step(f"{_STEPS}.orphans:call", after=False),
        Step(f"{_STEPS}.orphans:call", after=True),
    ),
    "rewrite data files": (
        Step(f"{_STEPS}.compact:call", after=False),
        Step(f"{_STEPS}.compact:call", after=True),
    ),
    "rewrite deletes": (
        Step(f"{_STEPS}.rewrite_deletes:remove_deletes", after=True),  # the first of its two commits
        Step(f"{_STEPS}.rewrite_deletes:call", after=True),
    ),
    "rewrite manifests": (
        Step(f"{_STEPS}.rewrite_manifests:call", after=False),
        Step(_RECORD, after=False, call=5),  # verified, and not recorded
    ),
    "refresh statistics": (
        Step("rookery.tables.iceberg.table:IcebergTable.register_statistics", after=False),
        Step("rookery.tables.iceberg.table:IcebergTable.register_statistics", after=True),
    ),
    "clean up": (
        Step(f"{_STEPS}.removal:delete_file", after=True),  # one of two is deleted
        Step(_RECORD, after=False, call=7),
    ),
}


@contextmanager
def in_step(name: str, act: Callable[[], None], *, once: bool = True) -> Iterator[None]:
    """Do something between the plan of a step and its run."""
    acted = False

    def ran(step: Any) -> Any:
        def run(look: Any, planned: Any) -> Any:
            nonlocal acted
            if not (acted and once):
                acted = True
                act()
            return step.run(look, planned)

        return replace(step, run=run)

    changed = tuple(ran(step) if step.name == name else step for step in pipeline.STEPS)
    assert changed != pipeline.STEPS, name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "STEPS", changed)
        yield
    assert acted, f"'{name}' did not run"
