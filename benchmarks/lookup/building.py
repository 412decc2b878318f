"""What indexes cost: bytes, and time in the run that builds them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import rookery
from benchmarks.harness import Effort, Measure, Row
from benchmarks.lake import beside, forget, is_known
from benchmarks.lookup import lances
from benchmarks.lookup.data import COPY, FPP, NAME, Lookup
from rookery.puffin import open_puffin
from rookery.sketch.blob_types import BITMAP_V1, BLOOM_MATRIX_V1

ROUNDS = 3
MOST_SHARE = 0.08
MOST_TIME = 1.5


def rows(lookup: Lookup, effort: Effort) -> Iterator[Row | Measure]:
    yield _build_row(lookup, effort)
    indexed(lookup)
    yield from _size_rows(lookup)


def indexed(lookup: Lookup) -> None:
    """Analyse the table with its two indexes."""
    forget(lookup.bench, NAME)
    lookup.handle().add_index("bloom", "k", fpp=FPP)
    lookup.handle().add_index("bitmap", "status")
    rookery.analyze(lookup.bench.spark, NAME, lake=lookup.bench.lake)
    assert is_known(lookup.bench.lake, NAME)


def _build_row(lookup: Lookup, effort: Effort) -> Row:
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(1 + min(ROUNDS, effort.rounds)):
        for with_index, found in times.items():
            seconds = _analyzed(lookup, with_index)
            if number:  # the first round warms
                found.append(seconds)
    what, peer = "analyze k, with its Bloom index", "the same without the index"
    return Row(what, lookup.described, min(times[True]), peer, min(times[False]), 1 / MOST_TIME)


def _analyzed(lookup: Lookup, with_index: bool) -> float:
    forget(lookup.bench, NAME)
    if with_index:
        lookup.handle().add_index("bloom", "k", fpp=FPP)
    started = time.perf_counter()
    rookery.analyze(lookup.bench.spark, NAME, columns=["k"], full=True, lake=lookup.bench.lake)
    return time.perf_counter() - started


def _size_rows(lookup: Lookup) -> Iterator[Measure]:
    data = sum(lookup.sizes().values())
    growth = sum(lookup.sizes(COPY).values()) - data
    by_type = blob_sizes(lookup)
    bloom = by_type[BLOOM_MATRIX_V1]
    described = f"{lookup.described}, {data / 1e6:.0f} MB"
    peer = "growth by Parquet's filters"
    yield Measure("Bloom index", described, bloom / data, "share", MOST_SHARE, peer, growth / data)
    for kind, size in sorted(by_type.items()):
        yield Measure(f"bytes of {kind}", described, size, "bytes", None, *_beside(kind, growth))
    yield Measure("the whole folder beside the table", described, _folder(lookup), "bytes")
    yield from _lance_rows(lookup, bloom, described)


def _beside(kind: str, growth: int) -> tuple[str, float | None]:
    return ("growth by Parquet's filters", growth) if kind == BLOOM_MATRIX_V1 else ("", None)


def _lance_rows(lookup: Lookup, bloom: int, described: str) -> Iterator[Measure]:
    found = lances.made(lookup)
    if found is None:
        return
    yield Measure(
        "Bloom index", described, bloom, "bytes", found.index_bytes / 10, "Lance BTREE", found.index_bytes
    )
    started = time.perf_counter()
    indexed(lookup)
    took = time.perf_counter() - started
    what = "analyze all columns with both indexes"
    yield Measure(what, described, took, "s", None, "Lance BTREE, built once", found.seconds)


def blob_sizes(lookup: Lookup) -> Counter[str]:
    """The bytes in the segments, by type of blob."""
    found: Counter[str] = Counter({BITMAP_V1: 0, BLOOM_MATRIX_V1: 0})
    for path in beside(lookup.bench, NAME).glob("segment-*"):
        with open_puffin(path) as reader:
            for blob in reader.metadata.blobs:
                found[blob.type] += blob.length
    return found


def _folder(lookup: Lookup) -> int:
    return sum(path.stat().st_size for path in beside(lookup.bench, NAME).iterdir())
