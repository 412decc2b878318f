"""The cache: never more than its limit but for the value used last, and what was used last stays."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model.cache import Cache, clear_caches

USE = st.tuples(st.integers(0, 9), st.integers(0, 60))


@given(st.lists(USE), st.integers(0, 100))
def test_as_a_plain_one(uses: list[tuple[int, int]], limit: int) -> None:
    """Values of any sizes, which may grow between uses, against a list in the order of use."""
    cache, plain = Cache(limit), OrderedDict[int, int]()
    for key, size in uses:
        before = plain.pop(key, None)
        made: list[int] = []
        cache.get(key, lambda made=made, key=key: (made.append(key), key)[1], lambda _, size=size: size)
        assert bool(made) == (before is None)
        plain[key] = size
        while sum(plain.values()) > limit and len(plain) > 1:
            plain.popitem(last=False)
        assert (cache.count, cache.nbytes) == (len(plain), sum(plain.values()))
        assert [cache.find(number) for number in plain] == list(plain)


def test_what_cannot_be_made_is_not_cached() -> None:
    cache = Cache()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cache.get("a", lambda: 1 // 0, lambda _: 1)
    assert (cache.count, cache.nbytes) == (0, 0)


def test_dropped_and_cleared() -> None:
    cache = Cache()
    cache.put("a", 1, 10)
    cache.put("b", 2, 20)
    cache.drop("a")
    cache.drop("a")
    assert (cache.find("a"), cache.find("b"), cache.nbytes) == (None, 2, 20)
    clear_caches()
    assert (cache.count, cache.nbytes) == (0, 0)


def test_another_process_begins_with_an_empty_one() -> None:
    cache = Cache(123)
    cache.put("a", 1, 10)
    there = pickle.loads(pickle.dumps(cache))
    assert (there.limit, there.count) == (123, 0)


def test_caches_are_empty_when_the_interpreter_ends() -> None:
    """Else packages such as nanobind report the values that they see alive as leaks."""
    program = """
import atexit
kept = []
atexit.register(lambda: print(kept[0].count))
from rookery.model.cache import Cache
kept.append(Cache())
kept[0].put("a", "value", 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
