"""Values that are in two files, by the inverted thetas of segments: a column that has one is not unique."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rookery.prune.fileset import FileSet
from rookery.sketch import MAX_THETA, InvertedTheta


def repeated_columns(files: FileSet, field_ids: frozenset[int]) -> frozenset[int]:
    """Return those of the columns of which a sampled value occurs in two live files."""
    assert files.state is not None
    entries = files.state.header.segments
    seen = {number: np.zeros(len(files), bool) for number in field_ids}
    parts: dict[int, list[tuple[InvertedTheta, NDArray[np.bool_]]]] = {number: [] for number in field_ids}
    for place in files.places:
        here = field_ids.intersection(entries[place.segment].field_ids)
        for number, theta in files.segment(place.segment).thetas(here).items() if here else ():
            fresh = ~seen[number][place.numbers]  # a file may be in two segments
            seen[number][place.numbers] = True
            chosen = np.zeros(theta.files, bool)
            chosen[place.ordinals[fresh]] = True
            parts[number].append((theta, chosen))
    return frozenset(number for number, each in parts.items() if _has_repeat(each))


def _has_repeat(parts: list[tuple[InvertedTheta, NDArray[np.bool_]]]) -> bool:
    """Whether one of the hashes below the common θ is in two of the chosen files."""
    common = min((theta.theta for theta, _ in parts), default=MAX_THETA)
    once = []
    for theta, chosen in parts:
        below = theta.below(common)
        counts = np.bitwise_count(below.rows & np.packbits(chosen, bitorder="little")).sum(axis=1)
        if (counts > 1).any():
            return True
        once.append(below.hashes[counts > 0])
    if len(once) < 2:
        return False
    hashes = np.sort(np.concatenate(once))
    return bool((hashes[1:] == hashes[:-1]).any())
