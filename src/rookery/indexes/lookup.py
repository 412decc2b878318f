"""Pruning by the leaves of a predicate, each looked up in every segment with an index on its column."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from rookery.indexes.view import PruningView, SegmentPosition, merged
from rookery.model import Leaf, counted, leaves_of
from rookery.sidecar import Index, Segment
from rookery.values.evaluate import evaluate

Probe = Callable[[Segment], Iterable[tuple[NDArray[np.int32], NDArray[np.bool_]]]]
"""Returns ordinals of a segment's files, and which of those may match; any other file may."""

Ask = Callable[[Index, Leaf, list[str]], Probe | None]
"""Returns how to look a leaf up, or None where any file may match; notes for users go to the list."""


def look_up(view: PruningView, kind: str, ask: Ask) -> tuple[NDArray[np.bool_], str]:
    """Skip the files that an index of a kind proves to have no matching row."""
    files, state = view.files, view.files.state
    everything = np.ones(len(files), bool)
    if state is None:
        return everything, "the table was never analyzed"
    indexes = {index.field_id: index for index in state.header.indexes if index.kind == kind}
    wanted = {leaf.field.id for leaf in leaves_of(view.predicate)}
    if not indexes.keys() & wanted:
        return everything, f"no {kind} index on these columns"
    notes: list[str] = []

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        index = indexes.get(leaf.field.id)
        if index is None or index.type != leaf.field.type:
            return everything
        probe = ask(index, leaf, notes)
        if probe is None:
            return everything
        places = files.having(index)
        covered = sum(len(place.numbers) for place in places)
        if covered < len(files):
            notes.append(f"{counted(len(files) - covered, 'file')} not indexed yet")
        return merged(places, lambda place: _verdict(view, place, probe, notes), len(files))

    return evaluate(view.predicate, test, len(files)), "; ".join(dict.fromkeys(notes))


def _verdict(view: PruningView, place: SegmentPosition, probe: Probe, notes: list[str]) -> NDArray[np.bool_]:
    everything = np.ones(len(place.numbers), bool)
    if not view.keep[place.numbers].any():
        return everything
    segment, state = view.files.segment(place.segment), view.files.state
    assert state is not None
    maybe = np.ones(state.header.segments[place.segment].files, bool)
    try:
        for ordinals, may_match in probe(segment):
            maybe[ordinals] = may_match
    except Exception as error:  # noqa: BLE001  # of one segment: the others are still used
        notes.append(f"a segment could not be used: {error}")
        return everything
    return maybe[place.ordinals]
