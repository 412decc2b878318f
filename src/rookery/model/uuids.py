"""UUIDs in the metadata of Iceberg, whose order depends on who wrote it.

Parquet and the specification order the bytes of UUIDs. Java's own class orders them as two signed numbers of
eight bytes, and by that Iceberg's Java library takes the least and greatest of several row groups or
partitions: those that begin with 8 to f come before the others.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_HALF = 8  # bytes, of which the first bit is the sign
_NEGATIVE = b"\x80"
_FIRST, _LAST = b"\x00" * _HALF, b"\xff" * _HALF


def proven_uuids(lower: pa.Array, upper: pa.Array, single: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return what bounds of UUIDs prove in the order of their bytes; what they do not is null.

    Bounds of a *single* row group or partition are as they are. Of the least of several, none is negative if
    it is not, and of the greatest, all are negative if it is: so the first halves order as their bytes do.

    >>> ends = pa.array([b"\\x01" + b"a" * 15, b"\\xf1" + b"a" * 15])
    >>> low, high = proven_uuids(ends, ends, pa.array([False, False]))
    >>> [end.as_py().hex() if end.is_valid else None for end in low]
    ['01616161616161610000000000000000', None]
    >>> [end.as_py().hex() if end.is_valid else None for end in high]
    [None, 'f161616161616161ffffffffffffffff']
    """
    whole = pc.fill_null(single, False)
    low = pc.if_else(pc.less(lower, _NEGATIVE), _ending_in(_FIRST, lower), None)
    high = pc.if_else(pc.greater_equal(upper, _NEGATIVE), _ending_in(_LAST, upper), None)
    return pc.if_else(whole, lower, low), pc.if_else(whole, upper, high)


def _ending_in(half: bytes, values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pc.binary_slice(values, 0, _HALF), pa.scalar(half), b"")


def is_cut(bound: bytes) -> bool:
    """Whether only the first half of a proven bound is that of a value, as far as that is known."""
    return bound[_HALF:] in (_FIRST, _LAST)
