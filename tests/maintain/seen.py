"""A table as Iceberg's own metadata tables show it in Spark, in plain Python."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import datasketches

from rookery.puffin import open_puffin

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

DATA, POSITION, EQUALITY = 0, 1, 2
_PATHS = 2147483546  # the reserved field of paths in position delete files
_STATE = re.compile(r"state-(\d+)-(\d+)-([0-9a-f]{32})\.puffin")


@dataclass(frozen=True)
class File:
    """A file as an entry of a manifest has it."""

    path: str
    content: int
    format: str
    spec: int
    partition: tuple[Any, ...]
    rows: int
    size: int
    sequence: int
    target: str | None  # of a delete file: the one data file that it says it is of
    offset: int
    content_size: int
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, compare=False)

    @property
    def place(self) -> tuple[int, tuple[Any, ...]]:
        """The partition."""
        return self.spec, self.partition

    @property
    def key(self) -> tuple[str, int]:
        """What tells delete files apart: vectors lie many in a file."""
        return self.path, self.offset


@dataclass(frozen=True)
class Commit:
    """A snapshot."""

    id: int
    parent: int | None
    time: int
    sequence: int
    schema: int | None
    operation: str
    summary: Mapping[str, int]


@dataclass(frozen=True)
class Kept:
    """A state that lies beside the table, by its name and its blobs."""

    name: str
    sequence: int
    snapshot: int
    thetas: Mapping[int, float]  # by field, what another reader of sketches makes of them
    collected: frozenset[int]  # columns that were ever asked for


@dataclass(frozen=True)
class Seen:
    """A table at one moment."""

    metadata: Mapping[str, Any]
    files: list[File]  # of data
    deletes: list[File]
    manifests: list[tuple[int, int]]  # content and length
    commits: Mapping[int, Commit]
    refs: list[Row]
    states: list[Kept]
    segments: list[int]  # sizes
    state_sizes: list[int]
    beside: Mapping[str, int]  # statistics files with the metadata, by path, and their sizes

    @property
    def current(self) -> Commit | None:
        """The current snapshot."""
        return self.commits.get(self.metadata.get("current-snapshot-id", -1))

    @property
    def line(self) -> list[Commit]:
        """The current snapshot, its parent, and so on."""
        found, commit = [], self.current
        while commit is not None:
            found.append(commit)
            commit = self.commits.get(commit.parent) if commit.parent is not None else None
        return found

    @property
    def columns(self) -> dict[int, tuple[str, str]]:
        """Name and type of each column by its id."""
        return columns_of(self.metadata, self.metadata["current-schema-id"])

    @property
    def statistics(self) -> dict[int, dict[int, int]]:
        """What registered files state of distinct values, by snapshot and field."""
        found: dict[int, dict[int, int]] = {}
        for file in self.metadata.get("statistics", []):
            stated = {
                blob["fields"][0]: int(blob["properties"]["ndv"])
                for blob in file["blob-metadata"]
                if blob["type"] == "apache-datasketches-theta-v1" and "ndv" in blob.get("properties", {})
            }
            found[file["snapshot-id"]] = stated
        return found


def columns_of(metadata: Mapping[str, Any], schema_id: int) -> dict[int, tuple[str, str]]:
    """Name and type of the columns of a schema; the tables here have no nested ones."""
    (schema,) = [each for each in metadata["schemas"] if each["schema-id"] == schema_id]
    return {each["id"]: (each["name"], each["type"]) for each in schema["fields"]}


def see(spark: SparkSession, name: str) -> Seen:
    """Look at a table as it is now."""
    metadata = _metadata(spark, name)
    location = _local(metadata["location"])
    entries = entries_of(spark, name)
    manifests = spark.sql(f"SELECT content, length FROM {name}.manifests").collect()
    sizes = _sizes(f"{location}.rookery")
    return Seen(
        metadata,
        [file for file in entries if file.content == DATA],
        [file for file in entries if file.content != DATA],
        [(row.content, row.length) for row in manifests],
        _commits(spark, name, metadata),
        spark.sql(f"SELECT * FROM {name}.refs").collect(),
        [_state(f"{location}.rookery/{each}") for each in sorted(sizes) if _STATE.fullmatch(each)],
        [size for each, size in sizes.items() if each.startswith("segment-")],
        [size for each, size in sizes.items() if each.startswith("state-")],
        {
            f"{location}/metadata/{each}": size
            for each, size in _sizes(f"{location}/metadata").items()
            if each.endswith((".stats", ".puffin"))
        },
    )


def _metadata(spark: SparkSession, name: str) -> Mapping[str, Any]:
    *_, newest = spark.sql(f"SELECT file FROM {name}.metadata_log_entries").collect()
    with open(_local(newest.file), encoding="utf-8") as file:
        found: Mapping[str, Any] = json.load(file)
    return found


def _local(location: str) -> str:
    return re.sub("^file:/*", "/", location).rstrip("/")


def _sizes(folder: str) -> dict[str, int]:
    if not os.path.isdir(folder):
        return {}
    return {name: os.path.getsize(f"{folder}/{name}") for name in os.listdir(folder)}


def entries_of(spark: SparkSession, name: str, snapshot: int | None = None) -> list[File]:
    """The live files of a snapshot, or of the current one with their bounds."""
    at = "" if snapshot is None else f" VERSION AS OF {snapshot}"
    said = "" if snapshot is not None else ", readable_metrics"
    rows = spark.sql(f"SELECT sequence_number, data_file{said} FROM {name}.entries{at} WHERE status < 2")
    return [_file(row) for row in rows.collect()]


def _file(row: Row) -> File:
    entry = row.data_file.asDict()
    partition = entry.get("partition")
    metrics = row.readable_metrics.asDict() if "readable_metrics" in row else {}
    return File(
        entry["file_path"],
        entry["content"],
        entry["file_format"],
        entry["spec_id"],
        tuple(partition) if partition is not None else (),
        entry["record_count"],
        entry["file_size_in_bytes"],
        row.sequence_number,
        _target(entry),
        entry["content_offset"] or 0,
        entry["content_size_in_bytes"] or 0,
        {column: (said.lower_bound, said.upper_bound) for column, said in metrics.items() if said},
    )


def _target(entry: Mapping[str, Any]) -> str | None:
    if entry["content"] != POSITION:
        return None
    if entry["referenced_data_file"]:
        return str(entry["referenced_data_file"])
    lower, upper = ((entry[which] or {}).get(_PATHS) for which in ("lower_bounds", "upper_bounds"))
    return bytes(lower).decode() if lower is not None and lower == upper else None


def _commits(spark: SparkSession, name: str, metadata: Mapping[str, Any]) -> dict[int, Commit]:
    numbers = {each["snapshot-id"]: each for each in metadata.get("snapshots", [])}
    rows = spark.sql(f"SELECT *, unix_millis(committed_at) AS ms FROM {name}.snapshots").collect()
    return {
        row.snapshot_id: Commit(
            row.snapshot_id,
            row.parent_id,
            row.ms,
            numbers[row.snapshot_id].get("sequence-number", 0),
            numbers[row.snapshot_id].get("schema-id"),
            row.operation,
            {key: int(value) for key, value in row.summary.items() if value.isdigit()},
        )
        for row in rows
    }


def _state(path: str) -> Kept:
    match = _STATE.fullmatch(os.path.basename(path))
    assert match is not None
    with open_puffin(path) as reader:
        blobs = [blob for blob in reader.metadata.blobs if blob.type == "rookery-theta-v1"]
        sketches = {
            blob.fields[0]: datasketches.compact_theta_sketch.deserialize(payload).get_estimate()
            for blob, payload in reader.read_many(blobs)
        }
        (index,) = [blob for blob in reader.metadata.blobs if blob.type == "rookery-index-v1"]
        types = json.loads(reader.read(index))["types"]
    return Kept(
        match.group(0), int(match.group(1)), int(match.group(2)), sketches, frozenset(map(int, types))
    )


@dataclass
class Witness:
    """Remembers what snapshots held while they could be asked, and the schema when each state was written."""

    spark: SparkSession
    name: str
    held: dict[int, dict[str, File]] = field(default_factory=dict)
    deletes: dict[int, list[File]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    schemas: dict[str, dict[int, tuple[str, str]]] = field(default_factory=dict)
    declared: set[tuple[str, int]] = field(default_factory=set)  # indexes: kind and field
    built: dict[str, set[tuple[str, int]]] = field(default_factory=dict)  # by state

    def note(self, *, declared: bool = False) -> None:
        """Look at the snapshots that statistics are of by now, before they may go.

        To declare an index writes the state anew as it was: it is as old as the one before.
        """
        metadata = _metadata(self.spark, self.name)
        folder = f"{_local(metadata['location'])}.rookery"
        states = sorted(name for name in _sizes(folder) if _STATE.fullmatch(name))
        of = {int(name.split("-")[2]) for name in states}
        of |= {file["snapshot-id"] for file in metadata.get("statistics", [])}
        there = {each["snapshot-id"]: each for each in metadata.get("snapshots", [])}
        for snapshot in (of & there.keys()) - self.held.keys():
            files = entries_of(self.spark, self.name, snapshot)
            self.held[snapshot] = {file.path: file for file in files if file.content == DATA}
            self.deletes[snapshot] = [file for file in files if file.content != DATA]
            self.times[snapshot] = there[snapshot]["timestamp-ms"]
        for state in states:
            if state not in self.schemas:
                same = [name for name in self.schemas if name.split("-")[2] == state.split("-")[2]]
                now = _schema_then(metadata, there.get(int(state.split("-")[2])))
                old = max(same) if declared and same else None
                self.schemas[state] = self.schemas[old] if old else now
                self.built[state] = self.built[old] if old else set() if declared else set(self.declared)


def _schema_then(
    metadata: Mapping[str, Any], snapshot: Mapping[str, Any] | None
) -> dict[int, tuple[str, str]]:
    """The columns as they are when a state is written; of an older snapshot, with the types that it had."""
    now = columns_of(metadata, metadata["current-schema-id"])
    if snapshot is None or snapshot["snapshot-id"] == metadata["current-snapshot-id"]:
        return now
    return {**now, **columns_of(metadata, snapshot["schema-id"])}
