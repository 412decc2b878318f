"""A cache of values that never change, bounded by bytes; a lake owns one."""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

T = TypeVar("T")

LIMIT = 512 << 20  # bytes
_ALL: WeakSet[Cache] = WeakSet()


class Measured(Protocol):
    """A value that reports its memory."""

    @property
    def nbytes(self) -> int:
        """Its bytes, about."""
        ...


def nbytes_of(value: Measured) -> int:
    """Return how much memory a value takes."""
    return value.nbytes


def clear_caches() -> None:
    """Clear every cache of the process."""
    for cache in list(_ALL):
        cache.clear()


# Sketches that are alive when the interpreter ends are reported on standard error as leaks of their package.
atexit.register(clear_caches)


class Cache:
    """The values used last, by key, in at most *limit* bytes; the last one stays, of any size.

    A value may grow while it is cached, so that it is measured at every use.

    >>> cache = Cache(10)
    >>> [cache.get(key, lambda: bytes(6), len) is cache.get(key, lambda: b"", len) for key in "ab"]
    [True, True]
    >>> cache.count, cache.nbytes, cache.find("a")
    (1, 6, None)
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.nbytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()
        _ALL.add(self)

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self._entries)

    def __reduce__(self) -> tuple[type[Cache], tuple[int]]:
        return Cache, (self.limit,)  # another process begins with an empty one

    def find(self, key: Hashable) -> Any:
        """Return the value of a key, or None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Cache a value, and drop those used least recently that no longer fit."""
        with self._lock:
            _, before = self._entries.pop(key, (None, 0))
            self._entries[key] = (value, size)
            self.nbytes += size - before
            while self.nbytes > self.limit and len(self._entries) > 1:
                _, (_, dropped) = self._entries.popitem(last=False)
                self.nbytes -= dropped

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of a key; make it if it is not cached."""
        value: T | None = self.find(key)
        if value is None:
            value = make()  # not under the lock: it may take long, and making it twice does no harm
        self.put(key, value, size(value))
        return value

    def drop(self, key: Hashable) -> None:
        """Drop the value of a key, if there is one."""
        with self._lock:
            _, size = self._entries.pop(key, (None, 0))
            self.nbytes -= size

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self.nbytes = 0
