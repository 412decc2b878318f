"""How little a lookup reads: data files that it opens, and bytes of the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks.harness import Effort, Measure
from benchmarks.lake import beside, counted, forget_all
from benchmarks.lookup.data import FPP, NAME, Lookup, where
from rookery.api.where import bind
from rookery.read.table_reader import read_table

KEYS = 40
ABSENT = 1_000
MOST_FILES = 2
MOST_INDEX = 64 << 10


@dataclass(frozen=True)
class Found:
    """What lookups of several keys read, one number a key."""

    opened: Sequence[int]
    stages: Sequence[int]  # bytes of index, as `explain` has them
    beside: Sequence[int]  # bytes of all that is kept beside the table, opening it included


def rows(lookup: Lookup, effort: Effort) -> Iterator[Measure]:
    for what, cold in (("warm", False), ("nothing cached", True)):
        found = _look(lookup, lookup.present(KEYS), cold)
        data = f"{lookup.described}, {KEYS} keys, {what}"
        yield Measure("data files opened, mean", data, mean(found.opened), "files", MOST_FILES)
        yield Measure("data files opened, most", data, max(found.opened), "files")
        yield Measure("index read by the stages, most", data, max(found.stages), "bytes", MOST_INDEX)
        yield Measure("read beside the table in all, most", data, max(found.beside), "bytes")
    opened = [_opened(lookup, key) for key in lookup.absent(ABSENT)]
    stated = 1 - (1 - FPP) ** lookup.files
    data = f"{lookup.described}, {ABSENT:,} absent keys"
    share = sum(count > 0 for count in opened) / ABSENT
    yield Measure(
        "lookups that open a file", data, share, "share", stated, f"1 − (1 − {FPP})^{lookup.files}", stated
    )
    yield Measure("lookups that open no file", data, 1 - share, "share", None, "as stated", 1 - stated)


def _look(lookup: Lookup, keys: Sequence[str], cold: bool) -> Found:
    opened, stages, read = [], [], []
    for key in keys:
        if cold:
            forget_all()
        stages.append(lookup.handle().explain(where(key)).index_bytes)
        if cold:
            forget_all()
        with counted() as bytes_read:
            opened.append(_opened(lookup, key))
        read.append(_beside(lookup, bytes_read))
    return Found(opened, stages, read)


def _opened(lookup: Lookup, key: str) -> int:
    table, store = lookup.handle().load()
    current = table.snapshot()
    assert current is not None
    return read_table(table, store, current, bind(where(key), table, current)).costs.files


def _beside(lookup: Lookup, read: Counter[str]) -> int:
    folder = str(beside(lookup.bench, NAME))
    return sum(size for path, size in read.items() if path.startswith(folder))
