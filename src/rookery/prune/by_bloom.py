"""The Bloom matrix: a few kilobytes of each segment tell which of its files may hold a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rookery.model import Leaf, leaves_of, wanted_values
from rookery.prune.fileset import SegmentPosition, merged
from rookery.sidecar import Index, IndexKind
from rookery.sketch.value_hashes import bloom_hashes
from rookery.values.evaluate import evaluate

if TYPE_CHECKING:
    from rookery.prune.cascade import Pruning

MOST_VALUES = 256  # each is a read of every segment


def stage(pruning: Pruning) -> tuple[NDArray[np.bool_], str]:
    """Leave out files whose Bloom filter has none of the values asked for."""
    files, state = pruning.files, pruning.files.state
    everything = np.ones(len(files), bool)
    if state is None:
        return everything, "the table was never analysed"
    indexes = {index.field_id: index for index in state.header.indexes if index.kind is IndexKind.BLOOM}
    asked = {leaf.field.id for leaf in leaves_of(pruning.predicate)}
    if not indexes.keys() & asked:
        return everything, "no Bloom index on these columns"
    notes: list[str] = []

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        values, index = wanted_values(leaf), indexes.get(leaf.field.id)
        if values is None or index is None or index.type != leaf.field.type:
            return everything
        if len(values) > MOST_VALUES:
            notes.append(f"more than {MOST_VALUES} values are asked for")
            return everything
        hashes = [bloom_hashes(leaf.field.type, value) for value in values]
        if any(found is None for found in hashes):
            notes.append("NaN cannot be looked up")
            return everything
        flat = [number for found in hashes for number in found or ()]
        places = files.having(index)
        covered = sum(len(place.numbers) for place in places)
        if covered < len(files):
            notes.append(f"{len(files) - covered:,} files are not indexed yet")
        return merged(places, lambda place: _verdict(pruning, place, index, flat, notes), len(files))

    return evaluate(pruning.predicate, test, len(files)), "; ".join(dict.fromkeys(notes))


def _verdict(
    pruning: Pruning, place: SegmentPosition, index: Index, hashes: list[int], notes: list[str]
) -> NDArray[np.bool_]:
    everything = np.ones(len(place.numbers), bool)
    if not pruning.keep[place.numbers].any():
        return everything
    segment = pruning.files.segment(place.segment)
    try:
        probed = segment.probe_blooms(index.field_id, hashes)
    except Exception as error:  # noqa: BLE001  # of one segment: the others still serve
        notes.append(f"a segment could not be used: {error}")
        return everything
    assert pruning.files.state is not None
    maybe = np.ones(pruning.files.state.header.segments[place.segment].files, bool)
    for ordinals, found in probed:
        maybe[ordinals] = found
    return maybe[place.ordinals]
