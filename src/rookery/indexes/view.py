"""The view of the cascade for index kinds: the files, which are left, and the segments."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rookery.model import Predicate
from rookery.sidecar import Index, Segment, State


@dataclass(frozen=True, slots=True, eq=False)
class SegmentPosition:
    """The position of a segment's files among those of the set: numbers of files, and their ordinals."""

    segment: int
    numbers: NDArray[np.int64]
    ordinals: NDArray[np.int64]


class SegmentRows(Protocol):
    """The rows of a segment's files that may match, where an index knows rows."""

    @property
    def covered(self) -> NDArray[np.bool_]:
        """The files of which this is so, by ordinal."""
        ...

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows of each file may match."""
        ...

    @property
    def undecided(self) -> Predicate:
        """What must also be true for these rows to match."""
        ...

    def of_file(self, ordinal: int) -> NDArray[np.int64]:
        """Return the rows of one file."""
        ...


class FilesView(Protocol):
    """The live files of a snapshot, numbered from 0."""

    @property
    def state(self) -> State | None:
        """The state that describes them, if any does."""
        ...

    @property
    def places(self) -> Sequence[SegmentPosition]:
        """Every segment's live files."""
        ...

    def __len__(self) -> int: ...

    def segment(self, number: int) -> Segment:
        """Return a segment of the state."""
        ...

    def having(self, index: Index) -> Sequence[SegmentPosition]:
        """Return the places of the segments that hold an index."""
        ...


class PruningView(Protocol):
    """A predicate on its way through the cascade."""

    @property
    def files(self) -> FilesView:
        """The files."""
        ...

    @property
    def predicate(self) -> Predicate:
        """The predicate."""
        ...

    @property
    def keep(self) -> NDArray[np.bool_]:
        """Which files are left."""
        ...

    @property
    def rows(self) -> MutableMapping[int, SegmentRows]:
        """The rows that may match, by segment; a kind that knows rows adds them here."""
        ...


def merged(
    places: Sequence[SegmentPosition], verdict: Callable[[SegmentPosition], NDArray[np.bool_]], count: int
) -> NDArray[np.bool_]:
    """Join the verdicts of segments into one on the set: a file is skipped if any segment excludes it."""
    keep = np.ones(count, bool)
    for place in places:
        keep[place.numbers] &= verdict(place)
    return keep
