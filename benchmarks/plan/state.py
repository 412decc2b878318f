"""A state for a table whose data files do not exist: what `analyze` would keep, but for the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from benchmarks.lake import Bench, beside, forget, forget_all, is_known
from rookery.sidecar import (
    FILES_SCHEMA,
    Contents,
    SegmentEntry,
    State,
    StateHeader,
    Store,
    ZoneMap,
    write_segment,
)
from rookery.sidecar.live import file_keys, live_files
from rookery.sketch import MAX_FILES, InvertedTheta, ThetaSketch
from rookery.sketch.inverted import bit_width
from rookery.tables import Table

HASHES = 64  # of a column in a segment: its footer is as long as if there were thousands
THETA = 1 << 52


def known(bench: Bench, name: str) -> None:
    """Write a state of the current snapshot, unless one is there."""
    if not is_known(bench.lake, name):
        forget(bench, name)
        forget_all()
        describe(bench, name)


def describe(bench: Bench, name: str, thetas: Mapping[int, ThetaSketch] | None = None) -> None:
    """Write a state of the current snapshot, with these sketches of the whole table."""
    table, store = bench.lake.open(name)
    current = table.snapshot()
    assert current is not None
    beside(bench, name).mkdir()
    live = live_files(table, current, None, decode_all=True)
    entries, parts = [], []
    for number, start in enumerate(range(0, live.decoded.num_rows, MAX_FILES)):
        files = live.decoded.slice(start, MAX_FILES)
        entries.append(_segment(table, store, files, number))
        parts.append(_rows(files, live.decoded_lists[start : start + MAX_FILES], number))
    index = StateHeader(
        table.uuid,
        current.id,
        current.sequence_number,
        current.timestamp_ms,
        table.last_column_id,
        tuple(entries),
        live.data_lists,
        live.delete_lists,
        {field.id: field.type for field in table.fields()},
    )
    store.write_state(State(index, pa.concat_tables(parts).combine_chunks(), thetas or {}))


def _segment(table: Table, store: Store, files: pa.Table, number: int) -> SegmentEntry:
    current = table.snapshot()
    assert current is not None
    ids = [field.id for field in table.fields()]
    thetas = dict(zip(ids, _thetas(files.num_rows, number), strict=False))
    written = write_segment(
        store.segment_path(),
        Contents(ZoneMap.of(files), thetas),
        snapshot_id=current.id,
        sequence_number=current.sequence_number,
        io_properties=store.io_properties,
    )
    return SegmentEntry(
        written.location.rpartition("/")[2],
        files.num_rows,
        tuple(sorted(thetas)),
        table.last_column_id,
        (),
        written.size,
        written.footer_size,
    )


def _thetas(files: int, number: int) -> Iterator[InvertedTheta]:
    """Made-up hashes of columns with many distinct values, one after the other."""
    random = np.random.default_rng(number)
    while True:
        hashes = np.unique(random.integers(1, THETA, HASHES, np.uint64))
        bits = random.integers(0, 2, (len(hashes), files), np.uint8)
        bits[:, 0] = 1  # each hash occurs somewhere
        packed = np.packbits(bits, axis=1, bitorder="little")
        assert packed.shape[1] == bit_width(files)
        yield InvertedTheta(hashes, packed, THETA, files)


def _rows(files: pa.Table, manifests: np.ndarray, number: int) -> pa.Table:
    keys = file_keys(files)
    count = len(keys)
    return pa.table(
        [
            keys,
            pa.array(np.full(count, number, np.int32)),
            pa.array(np.arange(count, dtype=np.int16)),
            pa.array(manifests, pa.int32()),
            files["rows"].combine_chunks(),
        ],
        schema=FILES_SCHEMA,
    )
