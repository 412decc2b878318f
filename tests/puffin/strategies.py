"""Hypothesis strategies for blobs, JSON and deletion vectors."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rookery.puffin import Blob
from rookery.puffin.deletion_vector import MAX_POSITION

FIELD_IDS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
CODECS = st.sampled_from([None, "none", "zstd", "lz4"])
PROPERTIES = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)

# A prefix that keeps the keys clear of those that the specification knows.
EXTRA: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.text(max_size=6).map(lambda key: "x-" + key), JSON, max_size=3
)

PAYLOADS = st.binary(max_size=200) | st.builds(
    lambda unit, count: unit * count, st.binary(min_size=1, max_size=8), st.integers(1, 5000)
)

BLOBS = st.builds(
    Blob,
    type=st.text(max_size=12).filter(lambda text: text != "deletion-vector-v1"),
    payload=PAYLOADS,
    fields=st.lists(FIELD_IDS, max_size=4).map(tuple),
    snapshot_id=LONGS,
    sequence_number=LONGS,
    codec=CODECS,
    properties=PROPERTIES,
    extra=EXTRA,
)

_STARTS = st.integers(0, 300_000) | st.integers(0, 2**33) | st.integers(0, MAX_POSITION - 10_000)
_RANGES = st.builds(lambda start, count: set(range(start, start + count)), _STARTS, st.integers(1, 6000))
_SCATTERED = st.sets(
    st.integers(0, 2**17) | st.integers(0, 2**34) | st.integers(0, MAX_POSITION), max_size=50
)
_STRIDES = st.builds(
    lambda start, step, count: set(range(start, start + step * count, step)),
    st.integers(0, 2**40),
    st.integers(2, 9),
    st.integers(1, 6000),
)

POSITIONS: st.SearchStrategy[set[int]] = st.lists(_SCATTERED | _RANGES | _STRIDES, max_size=3).map(
    lambda parts: set().union(*parts)
)
