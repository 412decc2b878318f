"""The files that mutation starts from: small, valid, and of as many shapes as there are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import datasketches
import lz4.frame
from pyroaring import BitMap

from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, Blob, DeletionVector, open_puffin
from rookery.puffin.layout import FooterFlag
from rookery.sketch.blob_types import HLL_V1
from tests.puffin.builders import (
    assemble,
    bitmap32,
    lz4_unsized,
    puffin,
    sealed,
    vector_of,
    with_stored,
    zstd_unsized,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A blob: its JSON, its bytes as stored and as meant."""

    document: dict[str, Any]
    stored: bytes
    plain: bytes

    @property
    def is_vector(self) -> bool:
        return bool(self.document["type"] == DELETION_VECTOR_V1)


@dataclass(frozen=True, slots=True)
class Seed:
    """A valid file, whole and in parts."""

    data: bytes
    document: dict[str, Any]
    parts: tuple[Part, ...]
    compressed_footer: bool

    @classmethod
    def of(cls, data: bytes) -> Seed:
        reader = open_puffin(data)
        payload = data[reader.footer_start + 4 : -12]
        compressed = bool(reader.tail.flags & FooterFlag.COMPRESSED_FOOTER)
        if compressed:
            payload = lz4.frame.decompress(payload)
        document = json.loads(payload)
        parts = tuple(
            Part(described, reader.read_stored(blob), reader.read(blob))
            for described, blob in zip(document["blobs"], reader.metadata.blobs, strict=True)
        )
        return cls(data, document, parts, compressed)


def seeds() -> tuple[Seed, ...]:
    return tuple(map(Seed.of, (*_plain_files(), *_sketches(), *_hll_sketches(), *_vectors())))


def _plain_files() -> tuple[bytes, ...]:
    text = b"some text, " * 5
    several = (
        Blob("text", text, (1, 2), 3, 4, "zstd", {"a": "b"}, {"later": [1, {"x": None}]}),
        Blob("text", text, codec="lz4"),
        Blob("text", text, codec="none"),
        Blob("nothing", b"", codec="none"),
    )
    return (
        puffin(created_by=None),
        puffin(created_by=None, compress_footer=True),
        puffin(*several, extra={"later": {"deep": [[[]]]}}, properties={"k": "v"}),
        puffin(*several, compress_footer=True),
        puffin(*(Blob(f"type-{n}", bytes([n]) * 9, (n,), codec="none") for n in range(12))),
        with_stored((zstd_unsized(text), {"compression_codec": "zstd"})),
        with_stored((lz4_unsized(text), {"compression_codec": "lz4"})),
        # Just below the fuzzer's limit, so that small changes go beyond it.
        with_stored((zstd_unsized(bytes(60_000)), {"compression_codec": "zstd"})),
        with_stored((lz4_unsized(bytes(60_000)), {"compression_codec": "lz4"})),
        puffin(Blob("zeros", bytes(60_000), codec="zstd"), Blob("zeros", bytes(60_000), codec="lz4")),
        assemble(lz4_unsized(b'{"blobs":[]}'), flags=1),
    )


def _sketches() -> tuple[bytes, ...]:
    def payloads(count: int, p: float = 1.0) -> tuple[bytes, ...]:
        sketch = datasketches.update_theta_sketch(5, p)
        for value in range(count):
            sketch.update(value)
        return (
            sketch.compact().serialize(),
            sketch.compact(False).serialize(),
            sketch.compact().serialize(compress=True),
        )

    made = [payloads(0), payloads(1), payloads(12), payloads(200), payloads(3, 0.001)]
    return tuple(
        puffin(
            *(Blob(THETA_V1, payload, (1,), properties={"ndv": "12"}, codec=codec) for payload in forms),
            compress_footer=codec == "lz4",
        )
        for forms in made
        for codec in ("none", "lz4")
    )


def _hll_sketches() -> tuple[bytes, ...]:
    """Each kind in each mode, compact and updatable; the last counts fill registers that four bits lack."""

    def forms(lg_k: int, kind: datasketches.tgt_hll_type, count: int) -> tuple[bytes, bytes]:
        sketch = datasketches.hll_sketch(lg_k, kind)
        for value in range(count):
            sketch.update(value)
        return sketch.serialize_compact(), sketch.serialize_updatable()

    kinds = list(datasketches.tgt_hll_type)
    shapes = [(12, 0), (12, 5), (8, 20), (4, 300), (11, 20_000)]
    return tuple(
        puffin(
            *(
                Blob(HLL_V1, payload, (1,), properties={"ndv": str(count)}, codec=codec)
                for kind in kinds
                for payload in forms(lg_k, kind, count)
            )
        )
        for lg_k, count in shapes
        for codec in ("none", "zstd")
    )


def _vectors() -> tuple[bytes, ...]:
    shapes = [
        DeletionVector.of([]),
        DeletionVector.of([7]),
        DeletionVector.of([1, 5, 2**31, 2**40, 2**63 - 1]),
        DeletionVector.of(range(0, 300, 7)),
        DeletionVector.of(range(0, 9000, 2)),  # a bitset
        DeletionVector.of_range(10, 5000),
        DeletionVector.of([n + (k << 16) for k in range(3) for n in range(50)]),  # runs, no offset header
        DeletionVector.of([n + (k << 16) for k in range(9) for n in range(50)]),  # runs, an offset header
        DeletionVector.of([1, 2, *range(1 << 16, 1 << 17)]),  # an array and a run
    ]
    java = sealed(vector_of([(0, bitmap32()), (1, bitmap32()), (2, bitmap32(1, 2)), (3, bitmap32())]))
    plain = sealed(vector_of([(0, BitMap(range(200)).serialize()), (9, bitmap32(5))]))
    by_hand = {"type": DELETION_VECTOR_V1, "fields": [2147483645], "snapshot_id": -1, "sequence_number": -1}
    return (
        *(puffin(shape.blob("data.parquet")) for shape in shapes),
        puffin(*(shape.blob("data.parquet") for shape in shapes[:4])),
        *(
            with_stored(
                (payload, by_hand | {"properties": {"referenced-data-file": "x", "cardinality": count}})
            )
            for payload, count in ((java, "2"), (plain, "201"))
        ),
    )
