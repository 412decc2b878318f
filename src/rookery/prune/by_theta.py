"""The inverted theta: in which files a value's hash occurs, where θ has not fallen below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rookery.indexes.view import SegmentPosition, merged
from rookery.model import Field, Leaf, leaves_of, wanted_values
from rookery.model.cache import nbytes_of
from rookery.sketch import MAX_THETA, InvertedTheta
from rookery.sketch.value_hashes import theta_hashes
from rookery.values.evaluate import evaluate

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning

MOST_VALUES = 1000


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Skip files in which none of the wanted values occurs."""
    files, state = pruning.files, pruning.files.state
    everything = np.ones(len(files), bool)
    if state is None:
        return everything, "the table was never analyzed"
    equality_leaves = [leaf for leaf in leaves_of(pruning.predicate) if wanted_values(leaf) is not None]
    if not equality_leaves:
        return everything, "supports only = and IN"
    lowest: list[int] = []

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        values = wanted_values(leaf)
        field = leaf.field
        if values is None or len(values) > MOST_VALUES or state.header.types.get(field.id) != field.type:
            return everything
        hashes = [theta_hashes(field.type, value) for value in values]
        if any(each is None for each in hashes):
            return everything
        flat = [number for each in hashes for number in each or ()]

        def verdict(place: SegmentPosition) -> NDArray[np.bool_]:
            return _verdict(pruning, place, field, flat, lowest)

        return merged(files.places, verdict, len(files))

    keep = evaluate(pruning.predicate, test, len(files))
    if keep.all() and lowest and min(lowest) < MAX_THETA:
        share = min(lowest) / MAX_THETA
        return keep, f"too many distinct values: only hashes below {share:.4%} are kept"
    return keep, ""


def _verdict(
    pruning: Pruning, place: SegmentPosition, field: Field, hashes: list[int], lowest: list[int]
) -> NDArray[np.bool_]:
    everything = np.ones(len(place.numbers), bool)
    if not pruning.keep[place.numbers].any():
        return everything
    assert pruning.files.state is not None
    # Sketches of a column from when it had another type are still in the segment, but not usable.
    if field.id not in pruning.files.state.header.segments[place.segment].field_ids:
        return everything
    segment = pruning.files.segment(place.segment)
    theta = segment.theta_of(field.id)
    if theta is None:
        return everything
    lowest.append(theta)
    if any(value >= theta for value in hashes):
        return everything
    inverted: InvertedTheta = pruning.files.store.cache.get(
        ("inverted theta", segment.name, field.id),
        lambda: segment.thetas(frozenset({field.id}))[field.id],
        nbytes_of,
    )
    may_match = np.zeros(inverted.files, bool)
    for value in hashes:
        files = inverted.with_hash(value)
        if files is None:
            return everything
        may_match |= files
    return may_match[place.ordinals] | ~pruning.files.sketched_whole[place.numbers]
