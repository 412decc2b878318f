"""Puffin files: footers, blobs and deletion vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lz4.frame
import numpy as np
import zstandard
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from benchmarks.harness import Effort, Row, compare
from rookery.io import BytesSink
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, Blob, DeletionVector, Reader, Writer, open_puffin
from rookery.puffin.deletion_vector import VECTOR_OFFSET

TITLE = "Puffin files"
CRC_SIZE = 4
SNAPSHOT = 8_744_736_658_442_914_487
DATA_FILE = "s3://bucket/warehouse/db/table/data/00000-{}-3f2504e0-4f89-11d3-9a0c-0305e82c3301-00001.parquet"


def rows(effort: Effort) -> Iterator[Row]:
    yield from footer_rows(effort)
    yield from blob_rows(effort)
    yield from deletion_vector_rows(effort)


def _file(blobs: Iterable[Blob], codec: str = "none") -> bytes:
    sink = BytesSink()
    with Writer(sink, codec=codec) as writer:
        for blob in blobs:
            writer.add(blob)
    assert sink.data is not None
    return sink.data


# -- footers


def footer_rows(effort: Effort) -> Iterator[Row]:
    count = effort.of(10_000)
    vector = DeletionVector.of([1, 2]).encode()
    files = {
        "theta": _file(
            Blob(THETA_V1, b"x", (number % 500,), SNAPSHOT, 7, properties={"ndv": str(number)})
            for number in range(count)
        ),
        "deletion vector": _file(
            Blob(
                DELETION_VECTOR_V1,
                vector,
                properties={"referenced-data-file": DATA_FILE.format(number), "cardinality": "2"},
            )
            for number in range(count)
        ),
    }
    for kind, data in files.items():
        described = f"{count:,} {kind} blobs"
        deeds: list[tuple[str, Callable[[bytes], object], float | None]] = [
            ("footer opened", open_puffin, 5),
            ("footer opened, every blob decoded", _look_at_all, None),
        ]
        for what, deed, target in deeds:
            yield compare(
                what,
                described,
                lambda deed=deed, data=data: deed(data),
                "PyIceberg",
                lambda data=data: PuffinFile(data),
                effort,
                target=target,
            )


def _look_at_all(data: bytes) -> None:
    for _ in open_puffin(data).metadata.blobs:
        pass


# -- blobs


def blob_rows(effort: Effort) -> Iterator[Row]:
    random = np.random.default_rng(1)
    # A theta sketch keeps sorted hashes: hardly a byte can be saved.
    theta = [np.sort(random.integers(0, 2**62, 4096)).tobytes() for _ in range(effort.of(256))]
    columns = [random.integers(0, 50, 1 << 17).tobytes() for _ in range(effort.of(16))]
    for kind, payloads in (("32 KiB theta", theta), ("1 MiB compressible", columns)):
        described = f"{len(payloads)} × {kind}"
        for codec, peers in PEERS.items():
            data = _file((Blob("payload", payload) for payload in payloads), codec)
            yield from _codec_rows(data, codec, described, peers, effort)


def _zstd_kept(stored: list[bytes]) -> None:
    decompressor = zstandard.ZstdDecompressor()
    for frame in stored:
        decompressor.decompress(frame)


def _zstd_each(stored: list[bytes]) -> None:
    for frame in stored:
        zstandard.ZstdDecompressor().decompress(frame)


def _lz4(stored: list[bytes]) -> None:
    for frame in stored:
        lz4.frame.decompress(frame)


Peer = tuple[str, Callable[[list[bytes]], None], float | None]
PEERS: dict[str, list[Peer]] = {
    "zstd": [
        ("zstandard, a decompressor a blob", _zstd_each, 0.9),
        ("zstandard, one decompressor reused", _zstd_kept, 0.9),
    ],
    "lz4": [("lz4.frame", _lz4, None)],
}


def _codec_rows(data: bytes, codec: str, described: str, peers: list[Peer], effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blobs.puffin"
        path.write_bytes(data)
        with open_puffin(data) as in_memory, open_puffin(path) as on_disk:
            stored = [frame for _, frame in in_memory.read_many_stored(in_memory.metadata.blobs)]
            for peer, theirs, target in peers:
                for what, deed, reader, goal in (
                    (f"{codec}, read_many", _read_many, in_memory, target),
                    (f"{codec}, read one by one", _read_each, in_memory, target),
                    (f"{codec}, read_many from a local file", _read_many, on_disk, None),
                ):
                    blobs = list(reader.metadata.blobs)
                    yield compare(
                        what,
                        described,
                        lambda deed=deed, reader=reader, blobs=blobs: deed(reader, blobs),
                        peer,
                        lambda theirs=theirs: theirs(stored),
                        effort,
                        target=goal,
                    )


def _read_many(reader: Reader, blobs: list) -> None:
    for _ in reader.read_many(blobs):
        pass


def _read_each(reader: Reader, blobs: list) -> None:
    for blob in blobs:
        reader.read(blob)


# -- deletion vectors


def deletion_vector_rows(effort: Effort) -> Iterator[Row]:
    random = np.random.default_rng(2)
    count = effort.of(1_000_000)
    runs = max(count // 1000, 1)
    shapes = {
        f"{count:,} of 2^30": np.sort(random.choice(2**30, count, replace=False)),
        f"{count:,}, one row in 10": np.sort(random.choice(10 * count, count, replace=False)),
        f"{count:,} in {runs:,} runs": (np.arange(runs)[:, None] * 10_000 + np.arange(1000)).ravel(),
    }
    for described, positions in shapes.items():
        yield from _vector_rows(described, DeletionVector.of(positions), effort)


def _vector_rows(described: str, vector: DeletionVector, effort: Effort) -> Iterator[Row]:
    payload = vector.encode()
    bare = payload[VECTOR_OFFSET:-CRC_SIZE]
    file = _file([vector.blob("data.parquet")])
    yield compare(
        "vector to positions",
        described,
        lambda: DeletionVector.decode(payload).positions(),
        "pyroaring",
        lambda: np.frombuffer(BitMap64.deserialize(bare).to_array(), np.int64),
        effort,
        target=0.9,
    )
    yield compare(
        "vector to bitmap only",
        described,
        lambda: DeletionVector.decode(payload),
        "pyroaring",
        lambda: BitMap64.deserialize(bare),
        effort,
    )
    yield compare(
        "file to positions",
        described,
        lambda: _positions(file),
        "PyIceberg",
        lambda: [found.to_vector() for found in deletion_vectors_from_puffin_file(PuffinFile(file))],
        effort,
        target=10,
        peer_rounds=3,
    )


def _positions(file: bytes) -> list[np.ndarray]:
    with open_puffin(file) as reader:
        return [
            DeletionVector.from_blob(blob, payload).positions()
            for blob, payload in reader.read_many(reader.metadata.blobs)
        ]
