"""Text in sketches that is not UTF-8: values that differ stay apart, and in the order of their bytes."""

from __future__ import annotations

from collections import Counter

import datasketches
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rookery.sketch.frequent import Frequent
from rookery.sketch.quantiles import Quantiles

texts = st.lists(st.sampled_from([b"\xff", rb"\xff", b"a", b"", "\U0001f600".encode(), b"\xe9", b"\xfe"]))


def column(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.large_binary()).view(pa.large_string())


def shown(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


@given(texts, texts)
def test_frequent_values_are_counted_apart(one: list[bytes], two: list[bytes]) -> None:
    found = Frequent.empty().with_values(column(one)).merge(Frequent.empty().with_values(column(two)))
    again = Frequent.decode(found.encode())
    expected = sorted((shown(value), count) for value, count in Counter(one + two).items())
    assert sorted((value, count.value) for value, count in again.top(99)) == expected
    assert again.count == len(one + two)


@given(texts.filter(bool), texts)
def test_quantiles_have_the_order_of_bytes(one: list[bytes], two: list[bytes]) -> None:
    found = Quantiles.empty("string").with_values(column(one))
    found = found.merge(Quantiles.decode(Quantiles.empty("string").with_values(column(two)).encode()))
    ends = (shown(min(one + two)), shown(max(one + two)))
    assert (found.ends, tuple(found.at([0, 1]))) == (ends, ends)


def test_sketches_of_strings_are_read() -> None:
    """What was written when items were strings has the same bytes."""
    strings = datasketches.frequent_strings_sketch(12)
    for text, count in (("a", 3), ("é", 2), ("", 1)):
        strings.update(text, count)
    found = Frequent.decode(bytes(strings.serialize()))
    assert [(value, count.value) for value, count in found.top(9)] == [("a", 3), ("é", 2), ("", 1)]
    assert datasketches.frequent_strings_sketch.deserialize(found.encode()).get_estimate("é") == 2
