"""Python's half of an attached session: it answers what the JVM asks of a scan, as JSON.

A request names the table by its metadata file, the snapshot, the columns that are read and the conditions
that Spark has pushed down. The answer names the files that cannot match, and has the statistics of the rest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.estimate.deleted import deleted_rows
from rookery.estimate.known import KnownTable
from rookery.estimate.selection import Selection, select
from rookery.io.redaction import redact
from rookery.model import ALWAYS, And, Field, Predicate, Snapshot, TableName, all_of, opaque_parts
from rookery.model.cache import Cache, nbytes_of
from rookery.model.warned import Warned, warned_once
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import FileSet, described_file_set
from rookery.sidecar import store_of
from rookery.spark.attach.column_statistics import column_statistics, matching_rows
from rookery.spark.attach.predicates import predicate_of
from rookery.spark.attach.runtime_columns import runtime_columns
from rookery.tables import Table
from rookery.tables.formats import open_metadata

log = logging.getLogger(__name__)

_NARROW = 0.01  # of the rows
_SELECTIVE = 0.5  # of the rows: the keys of more than these prune nothing
_MOST_LISTED = 1000  # paths that are listed in an answer; more are numbered
LEAST_BYTES = 32 << 20  # of a scan that is pruned at run time
LEAST_ROWS = 4_000_000  # of the tables of a query whose joins are reordered
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
    least_rows: int = LEAST_ROWS
    timeout_ms: int = 5000  # for all answers of a query; what is left of it is then planned without them


@dataclass(slots=True, weakref_slot=True, eq=False)
class Planner:
    """Answers the requests of one session, on threads of the JVM's choice."""

    settings: Settings
    cache: Cache = field(default_factory=Cache)
    before: Mapping[str, str | None] = field(default_factory=dict)  # Spark's settings that were changed
    warned: Warned = field(default_factory=Warned)

    class Java:
        """The interface under which py4j shows the planner to the JVM."""

        implements = ("java.util.function.Function",)

    def apply(self, text: str) -> str:
        """Answer a request that begins with its number, and so does the answer."""
        number, _, request = text.partition("\n")
        return f"{number}\n{self.answer(request)}"

    def answer(self, text: str) -> str:
        """Answer a request; what fails is logged, and the query runs as Spark alone would run it."""
        try:
            request = json.loads(text)
            if "missed" in request:  # an error of an earlier query
                self._warn(f"{_ALONE}: {request['missed']}")
            with warned_once(self.warned):
                return self._answer(request)
        except Exception as error:  # noqa: BLE001  # an error here costs speed, never a query
            self._warn(f"{_ALONE}: {error}")
            return _UNKNOWN

    def _warn(self, reason: str) -> None:
        """Log each cause once as a warning, then for debugging only."""
        cause = redact(reason)
        log.log(self.warned.level(cause), "%s", cause)

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
        known: str | None = self.cache.find(key)
        if known is not None:
            return known
        planned, has_failed = self._plan(request, table, snapshot, files)
        answer = json.dumps(planned, allow_nan=False)
        if not has_failed:  # else the next query tries again
            self.cache.put(key, answer, len(answer))
        return answer

    def _table(self, request: Mapping[str, Any]) -> Table:
        def load() -> Table:
            name = TableName.parse(request["table"], default_catalog="spark")
            return open_metadata(name, request["metadata"], request["io"])

        # Credentials among the settings are renewed, so a table is opened again with new ones.
        key = ("table", request["uuid"], request["metadata"], _digest(request["io"]))
        return self.cache.get(key, load, lambda _: _TABLE_BYTES)

    def _plan(
        self, request: Mapping[str, Any], table: Table, snapshot: Snapshot, files: FileSet
    ) -> tuple[dict[str, Any], bool]:
        """Return the answer, and whether an error has left out a part of it."""
        read_with = None if request["current_schema"] else table.at(snapshot.id)
        fields = {each.id: each for each in table.fields(read_with)}
        answer: dict[str, Any] = {}
        predicate = predicate_of(request["where"], fields)
        pruning = prune(table, snapshot, files, predicate)
        if self.settings.pruning:
            answer |= _skipped(files, pruning.keep) | {"by": _stages(pruning)}
        if request.get("runtime") or not (self.settings.statistics or self.settings.runtime):
            return answer, pruning.has_failed
        columns = [fields[number] for number in request["columns"] if number in fields]
        # Files that cannot match do not count for the estimates either, even if none is to be skipped.
        matching = _Matching(replace(pruning, predicate=_understood(predicate)), predicate)
        try:
            if self.settings.statistics:
                answer |= matching.statistics(columns) if request["costs"] else {"rows": matching.live_rows()}
            if self._has_keys(request):
                answer["selective"] = matching.is_selective()
                answer |= matching.keys(columns)
        except Exception as error:  # noqa: BLE001  # what is skipped is proved all the same
            self._warn(f"a scan has no statistics: {error}")
            return answer, True
        return answer, pruning.has_failed

    def _has_keys(self, request: Mapping[str, Any]) -> bool:
        return bool(self.settings.runtime and self.settings.pruning and request["joins"])


class _Matching:
    """The matching rows of a scan, which are estimated only if the answer depends on them."""

    def __init__(self, pruning: Pruning, predicate: Predicate) -> None:
        self.pruning = pruning
        self.is_understood = pruning.predicate == predicate

    @cached_property
    def selection(self) -> Selection:
        return select(self.pruning)

    def statistics(self, columns: Sequence[Field]) -> dict[str, Any]:
        """What Spark's optimizer uses if it plans by costs."""
        return {
            "rows": round(self.selection.possible_rows),
            "matching": matching_rows(self.selection),
            "columns": column_statistics(self.selection, columns),
        }

    def live_rows(self) -> int:
        """The rows of the files that are left, without deleted ones: by them alone Spark estimates a size."""
        files, keep = self.pruning.files, self.pruning.keep
        assert files.state is not None
        if not files.live.deletes:
            return int(files.files["rows"].to_numpy()[keep].sum())

        def count() -> NDArray[np.float64]:
            table = KnownTable(replace(self.pruning, keep=np.ones(len(files), bool)))
            return np.asarray(table.rows - deleted_rows(table).about)

        key = ("live rows", files.store.path(files.state.name), self.pruning.snapshot.id)
        return round(float(files.store.cache.get(key, count, nbytes_of)[keep].sum()))

    def is_selective(self) -> bool:
        """Whether the keys of the matching rows may prune the other side of a join."""
        if self.pruning.predicate == ALWAYS:
            return not self.is_understood
        return not self.is_understood or self.selection.selectivity < _SELECTIVE

    def keys(self, columns: Sequence[Field]) -> dict[str, Any]:
        """The columns by whose keys the scan may be pruned.

        Of two sides that offer their keys, Spark prunes the left one. A scan of which conditions leave few
        rows is the side whose keys are to prune the other.
        """
        offered = list(runtime_columns(self.pruning.files, self.pruning.snapshot, columns))
        if not offered or self.pruning.predicate == ALWAYS or self.selection.selectivity >= _NARROW:
            return {"runtime": offered}
        return {}


def _understood(predicate: Predicate) -> Predicate:
    """The conditions that are understood; Spark estimates the others by the statistics of their columns."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return all_of(*(part for part in parts if not any(opaque_parts(part))))


def _skipped(files: FileSet, keep: NDArray[np.bool_]) -> dict[str, Any]:
    """Name the files that are skipped: those all of whose entries are, should one be listed twice."""
    if keep.all():
        return {}
    paths = files.files["path"]
    if files.repeats_paths:
        kept_too = pc.is_in(paths, value_set=paths.filter(pa.array(keep)).combine_chunks())
        keep = np.asarray(kept_too.to_numpy(zero_copy_only=False), bool)
    if len(keep) - np.count_nonzero(keep) <= _MOST_LISTED:
        return {"skipped": paths.filter(pa.array(~keep)).to_pylist()}
    bits = np.packbits(~keep, bitorder="little").tobytes()
    return {"numbering": files.order, "bits": base64.b64encode(bits).decode()}


def _key(request: Mapping[str, Any]) -> str:
    """What an answer depends on, besides the state."""
    names = (
        "metadata",
        "snapshot",
        "current_schema",
        "columns",
        "where",
        "runtime",
        "costs",
        "joins",
    )
    return _digest([request.get(name) for name in names])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _stages(pruning: Pruning) -> str:
    """Name the stages that skipped files, and how many."""
    return ", ".join(
        f"{stage.name} {stage.files_in - stage.files_out:,}"
        for stage in pruning.stages
        if stage.files_out < stage.files_in
    )
