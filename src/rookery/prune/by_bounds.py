"""Bounds and counts of columns, as zone maps have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rookery.model import Leaf, Predicate
from rookery.model.type_names import base_type
from rookery.prune.bounds import might_match, must_match
from rookery.values.canonical import SUPPORTED
from rookery.values.evaluate import evaluate, surely

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning


def sure_files(pruning: Pruning, predicate: Predicate) -> NDArray[np.bool_]:
    """Return the files of which every row matches, deleted ones aside."""
    files = pruning.files

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        if leaf.field.repeated or base_type(leaf.field.type) not in SUPPORTED:
            return np.zeros(len(files), bool)
        return must_match(leaf, files.bounds(leaf.field))

    return surely(predicate, test, len(files))


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Skip files whose bounds exclude the values."""
    files = pruning.files

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        if leaf.field.repeated or base_type(leaf.field.type) not in SUPPORTED:
            return np.ones(len(files), bool)
        return might_match(leaf, files.bounds(leaf.field))

    return evaluate(pruning.predicate, test, len(files)), ""
