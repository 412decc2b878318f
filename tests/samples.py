"""A Puffin file that has something of everything."""

from __future__ import annotations

from pathlib import Path

from datasketches import hll_sketch, update_theta_sketch

from rookery.puffin import THETA_V1, Blob, DeletionVector, Writer

DATA_FILE = "s3://bucket/table/data/" + "long-name-" * 30 + ".parquet"
UNKNOWN_TYPE = "nobody-knows-v7"
UNKNOWN_PAYLOAD = bytes(range(256)) * 40
THETA, VECTOR, UNKNOWN = range(3)  # the numbers of the blobs


def theta_payload(values: int = 1000) -> bytes:
    sketch = update_theta_sketch(12)
    for value in range(values):
        sketch.update(value)
    return bytes(sketch.compact().serialize())


def hll_payload(values: int = 1000) -> bytes:
    sketch = hll_sketch(12)
    for value in range(values):
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def write_sample(path: Path, *, codec: str = "zstd", compress_footer: bool = False) -> Path:
    with Writer(
        path, codec=codec, compress_footer=compress_footer, properties={"note": "a sample"}
    ) as writer:
        writer.add(Blob(THETA_V1, theta_payload(), (7,), 11, 3, properties={"ndv": "1000"}))
        writer.add(DeletionVector.of([3, 1, 4_000_000_000]).blob(DATA_FILE))
        writer.add(Blob(UNKNOWN_TYPE, UNKNOWN_PAYLOAD, (1, 2), 11, 3, properties={"k": "v"}))
    return path


def write_with_bad_blob(path: Path) -> Path:
    """A file whose footer is right, with a theta blob that is none and a frame that is cut off."""
    with Writer(path) as writer:
        writer.add(Blob(THETA_V1, b"this is not a sketch", (7,)))
        placed = writer.add(Blob(UNKNOWN_TYPE, UNKNOWN_PAYLOAD, (1,)))
    data = bytearray(path.read_bytes())
    data[placed.offset : placed.end] = bytes(placed.length)
    path.write_bytes(data)
    return path
