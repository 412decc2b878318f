"""The interface of index kinds: how an index is declared, built, merged, used and described.

A kind is a class in a module of its own, and a line in the registry. It has no state: an object of it is sent
to the executors with the files to read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.blobs import Summary
from rookery.indexes.lookup import Probe, look_up
from rookery.indexes.view import PruningView
from rookery.model import Estimate, Field, Leaf, UsageError
from rookery.model.type_names import base_type
from rookery.puffin import BlobMetadata
from rookery.sidecar import Index, IndexBlob, Segment
from rookery.sketch.values import ValueConsumer
from rookery.values.canonical import SUPPORTED

LOWEST_FPP = 1e-6  # a lower one takes more than twice the space, and there are rarely so many files
Part = TypeVar("Part")
Part_co = TypeVar("Part_co", covariant=True)


@dataclass(frozen=True, slots=True)
class RowConsumer:
    """Receives the values of a file in the order of its rows, null where a row has none."""

    add: Callable[[pa.Array, int], None]  # values of rows that follow each other, and the first row


class Builder(Protocol[Part_co]):
    """An index of some files of a group under construction; files come one after the other."""

    def begin(self, ordinal: int, rows: int) -> ValueConsumer | RowConsumer:
        """Return the consumer of the values of a file: in any order and by their bytes, or row by row."""
        ...

    def end(self, ordinal: int, *, whole: bool) -> None:
        """Keep the result of a file; one that is not ended is not covered.

        One that is not *whole* is shared by several tasks, and this is a part of it.
        """
        ...

    def result(self) -> Part_co:
        """Return the result of the files that were ended."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MergeInput:
    """A segment that becomes part of another: which of its files are kept, and the ordinal of the first."""

    segment: Segment
    kept: NDArray[np.bool_]
    offset: int


class IndexKind(ABC, Generic[Part]):
    """A kind of index. *Part* is the index of some files of a group, before it is written as blobs."""

    name: ClassVar[str]  # as it is declared, and stored in states
    blob_type: ClassVar[str]  # with a version at the end
    stage: ClassVar[str]  # of the cascade, as `explain` shows it
    summary: ClassVar[str]  # for help and documentation, in one line
    default_fpp: ClassVar[float | None] = None  # None where a kind has no false-positive rate
    serves_equality: ClassVar[bool] = False  # whether Bloom filters inside of files would add nothing
    counts_rows: ClassVar[bool] = False  # whether `prune` adds the rows that may match to the view

    # -- declaring

    def serves(self, field: Field) -> bool:
        """Whether a column can have such an index, by its type."""
        return not field.repeated and base_type(field.type) in SUPPORTED

    def check(self, field: Field, distinct: Estimate | None) -> None:
        """Refuse a column, for example with too many distinct values, as far as these are known."""

    def rate(self, fpp: float | None) -> float:
        """Return the false-positive rate to declare; refuse one that is not possible."""
        if fpp is not None and (self.default_fpp is None or not LOWEST_FPP <= fpp < 1):
            raise UsageError(
                f"a false-positive rate of {fpp:g} is not possible",
                hint=f"a {self.name} index has none"
                if self.default_fpp is None
                else f"it must be between {LOWEST_FPP:f} and 1, such as {self.default_fpp:g}",
            )
        return fpp or self.default_fpp or 0.0

    # -- building

    def weights(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of a new segment's capacity that each file takes, by its rows."""
        return np.zeros(len(rows))

    @abstractmethod
    def builder(self, index: Index, rows: Sequence[int]) -> Builder[Part]:
        """Return a builder for a group of files that have so many rows."""

    @abstractmethod
    def encode(self, part: Part) -> Iterator[tuple[int, bytes | memoryview]]:
        """Yield a part as rows that executors send: a number of the kind's own choice, and bytes."""

    @abstractmethod
    def decode(self, number: int, payload: bytes | memoryview) -> Part:
        """Read one such row."""

    @abstractmethod
    def merge(self, parts: Sequence[Part]) -> Part:
        """Merge parts of one group; a file that several tasks have shared is in several of them."""

    @abstractmethod
    def blobs(self, index: Index, part: Part, files: int, shared: Set[int]) -> Iterable[IndexBlob]:
        """Return the blobs of a group of *files*; those of *shared* ordinals were read in several parts."""

    # -- merging segments

    def fits(self, rows: NDArray[np.int64]) -> bool:
        """Whether files that have so many rows can share a segment."""
        return True

    @abstractmethod
    def merge_segments(
        self, index: Index, inputs: Sequence[MergeInput], rows: NDArray[np.int64]
    ) -> Iterable[IndexBlob]:
        """Return the blobs of the segment that several become; *rows* are those of its files."""

    # -- pruning

    def prune(self, view: PruningView) -> tuple[NDArray[np.bool_], str]:
        """Return which files may match, of all, and a note: why it could not help, or what it did."""
        return look_up(view, self.name, self.ask)

    def ask(self, index: Index, leaf: Leaf, notes: list[str]) -> Probe | None:
        """Return how to look a leaf up in a segment, or None where any file may match."""
        return None

    # -- describing

    @abstractmethod
    def summarize(self, blob: BlobMetadata, payload: bytes, file: str) -> Summary:
        """Sum up a blob, for `puffin inspect`."""
