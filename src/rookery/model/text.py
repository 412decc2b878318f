"""Text that is not UTF-8, which Spark stores in STRING columns as it is given.

Java replaces what is not UTF-8 by U+FFFD when it makes a String of bytes. Iceberg does so with the bounds of
columns and the values of partitions, so such text in metadata may represent other bytes, which have another
place in the order.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from rookery.model.nested_arrays import with_leaves

REPLACEMENT = "\ufffd"
REPLACEMENT_IN_JSON = r"\ufffd"
_REPLACED = b"\xef\xbf[\xbd\xbe]"  # U+FFFD, and U+FFFE, to which it is raised where an upper bound is cut
_BEYOND_ASCII = r"(?s)[^\x00-\x7f].*"
_GREAT = b"\xef\xbf[\xbd-\xbf]|[\xf0-\xf4]"  # U+FFFD and the letters that are greater
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def java_text(data: bytes) -> str:
    """Return bytes as Java decodes them: one U+FFFD for all of a surrogate, otherwise as Python does.

    >>> java_text(b"a\\xff"), java_text(b"\\xed\\xa0\\x80"), java_text(b"\\xe2\\x82")
    ('a�', '�', '�')
    """
    return _SURROGATE.sub(REPLACEMENT.encode(), data).decode(errors="replace")


def is_replaced(texts: pa.Array) -> pa.Array:
    """Return where text of Iceberg's metadata, as bytes, may represent other bytes.

    >>> is_replaced(pa.array(["caf�".encode(), "café".encode(), None])).to_pylist()
    [True, False, None]
    """
    return pc.match_substring_regex(texts, _REPLACED)


def proven_text(lower: pa.Array, upper: pa.Array, single: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return what bounds of text that Iceberg wrote prove, as bytes; null if not proved.

    A bound with U+FFFD may be out of place. Where a bound is not of a *single* row group or partition, it is
    the least or greatest of several after they were replaced: if it is not ASCII (a lower one), or has
    letters beyond U+FFFD (an upper one), it may be the wrong one.

    >>> texts = pa.array([text.encode() for text in ("a", "caf\ufffd", "\u00e9", "\U0001f600")])
    >>> ends = pa.array([b"z", b"z", b"z", texts[3].as_py()])  # the last may be of `[😀], [😀, 0xE9]`
    >>> [found.to_pylist() for found in proven_text(texts, ends, pa.array([False] * 4))]
    [[b'a', b'caf', None, None], [b'z', b'z', b'z', None]]
    """
    whole = pc.fill_null(single, False)
    low = pc.and_(whole, pc.invert(is_replaced(lower)))
    high = pc.and_(whole, pc.invert(is_replaced(upper)))
    cut = pc.replace_substring_regex(lower, _BEYOND_ASCII, "")
    cut = pc.if_else(pc.or_(pc.equal(lower, b""), pc.not_equal(cut, b"")), cut, None)
    certain = pc.or_(high, pc.invert(pc.match_substring_regex(upper, _GREAT)))
    return pc.if_else(low, lower, cut), pc.if_else(certain, upper, None)


def decodable(array: pa.Array) -> pa.Array:
    """Return the array with all text in UTF-8, other bytes escaped; valid text is returned as it is.

    >>> decodable(pa.array([b"\\xffa", b"ok"], pa.binary()).cast(pa.string(), safe=False)).to_pylist()
    ['\\\\xffa', 'ok']
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return with_leaves(array, _escaped_leaf)
    return array


def escaped(data: bytes) -> str:
    """Return text as people read it: bytes that are not UTF-8 as backslash, x and two digits."""
    return data.decode(errors="backslashreplace")


def _escaped_leaf(array: pa.Array) -> pa.Array:
    kind = array.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return array
    raw = array.cast(pa.large_binary())
    return pa.array([None if one is None else escaped(one) for one in raw.to_pylist()], kind)
