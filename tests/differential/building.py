"""Giving a table a random past."""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.history import History
from tests.differential.import_steps import add_files
from tests.differential.row_steps import append, delete, delete_equal, foreign_commit, load, merge, update
from tests.differential.schema_steps import add_part, change_columns, change_partitions
from tests.differential.snapshot_steps import (
    analyze,
    branch,
    index,
    rewrite,
    roll_back,
    set_property,
    stage_and_pick,
)

_ACTIONS: tuple[tuple[Callable[[History], None], int], ...] = (
    (append, 6),
    (delete, 3),
    (update, 1),
    (merge, 2),
    (delete_equal, 2),
    (change_columns, 5),
    (change_partitions, 3),
    (index, 4),
    (analyze, 3),
    (set_property, 1),
    (roll_back, 1),
    (rewrite, 1),
    (branch, 2),
    (stage_and_pick, 1),
    (add_files, 2),
)
_WEIGHTED = [action for action, weight in _ACTIONS for _ in range(weight)]


def build(history: History) -> None:
    """Create the table and give it a past; the last commit may be one that the session has not seen."""
    rng = history.rng
    history.create()
    for _ in range(rng.choice((0, 0, 1, 2))):
        add_part(history)
    load(history)
    for _ in range(rng.randrange(2, 8)):
        rng.choice(_WEIGHTED)(history)
    if rng.random() < 0.5:
        analyze(history)
    if rng.random() < 0.4:
        foreign_commit(history)


def build_small(history: History) -> None:
    """A partner for joins: a few files and no more."""
    history.create(("c0", "c2"))
    if history.rng.random() < 0.5:
        load(history)
    for _ in range(history.rng.choice((1, 2))):
        append(history)
    if history.rng.random() < 0.5:
        index(history)
