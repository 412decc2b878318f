"""Mutations: of a whole file, or of one part of it with everything around it put right.

A changed byte in the middle of a file mostly fails at the first checksum. So a good share of the inputs
are changed inside (a payload, a frame, the JSON) and then sealed again, which leads to the deeper code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import lz4.frame
import msgspec

from rookery.model import IN_MEMORY
from rookery.puffin import codecs
from rookery.puffin.deletion_vector import VECTOR_OFFSET
from rookery.puffin.layout import MAGIC
from tests.fuzz.corpus import Part, Seed
from tests.puffin.builders import sealed

Edit = Callable[[Random, bytearray, bytes], None]

_EDGES = sorted(
    {base + delta for bits in (0, 7, 8, 15, 16, 31, 32, 63) for base in (1 << bits,) for delta in (-1, 0, 1)}
)
_JSON_VALUES: tuple[Any, ...] = (
    *(sign * edge for edge in _EDGES for sign in (1, -1)),
    *(None, True, 0.5, "", "zstd", "lz4", "none", "deletion-vector-v1", "apache-datasketches-theta-v1"),
    "apache-datasketches-hll-v1",
    *([], {}, [1, 2], [[]], {"a": 1}, {"cardinality": "1", "referenced-data-file": "x"}, "\x00", "ü"),
)


def _at(random: Random, size: int) -> int:
    """A position from 0 up to, not including, *size*; several times faster than `randrange`."""
    return int(random.random() * size)


# -- edits of bytes; `other` is where foreign bytes come from


def _flip(random: Random, data: bytearray, other: bytes) -> None:
    data[_at(random, len(data))] ^= 1 << _at(random, 8)


def _set(random: Random, data: bytearray, other: bytes) -> None:
    data[_at(random, len(data))] = (0, 1, 0x7F, 0x80, 0xFF, _at(random, 256))[_at(random, 6)]


def _cut(random: Random, data: bytearray, other: bytes) -> None:
    del data[_at(random, len(data)) :]


def _remove(random: Random, data: bytearray, other: bytes) -> None:
    start = _at(random, len(data))
    del data[start : start + 1 + _at(random, 16)]


def _insert(random: Random, data: bytearray, other: bytes) -> None:
    start = _at(random, len(data))
    data[start:start] = random.randbytes(1 + _at(random, 8))


def _repeat(random: Random, data: bytearray, other: bytes) -> None:
    start, end = sorted((_at(random, len(data)), _at(random, len(data))))
    data[end:end] = data[start : min(end, start + 64)]


def _splice(random: Random, data: bytearray, other: bytes) -> None:
    if other:
        source, target = _at(random, len(other)), _at(random, len(data))
        size = 1 + _at(random, 64)
        data[target : target + size] = other[source : source + size]


def _integer(random: Random, data: bytearray, other: bytes) -> None:
    width = (1, 2, 4, 8)[_at(random, 4)]
    value = _EDGES[_at(random, len(_EDGES))]
    if random.random() < 0.3:
        value = -value
    start = _at(random, len(data))
    if random.random() < 0.5:  # where fields tend to lie
        start -= start % width
    order = "little" if random.random() < 0.7 else "big"
    data[start : start + width] = (value % (1 << 8 * width)).to_bytes(width, order)  # type: ignore[arg-type]


EDITS: tuple[Edit, ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _cut,
    _remove,
    _insert,
    _repeat,
    _splice,
    _integer,
    _integer,
)


def edited(random: Random, data: bytes, other: bytes) -> bytes:
    """Make one to four edits."""
    changed = bytearray(data)
    for _ in range((1, 1, 1, 2, 2, 3, 4)[_at(random, 7)]):
        if not changed:
            return random.randbytes(_at(random, 32))
        EDITS[_at(random, len(EDITS))](random, changed, other)
    return bytes(changed)


# -- files put together again


def _rebuilt(seed: Seed, index: int, stored: bytes, changes: dict[str, Any] | None = None) -> bytes:
    """The file with blob *index* stored so, and offsets, lengths and footer that fit."""
    body, documents, offset = [MAGIC], [], len(MAGIC)
    for number, part in enumerate(seed.parts):
        data = stored if number == index else part.stored
        document = {**part.document, "offset": offset, "length": len(data)}
        if number == index and changes:
            document |= changes
        documents.append(document)
        body.append(data)
        offset += len(data)
    payload = msgspec.json.encode({**seed.document, "blobs": documents})
    return b"".join(body) + _footer(payload, seed.compressed_footer)


def _footer(payload: bytes, compressed: bool) -> bytes:
    if compressed:
        payload = lz4.frame.compress(payload, store_size=True)
    return MAGIC + payload + struct.pack("<iI", len(payload), int(compressed)) + MAGIC


# -- the kinds of mutation


def _whole(random: Random, seed: Seed, other: Seed) -> bytes:
    return edited(random, seed.data, other.data)


def _tail(random: Random, seed: Seed, other: Seed) -> bytes:
    return seed.data[:-12] + edited(random, seed.data[-12:], other.data[-12:])


def _payload(random: Random, seed: Seed, other: Seed) -> bytes:
    """What is inside a blob, in a frame (and under a checksum) that fits it."""
    index, part = _any_part(random, seed)
    foreign = _any_part(random, other)[1].plain
    if part.is_vector:
        return _rebuilt(seed, index, _vector(random, part.plain, foreign), _cardinality(random, part))
    plain = edited(random, part.plain, foreign)
    return _rebuilt(seed, index, codecs.compress(part.document.get("compression-codec"), plain, IN_MEMORY))


def _vector(random: Random, payload: bytes, foreign: bytes) -> bytes:
    if random.random() < 0.15:
        return edited(random, payload, foreign)
    vector = payload[VECTOR_OFFSET:-4]
    # The headers, at the start, decide everything; the long containers behind them little.
    size = len(vector) if random.random() < 0.4 else min(len(vector), 64)
    return sealed(edited(random, vector[:size], foreign) + vector[size:])


def _cardinality(random: Random, part: Part) -> dict[str, Any]:
    claimed = (
        str(_EDGES[_at(random, 12)]) if random.random() < 0.2 else part.document["properties"]["cardinality"]
    )
    return {"properties": {"referenced-data-file": "x", "cardinality": claimed}}


def _frame(random: Random, seed: Seed, other: Seed) -> bytes:
    """The stored bytes of a blob, in a file that fits them."""
    index, part = _any_part(random, seed)
    return _rebuilt(seed, index, edited(random, part.stored, _any_part(random, other)[1].stored))


def _json_text(random: Random, seed: Seed, other: Seed) -> bytes:
    start = len(MAGIC) + sum(len(part.stored) for part in seed.parts)
    payload = edited(random, msgspec.json.encode(seed.document), msgspec.json.encode(other.document))
    return seed.data[:start] + _footer(payload, seed.compressed_footer)


def _json_value(random: Random, seed: Seed, other: Seed) -> bytes:
    """Another value under some key of the footer, or no such key."""
    document = {**seed.document, "blobs": [dict(part.document) for part in seed.parts]}
    target: dict[str, Any] = document
    if document["blobs"] and random.random() < 0.9:
        target = document["blobs"][_at(random, len(document["blobs"]))]
    keys = (*target, "later")
    key = keys[_at(random, len(keys))]
    if random.random() < 0.1:
        target.pop(key, None)
    elif isinstance(value := target.get(key), int) and random.random() < 0.5:
        target[key] = value + _at(random, 5) - 2
    else:
        target[key] = _JSON_VALUES[_at(random, len(_JSON_VALUES))]
    start = len(MAGIC) + sum(len(part.stored) for part in seed.parts)
    return seed.data[:start] + _footer(msgspec.json.encode(document), seed.compressed_footer)


def _any_part(random: Random, seed: Seed) -> tuple[int, Part]:
    if not seed.parts:
        return 0, Part({"type": "none"}, b"", b"")
    index = _at(random, len(seed.parts))
    return index, seed.parts[index]


_KINDS = (*[_whole] * 4, *[_tail] * 1, *[_payload] * 8, *[_frame] * 3, *[_json_text] * 2, *[_json_value] * 3)


def mutated(random: Random, corpus: Sequence[Seed]) -> bytes:
    """Return a changed file."""
    seed, other = corpus[_at(random, len(corpus))], corpus[_at(random, len(corpus))]
    return _KINDS[_at(random, len(_KINDS))](random, seed, other)
