"""Pauses between attempts, and attempts with these pauses."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model.retry import attempts, pauses

SECONDS = st.floats(0.001, 100)


@given(SECONDS, st.floats(1, 1000), st.integers(1, 30))
def test_each_pause_is_twice_the_one_before_up_to_the_longest(first: float, ratio: float, count: int) -> None:
    longest = first * ratio
    wanted = [min(first * 2**number, longest) for number in range(count)]
    assert list(islice(pauses(first, longest, jitter=False), count)) == pytest.approx(wanted)


@given(SECONDS, st.floats(1, 1000), st.integers(1, 30))
def test_jitter_shortens_a_pause_by_half_at_most(first: float, ratio: float, count: int) -> None:
    plain = islice(pauses(first, first * ratio, jitter=False), count)
    shortened = islice(pauses(first, first * ratio), count)
    assert all(whole / 2 <= pause <= whole for whole, pause in zip(plain, shortened, strict=True))


def test_two_processes_do_not_wait_alike() -> None:
    one, other = (list(islice(pauses(1, 60), 20)) for _ in range(2))
    assert one != other


def test_attempts_wait_between_and_not_after_the_last() -> None:
    waited: list[float] = []
    seen = [(number, len(waited)) for number in attempts(4, 1.0, 3.0, jitter=False, wait=waited.append)]
    assert seen == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert waited == [1.0, 2.0, 3.0]


def test_an_attempt_that_succeeds_is_the_last() -> None:
    waited: list[float] = []
    for number in attempts(9, 1.0, 60.0, wait=waited.append):
        if number == 2:
            break
    assert len(waited) == 1
