"""Bounds and counts of columns, as zone maps have them from manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rookery.model import Leaf
from rookery.prune.bounds import might_match
from rookery.prune.evaluate import evaluate
from rookery.prune.forms import SUPPORTED
from rookery.sketch.typing import base_type

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Leave out files whose values lie elsewhere."""
    files = pruning.files

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        if leaf.field.repeated or base_type(leaf.field.type) not in SUPPORTED:
            return np.ones(len(files), bool)
        return might_match(leaf, files.bounds(leaf.field))

    return evaluate(pruning.predicate, test, len(files)), ""
