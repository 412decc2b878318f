"""The rows of one key, of which each is asked for once: with no Spark, and as a scan in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from pyiceberg.expressions import EqualTo

from benchmarks.harness import WARMING, Effort, Row, compare_asking
from benchmarks.lake import CATALOG, forget_all
from benchmarks.lookup import lances
from benchmarks.lookup.data import COPY, NAME, Lookup, where

KEYS = 40
SLOW_KEYS = 5
Ask = Callable[[str], object]


@dataclass(frozen=True)
class Peer:
    """Another way to find a key's rows."""

    name: str
    ask: Ask
    target: float | None
    rounds: int = KEYS


def rows(lookup: Lookup, effort: Effort) -> Iterator[Row]:
    keys = KEYS if effort.scale >= 1 else 10
    dataset = lances.made(lookup)
    peers = [
        Peer("Spark, Iceberg's scan", _spark(lookup, NAME), 100, 10),
        Peer("Spark, with Parquet's Bloom filters", _spark(lookup, COPY), 20, 10),
        Peer("PyIceberg", _pyiceberg(lookup), 30, SLOW_KEYS),
        Peer("DuckDB on the Parquet files", _duckdb(lookup), 15),
    ]
    if dataset is not None:
        peers.append(Peer("Lance BTREE", lances.Warm(dataset.path), 1 / 4))
    warm, cold, scan = _warm(lookup), _cold(lookup), _scan(lookup)
    check(lookup, [warm, cold, scan, *(peer.ask for peer in peers)])
    for peer in peers:
        yield from _asked("read, warm", lookup, warm, peer, keys)
    if dataset is not None:
        opened = Peer("Lance BTREE, reopened", lances.Cold(dataset.path), 1 / 4)
        yield from _asked("read, nothing cached", lookup, cold, opened, keys)
    for peer in peers:
        yield from _asked(
            "read, warm, no such key",
            lookup,
            warm,
            Peer(peer.name, peer.ask, None, peer.rounds),
            keys,
            absent=True,
        )
    native = peers[0]
    yield from _asked("scan in Spark", lookup, scan, Peer(native.name, native.ask, 5, 10), 10)


def _asked(
    what: str, lookup: Lookup, ours: Ask, peer: Peer, keys: int, *, absent: bool = False
) -> Iterator[Row]:
    asked = (lookup.absent if absent else lookup.present)(WARMING + keys)
    yield from compare_asking(
        what, lookup.described, ours, peer.name, peer.ask, asked, target=peer.target, peer_rounds=peer.rounds
    )


def _warm(lookup: Lookup) -> Ask:
    handle = lookup.handle()
    return lambda key: handle.read(where(key))


def _cold(lookup: Lookup) -> Ask:
    """With empty caches and a handle of its own; the catalog's connection stays open, as Lance has none."""

    def ask(key: str) -> object:
        forget_all()
        return lookup.handle().read(where(key))

    return ask


def _scan(lookup: Lookup) -> Ask:
    handle = lookup.handle()
    return lambda key: handle.scan(lookup.bench.spark, where(key)).collect()


def _spark(lookup: Lookup, name: str) -> Ask:
    return lambda key: lookup.bench.spark.sql(f"SELECT * FROM {CATALOG}.{name} WHERE {where(key)}").collect()


def _pyiceberg(lookup: Lookup) -> Ask:
    table = lookup.bench.table(NAME)
    return lambda key: table.scan(row_filter=EqualTo("k", key)).to_arrow()


def _duckdb(lookup: Lookup) -> Ask:
    threads = lookup.bench.spark.sparkContext.defaultParallelism
    database = duckdb.connect(config={"threads": threads})
    database.execute("SET parquet_metadata_cache = true")
    paths = lookup.paths()
    text = "SELECT * FROM read_parquet($1) WHERE k = $2"
    return lambda key: database.sql(text, params=[paths, key]).to_arrow_table()


def check(lookup: Lookup, ways: list[Ask]) -> None:
    """Every way finds the one row of a key, and none of a key that is not there."""
    present, absent = lookup.present(1)[0], lookup.absent(1)[0]
    for way in ways:
        assert [_keys(way(key)) for key in (present, absent)] == [[present], []], way


def _keys(found: object) -> list[str]:
    return found["k"].to_pylist() if isinstance(found, pa.Table) else [row["k"] for row in found]  # type: ignore[attr-defined]
