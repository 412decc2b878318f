"""The hashes of a single value: those that a Bloom filter and a theta sketch would have.

A value has the form that `rookery.model.predicate` describes. A zero has two hashes, as 0.0 equals -0.0 but
not in its bits. None means unknown: for a NaN, which has many bit patterns, and for what does not
fit the type.
"""

from __future__ import annotations

from math import isnan

import mmh3
import xxhash

from rookery.model.predicate import Value
from rookery.model.type_names import base_type, precision_of
from rookery.sketch.bloom import decimal_width
from rookery.sketch.single_value import UNFIT, single_value, whole

_SEED = 9001  # of DataSketches


def bloom_hashes(type_name: str, value: Value) -> tuple[int, ...] | None:
    """Return the hashes that a value may have in a Bloom filter.

    >>> [hex(each) for each in bloom_hashes("string", "")]
    ['0xef46db3751d8e999']
    >>> len(bloom_hashes("double", 0.0)), bloom_hashes("double", float("nan")), bloom_hashes("int", 2**31)
    (2, None, None)
    """
    twins = _twins(base_type(type_name), value)
    if twins is None:
        return None
    try:
        encoded = [_plain(type_name, twin) for twin in twins]
    except UNFIT:
        return None
    return tuple(xxhash.xxh64_intdigest(data) for data in encoded)


def plain_bytes(type_name: str, value: Value) -> tuple[bytes, ...] | None:
    """Return the bytes that a value may have in Parquet's PLAIN encoding, or None if unknown.

    >>> plain_bytes("int", 1), len(plain_bytes("double", 0.0))
    ((b'\\x01\\x00\\x00\\x00',), 2)
    """
    twins = _twins(base_type(type_name), value)
    try:
        return None if twins is None else tuple(_plain(type_name, twin) for twin in twins)
    except UNFIT:
        return None


def theta_hash(data: bytes) -> int:
    """Return the hash of bytes in a theta sketch."""
    return int(mmh3.mmh3_x64_128_utupledigest(data, _SEED)[0] >> 1)


def theta_hashes(type_name: str, value: Value) -> tuple[int, ...] | None:
    """Return the hashes that a value may have in a theta sketch, which never has empty values.

    >>> theta_hashes("string", "a")
    (8863373810831573271,)
    >>> theta_hashes("string", "") is None
    True
    """
    twins = _twins(base_type(type_name), value)
    if twins is None:
        return None
    try:
        encoded = [single_value(type_name, twin) for twin in twins]
    except UNFIT:
        return None
    if not all(encoded):
        return None
    hashes = tuple(map(theta_hash, encoded))
    return hashes if all(hashes) else None


def _twins(kind: str, value: Value) -> tuple[Value, ...] | None:
    """The values that are equal to this one and differ in their bits, or None if they are too many."""
    if kind not in ("float", "double"):
        return (value,)
    if not isinstance(value, int | float) or isnan(value):
        return None
    return (0.0, -0.0) if value == 0 else (value,)


def _plain(type_name: str, value: Value) -> bytes:
    """Return Parquet's PLAIN encoding as Iceberg's writer has it, which differs for decimals alone."""
    if base_type(type_name) != "decimal":
        return single_value(type_name, value)
    width = decimal_width(precision_of(type_name))
    return whole(value).to_bytes(width, "little" if width <= 8 else "big", signed=True)
