"""Python's half of an attached session: it answers what the JVM asks of a scan, as JSON.

A request names the table by its metadata file, the snapshot, the columns that are read and the conditions
that Spark has pushed down. The answer names the files that cannot match, and has the statistics of the rest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.estimate.rows import select
from rookery.io.redaction import redact
from rookery.model import And, Predicate, Snapshot, TableName, all_of, opaque_parts
from rookery.model.cache import Cache
from rookery.model.once import warned_once
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import FileSet, described_file_set
from rookery.sidecar import store_of
from rookery.spark.attach.column_statistics import column_statistics, matching_rows
from rookery.spark.attach.predicates import predicate_of
from rookery.spark.attach.runtime_columns import runtime_columns
from rookery.tables import Table
from rookery.tables.iceberg.static import open_metadata

log = logging.getLogger(__name__)

_NARROW = 0.01  # of the rows
_MOST_LISTED = 1000  # paths that are listed in an answer; more are numbered
LEAST_BYTES = 32 << 20  # of a scan that is pruned at run time
_ALONE = "a query is planned without Rookery"
_UNKNOWN = json.dumps({"unknown": True})
_TABLE_BYTES = 1 << 20  # approximate memory of a table's metadata


@dataclass(frozen=True, slots=True)
class Settings:
    """What an attached session is planned with."""

    statistics: bool = True
    pruning: bool = True
    runtime: bool = True
    least_bytes: int = LEAST_BYTES
    timeout_ms: int = 5000  # for an answer; the query is then planned without it


@dataclass(slots=True)
class Planner:
    """Answers the requests of one session, on threads of the JVM's choice."""

    settings: Settings
    cache: Cache = field(default_factory=Cache)
    _warned: bool = False
    _given: set[str] = field(default_factory=set)  # warnings of what is damaged
    _lock: Any = field(default_factory=Lock)

    class Java:
        """The interface under which py4j shows the planner to the JVM."""

        implements = ("java.util.function.Function",)

    def apply(self, text: str) -> str:
        """Answer a request; what fails is logged, and the query runs as Spark alone would run it."""
        try:
            request = json.loads(text)
            if "missed" in request:  # an error of an earlier query
                self._warn(f"{_ALONE}: {request['missed']}")
            with warned_once(self._given):
                return self._answer(request)
        except Exception as error:  # noqa: BLE001  # an error here costs speed, never a query
            self._warn(f"{_ALONE}: {error}")
            return _UNKNOWN

    def _warn(self, reason: str) -> None:
        """Log once as a warning, then for debugging only."""
        with self._lock:
            level = logging.DEBUG if self._warned else logging.WARNING
            self._warned = True
        log.log(level, "%s", redact(reason))

    def _answer(self, request: Mapping[str, Any]) -> str:
        table = self._table(request)
        store = store_of(table, self.cache)
        snapshot = table.snapshots.get(request["snapshot"])
        if snapshot is None or table.uuid != request["uuid"]:
            return _UNKNOWN
        files = described_file_set(table, store, snapshot)
        if files is None or files.state is None:
            return _UNKNOWN
        if "numbering" in request:
            is_same = request["numbering"] == files.order
            return json.dumps(files.files["path"].to_pylist() if is_same else [])
        key = ("answer", self.settings, files.state.name, store.location, _key(request))

        def plan() -> str:
            return json.dumps(self._plan(request, table, snapshot, files), allow_nan=False)

        return self.cache.get(key, plan, len)

    def _table(self, request: Mapping[str, Any]) -> Table:
        def load() -> Table:
            name = TableName.parse(request["table"], default_catalog="spark")
            return open_metadata(name, request["metadata"], request["io"])

        # Credentials among the settings are renewed, so a table is opened again with new ones.
        key = ("table", request["uuid"], request["metadata"], _digest(request["io"]))
        return self.cache.get(key, load, lambda _: _TABLE_BYTES)

    def _plan(
        self, request: Mapping[str, Any], table: Table, snapshot: Snapshot, files: FileSet
    ) -> dict[str, Any]:
        read_with = None if request["current_schema"] else table.at(snapshot.id)
        fields = {each.id: each for each in table.fields(read_with)}
        answer: dict[str, Any] = {}
        predicate = predicate_of(request["where"], fields)
        pruning = prune(table, snapshot, files, predicate)
        if self.settings.pruning:
            answer |= _skipped(files, pruning.keep) | {"by": _stages(pruning)}
        if request.get("runtime") or not (self.settings.statistics or self.settings.runtime):
            return answer
        columns = [fields[number] for number in request["columns"] if number in fields]
        try:
            # Files that cannot match do not count for the estimates either, even if none is to be skipped.
            selection = select(replace(pruning, predicate=_understood(predicate)))
            if self.settings.statistics:
                answer |= {
                    "rows": round(selection.possible_rows),
                    "matching": matching_rows(selection),
                    "columns": column_statistics(selection, columns),
                }
            # Of two sides that offer their keys, Spark prunes the left one. A scan of which conditions leave
            # few rows is the side whose keys are to prune the other.
            if self._prunes_at_run_time(request) and selection.selectivity >= _NARROW:
                answer["runtime"] = list(runtime_columns(files, snapshot, columns))
        except Exception as error:  # noqa: BLE001  # what is skipped is proved all the same
            self._warn(f"a scan has no statistics: {error}")
        return answer

    def _prunes_at_run_time(self, request: Mapping[str, Any]) -> bool:
        wanted = self.settings.runtime and self.settings.pruning
        return wanted and request["bytes"] >= self.settings.least_bytes


def _understood(predicate: Predicate) -> Predicate:
    """The conditions that are understood; Spark estimates the others by the statistics of their columns."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return all_of(*(part for part in parts if not any(opaque_parts(part))))


def _skipped(files: FileSet, keep: NDArray[np.bool_]) -> dict[str, Any]:
    """Name the files that are left out: those all of whose entries are, should one be listed twice."""
    if keep.all():
        return {}
    paths = files.files["path"]
    skipped = paths.filter(pa.array(~keep))
    if len(skipped) <= _MOST_LISTED:
        kept_too = pc.is_in(skipped, value_set=paths.filter(pa.array(keep)).combine_chunks())
        return {"skipped": skipped.filter(pc.invert(kept_too)).to_pylist()}
    bits = np.packbits(~keep, bitorder="little").tobytes()
    return {"numbering": files.order, "bits": base64.b64encode(bits).decode()}


def _key(request: Mapping[str, Any]) -> str:
    """What an answer depends on, besides the state."""
    names = ("metadata", "snapshot", "current_schema", "columns", "where", "runtime", "bytes")
    return _digest([request.get(name) for name in names])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _stages(pruning: Pruning) -> str:
    """Name the stages that left out files, and how many."""
    return ", ".join(
        f"{stage.name} {stage.files_in - stage.files_out:,}"
        for stage in pruning.stages
        if stage.files_out < stage.files_in
    )
