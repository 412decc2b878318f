"""Segments with indexes, and the same worked out without them: from the values of each file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from rookery.indexes import KINDS
from rookery.sidecar import Contents, Index, IndexBlob, SegmentEntry, Store, ZoneMap, write_segment
from rookery.sidecar.checksums import footer_checksum
from rookery.sketch import InvertedTheta
from rookery.sketch.bitmap import BitmapBuilder, BitmapIndex
from rookery.sketch.bloom import BloomFilter, blocks_for
from rookery.sketch.bloom_builder import BloomBuilder
from rookery.sketch.bloom_matrix import BloomMatrix
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import add_arrow
from rookery.tables import FILE_SCHEMA

FPP = 0.01
BLOOM = Index("bloom", 1, "long", FPP)
BITMAP = Index("bitmap", 2, "string")


@dataclass(frozen=True)
class File:
    """A data file: its keys, and its words, of which some are null; a part may be missing of the indexes."""

    name: str
    keys: tuple[int, ...]
    words: tuple[str | None, ...]
    in_bloom: bool = True
    in_bitmap: bool = True

    def bloom(self) -> BloomFilter:
        builder = BloomBuilder("long", blocks_for(max(len(self.keys), 1), FPP))
        add_arrow(builder, "long", pa.array(self.keys, pa.int64()))
        return builder.result().fitted(FPP)


def blooms_of(files: Sequence[File]) -> list[BloomMatrix]:
    filters = {n: file.bloom() for n, file in enumerate(files) if file.in_bloom}
    return BloomMatrix.of(filters, len(files), FPP)


def bitmap_of(files: Sequence[File]) -> BitmapIndex:
    builder = BitmapBuilder("string", [len(file.keys) for file in files])
    for ordinal, file in enumerate(files):
        if file.in_bitmap:
            builder.add(pa.array(file.words, pa.string()), 0, ordinal)
            builder.cover(ordinal)
    return builder.result()


def blobs_of(files: Sequence[File]) -> Iterator[IndexBlob]:
    filters = {n: file.bloom() for n, file in enumerate(files) if file.in_bloom}
    yield from KINDS["bloom"].blobs(BLOOM, filters, len(files), set())
    yield from KINDS["bitmap"].blobs(BITMAP, bitmap_of(files), len(files), set())


def theta_of(files: Sequence[File]) -> InvertedTheta:
    parts = []
    for ordinal, file in enumerate(files):
        builder = ThetaBuilder()
        add_arrow(builder, "long", pa.array(file.keys, pa.int64()))
        parts.append(InvertedTheta.of(builder.result(), ordinal, len(files)))
    return InvertedTheta.merge(parts)


def zone_of(files: Sequence[File]) -> ZoneMap:
    listed = [{"path": file.name, "rows": len(file.keys)} for file in files]
    return ZoneMap.of(pa.Table.from_pylist(listed, FILE_SCHEMA))


def indexed_segment(store: Store, files: Sequence[File], *, theta: bool = True) -> SegmentEntry:
    """Write a segment of these files with both indexes; without *theta*, with nothing else."""
    written = write_segment(
        store.segment_path(),
        Contents(zone_of(files), {1: theta_of(files)} if theta else {}),
        blobs_of(files),
        snapshot_id=1,
        sequence_number=1,
        io_properties={},
    )
    return SegmentEntry(
        written.location.rpartition("/")[2],
        len(files),
        (1,) if theta else (),
        9,
        (BLOOM, BITMAP),
        written.size,
        written.footer_size,
        footer_checksum(written.metadata),
    )


def rows_with(bitmap: BitmapIndex, word: str, ordinal: int) -> list[int]:
    """The rows of a file that have a word, by the index."""
    start, rows = int(bitmap.bases[ordinal]), int(bitmap.rows[ordinal])
    here = bitmap.bitmap_of(word.encode()) & BitMap(range(start, start + rows))
    return (np.array(here, np.int64) - start).tolist()
