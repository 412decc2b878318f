"""Which snapshots a retention keeps, held against Iceberg's own decision on random histories."""

from __future__ import annotations

import json
import random
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from rookery.maintain.steps.snapshot_retention import RetentionRule, retention

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3600 * 1000


def metadata(rng: random.Random, now_ms: int) -> dict[str, Any]:
    """A table's metadata with a random tree of snapshots, branches and tags; nothing else is there."""
    count = rng.randrange(1, 14)
    numbers = rng.sample(range(1, 10_000), count)
    at = now_ms - 400 * HOUR
    snapshots = []
    for position, number in enumerate(numbers):
        at += rng.choice((0, 1, 1, 2, 30)) * HOUR
        # A parent that has expired before is named still.
        parent = (
            rng.choice(numbers[max(position - 3, 0) : position]) if position and rng.random() < 0.9 else None
        )
        snapshots.append(
            {
                "snapshot-id": number,
                **({"parent-snapshot-id": parent} if parent is not None else {}),
                "sequence-number": position + 1,
                "timestamp-ms": at,
                "manifest-list": f"/nowhere/{number}.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        )
    main = rng.choice(numbers)
    refs: dict[str, Any] = {"main": {"snapshot-id": main, "type": "branch"}}
    for position in range(rng.randrange(0, 5)):
        refs[f"ref{position}"] = _ref(rng, rng.choice(numbers))
    if rng.random() < 0.3:
        refs["main"] |= {"min-snapshots-to-keep": rng.randrange(1, 6)}
    properties = (
        {"history.expire.max-ref-age-ms": str(rng.randrange(1, 300) * HOUR)} if rng.random() < 0.3 else {}
    )
    return _document(snapshots, refs, main, properties, now_ms)


def _ref(rng: random.Random, number: int) -> dict[str, Any]:
    kind = rng.choice(("branch", "branch", "tag"))
    ref: dict[str, Any] = {"snapshot-id": number, "type": kind}
    if rng.random() < 0.4:
        ref["max-ref-age-ms"] = rng.randrange(1, 400) * HOUR + HOUR // 2
    if kind == "branch" and rng.random() < 0.4:
        ref["max-snapshot-age-ms"] = rng.randrange(1, 400) * HOUR + HOUR // 2
    if kind == "branch" and rng.random() < 0.4:
        ref["min-snapshots-to-keep"] = rng.randrange(1, 5)
    return ref


def _document(
    snapshots: list[Any], refs: dict[str, Any], main: int, properties: dict[str, str], now_ms: int
) -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=7)),
        "location": "/nowhere",
        "last-sequence-number": len(snapshots),
        "last-updated-ms": now_ms,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": properties,
        "current-snapshot-id": main,
        "refs": refs,
        "snapshots": snapshots,
        "snapshot-log": [{"snapshot-id": main, "timestamp-ms": now_ms}],
    }


def parsed(document: dict[str, Any]) -> TableMetadata:
    return TableMetadataUtil.parse_raw(json.dumps(document))


def by_java(spark: SparkSession, path: Path, rule: RetentionRule) -> set[int]:
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    io = iceberg.hadoop.HadoopFileIO(spark._jsparkSession.sessionState().newHadoopConf())
    table = iceberg.BaseTable(iceberg.StaticTableOperations(str(path), io), "t")
    gone = table.expireSnapshots().expireOlderThan(rule.older_than_ms).retainLast(rule.keep_last).apply()
    return {snapshot.snapshotId() for snapshot in gone}


@pytest.mark.parametrize("seed", range(6))
def test_the_same_snapshots_go_as_iceberg_lets_go(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    went = 0
    for number in range(25):
        now_ms = int(time.time() * 1000)
        document = metadata(rng, now_ms)
        path = tmp_path / f"{number}.metadata.json"
        path.write_text(json.dumps(document))
        rule = RetentionRule(now_ms - rng.randrange(-10, 420) * HOUR - HOUR // 2, rng.randrange(1, 6), now_ms)

        found = retention(parsed(document), rule)

        assert set(found.snapshots) == by_java(spark, path, rule), document
        went += len(found.snapshots)
    assert went > 25  # else nothing was shown


def test_a_rule_keeps_the_last_ones_and_the_young_ones() -> None:
    now = 1_000 * HOUR
    snapshots = [
        {
            "snapshot-id": number,
            **({"parent-snapshot-id": number - 1} if number > 1 else {}),
            "sequence-number": number,
            "timestamp-ms": number * HOUR,
            "manifest-list": f"/nowhere/{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        for number in range(1, 11)
    ]
    refs = {"main": {"snapshot-id": 10, "type": "branch"}, "kept": {"snapshot-id": 2, "type": "tag"}}
    table = parsed(_document(snapshots, refs, 10, {}, now))
    assert retention(table, RetentionRule(8 * HOUR, 1, now)).snapshots == (1, 3, 4, 5, 6, 7)
    assert retention(table, RetentionRule(now, 4, now)).snapshots == (1, 3, 4, 5, 6)
    assert retention(table, RetentionRule(0, 1, now)).snapshots == ()


def test_a_ref_past_its_age_goes_with_what_it_alone_kept() -> None:
    now = 1_000 * HOUR
    document = metadata(random.Random(1), now)
    only = document["snapshots"][0] | {"snapshot-id": 1}
    only.pop("parent-snapshot-id", None)
    refs = {
        "main": {"snapshot-id": 1, "type": "branch"},
        "old": {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": HOUR},
    }
    table = parsed(_document([only], refs, 1, {}, now))
    found = retention(table, RetentionRule(now, 1, now))
    assert (found.snapshots, found.refs) == ((), ("old",))
