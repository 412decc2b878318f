"""Bounds of text as Iceberg writes them: what is taken of them holds for every value, UTF-8 or not."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rookery.model.text import is_replaced, java_text, proven_text

MOST = 16  # letters that Iceberg keeps of a bound
PARTS = ("a", "x" * 15, "é", "\u9fff", "\ufffc", "\ufffd", "\ufffe", "\uffff", "\U0001f600", "\U0010ffff")
BYTES = (b"\xff", b"\x80", b"\xe9", b"\xe2\x82", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0")
values = st.lists(st.sampled_from([*(part.encode() for part in PARTS), *BYTES]), max_size=4).map(b"".join)


def raised(text: str) -> str | None:
    """The text that is cut after some letters, with the last one that can be raised by one."""
    for place in range(MOST - 1, -1, -1):
        code = ord(text[place]) + 1
        code = 0xE000 if 0xD800 <= code < 0xE000 else code
        if code <= 0x10FFFF:
            return text[:place] + chr(code)
    return None


def bounds(groups: list[list[bytes]]) -> tuple[bytes, bytes | None]:
    """What Iceberg writes of row groups: the least and greatest of each, decoded, then compared and cut."""
    least = min(java_text(min(group)) for group in groups)
    greatest = max(java_text(max(group)) for group in groups)
    upper = greatest if len(greatest) <= MOST else raised(greatest)
    return least[:MOST].encode(), None if upper is None else upper.encode()


@example(groups=[[b"\xff"], ["\U0001f600".encode()]])
@example(groups=[[b"caf\xe9"], ["caf\u9fff".encode()]])
@example(groups=[["é".encode()], ["é".encode(), b"\xc0"]])  # both bounds are the same, and one is wrong
@example(groups=[[b"x" * 15 + b"\xff" + b"tail"]])
@given(groups=st.lists(st.lists(values, min_size=1, max_size=3), min_size=1, max_size=3))
def test_bounds_hold(groups: list[list[bytes]]) -> None:
    written = bounds(groups)
    ends = [pa.array([end], pa.binary()) for end in written]
    (lower,), (upper,) = (
        found.to_pylist() for found in proven_text(ends[0], ends[1], pa.array([len(groups) == 1]))
    )
    rows = [value for group in groups for value in group]
    assert lower is None or lower <= min(rows)
    assert upper is None or max(rows) <= upper
    if lower is not None and lower == upper:
        assert set(rows) == {lower}
    if all(java_text(row).isascii() for row in rows):
        assert (lower, upper) == written


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0a", "\ufffda"),
        (b"\xe2\x82a", "\ufffda"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
    ],
)
def test_as_java_decodes(data: bytes, text: str) -> None:
    assert java_text(data) == text
    assert is_replaced(pa.array([text.encode()])).to_pylist() == [True]
