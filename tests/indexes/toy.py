"""A kind of index in one module: the lengths of the texts of each file, which tell where a text cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.blobs import Summary
from rookery.indexes import Builder, IndexKind, MergeInput, RowConsumer
from rookery.indexes.lookup import Probe
from rookery.model import Field, FormatError, Leaf, Place, wanted_values
from rookery.puffin import BlobMetadata
from rookery.sidecar import Index, IndexBlob, Segment

Lengths = dict[int, list[int]]
"""The lengths that occur, in bytes, by the ordinals of files."""


class LengthsKind(IndexKind[Lengths]):
    """Which lengths the texts of each file have."""

    name = "lengths"
    blob_type = "toy-lengths-v1"
    stage = "lengths"
    summary = "Knows the lengths of texts; serves = and IN on texts of different lengths."

    def serves(self, field: Field) -> bool:
        return field.type == "string" and not field.repeated

    def builder(self, index: Index, rows: Sequence[int]) -> Builder[Lengths]:
        return LengthsBuilder()

    def encode(self, part: Lengths) -> Iterator[tuple[int, bytes]]:
        yield 0, json.dumps(part).encode()

    def decode(self, number: int, payload: bytes) -> Lengths:
        return parsed(payload, place=Place("a row"))

    def merge(self, parts: Sequence[Lengths]) -> Lengths:
        joined: Lengths = {}
        for part in parts:
            for ordinal, lengths in part.items():
                joined[ordinal] = sorted({*joined.get(ordinal, []), *lengths})
        return joined

    def blobs(self, index: Index, part: Lengths, files: int, shared: Set[int]) -> Iterable[IndexBlob]:
        payload = json.dumps(part).encode()
        yield IndexBlob(self.blob_type, index.field_id, payload, head=len(payload))

    def merge_segments(
        self, index: Index, inputs: Sequence[MergeInput], rows: NDArray[np.int64]
    ) -> Iterable[IndexBlob]:
        moved: Lengths = {}
        for one in inputs:
            places = np.cumsum(one.kept) - 1 + one.offset
            for part in self._parts(one.segment, index):
                moved |= {int(places[n]): lengths for n, lengths in part.items() if one.kept[n]}
        return self.blobs(index, moved, len(rows), set())

    def ask(self, index: Index, leaf: Leaf, notes: list[str]) -> Probe | None:
        values = wanted_values(leaf)
        if values is None:
            return None
        wanted = {len(str(value).encode("utf-8", "surrogatepass")) for value in values}

        def probe(segment: Segment) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
            for part in self._parts(segment, index):
                found = [not wanted.isdisjoint(lengths) for lengths in part.values()]
                yield np.array(list(part), np.int32), np.array(found, bool)

        return probe

    def summarize(self, blob: BlobMetadata, payload: bytes, file: str) -> Summary:
        part = parsed(payload, place=Place(file, blob.offset))
        return {"covered": len(part), "lengths": len({n for lengths in part.values() for n in lengths})}

    def _parts(self, segment: Segment, index: Index) -> list[Lengths]:
        return [part for _, part in segment.heads(self.blob_type, index.field_id, parsed)]


class LengthsBuilder:
    """The lengths of the files of one task."""

    def __init__(self) -> None:
        self._found: Lengths = {}

    def begin(self, ordinal: int, rows: int) -> RowConsumer:
        self._lengths: set[int] = set()
        return RowConsumer(self._add)

    def _add(self, values: pa.Array, first_row: int) -> None:
        if not pa.types.is_null(values.type):
            self._lengths.update(pc.unique(pc.binary_length(values.cast(pa.large_binary()))).to_pylist())
            self._lengths.discard(None)  # type: ignore[arg-type]

    def end(self, ordinal: int, *, whole: bool) -> None:
        self._found[ordinal] = sorted(self._lengths)

    def result(self) -> Lengths:
        return self._found


def parsed(payload: bytes, *, place: Place) -> Lengths:
    try:
        return {int(ordinal): lengths for ordinal, lengths in json.loads(payload).items()}
    except (ValueError, AttributeError) as error:
        raise FormatError(place, "lengths by file", repr(error)) from error
