"""The filters by themselves: how often they are wrong, which is to be never where a key is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

from benchmarks.harness import Effort, Measure
from benchmarks.lookup.data import FPP, Lookup
from rookery.indexes.bloom import matrices
from rookery.io import local_path
from rookery.prune.fileset import file_set
from rookery.sketch.bloom import BloomFilter
from rookery.sketch.xxh64 import hash_bytes

PROBES = 1_000_000
SAMPLE = 16
PRESENT = 10_000_000
MOST_OVER = 1.2
KEY = 32


def rows(lookup: Lookup, effort: Effort) -> Iterator[Measure]:
    probes, wanted = effort.of(PROBES), effort.of(PRESENT)
    absent = _hash_keys(_random_keys(probes), np.arange(probes + 1, dtype=np.int64) * KEY)
    rates = []
    missed = probed = 0
    for number, (path, bloom) in enumerate(_filters(lookup)):
        if number < SAMPLE:
            rates.append(float(bloom.contains(absent).mean()))
        if probed < wanted:
            present = _hashes(pq.read_table(path, columns=["k"])["k"].combine_chunks())
            missed += int((~bloom.contains(present)).sum())
            probed += len(present)
        elif number >= SAMPLE:
            break
    data = f"{probes:,} absent keys in each of {len(rates)} files"
    limit = MOST_OVER * FPP
    yield Measure("false positives, mean", data, float(np.mean(rates)), "share", limit, "requested", FPP)
    yield Measure("false positives, worst file", data, max(rates), "share", limit, "requested", FPP)
    yield Measure("false negatives", f"{probed:,} keys that are there", missed, "keys", 0)


def _filters(lookup: Lookup) -> Iterator[tuple[str, BloomFilter]]:
    table, store = lookup.handle().load()
    current = table.snapshot()
    assert current is not None
    (field,) = (field for field in table.fields() if field.name == "k")
    files = file_set(table, store, current)
    for place in files.places:
        segment = files.segment(place.segment)
        paths = segment.files["path"].to_pylist()
        for matrix in matrices(segment, field.id):
            for ordinal in matrix.ordinals.tolist():
                found = matrix.filter_of(ordinal)
                assert found is not None
                yield local_path(paths[ordinal]), found


def _random_keys(count: int) -> NDArray[np.uint8]:
    """Keys of as many hexadecimal digits as those of the table; none of it, by all odds."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    return digits[np.random.default_rng(5).integers(0, 16, count * KEY, np.uint8)]


def _hashes(keys: pa.Array) -> NDArray[np.uint64]:
    assert keys.null_count == 0
    keys = keys.cast(pa.large_string())
    _, offsets, data = keys.buffers()
    return _hash_keys(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int64)[: len(keys) + 1])


@njit
def _hash_keys(data: Any, offsets: Any) -> Any:
    found = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(found)):
        found[i] = hash_bytes(data, offsets[i], offsets[i + 1] - offsets[i])
    return found
