"""A table's status held against the truth: every difference is named."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

import rookery
from rookery.api.lake import Lake
from rookery.maintain.policies.policy import DEFAULT, Policy
from rookery.maintain.status import ColumnStatus, TableStatus, table_status
from rookery.puffin import open_puffin
from tests.maintain import truth, truth_layout
from tests.maintain.seen import Seen, Witness, see

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Small files, so that all three sizes occur, and a retention that some snapshots are past.
POLICY = replace(
    DEFAULT,
    compaction=replace(
        DEFAULT.compaction, target_size=6_000, small_size=4_500, min_files=3, delete_ratio=0.1
    ),
    manifests=replace(DEFAULT.manifests, most_small=3),
    snapshots=replace(DEFAULT.snapshots, keep_for=timedelta(days=1), keep_last=3),
)
EXACT = 4096  # below it sketches hold every value


@dataclass
class CheckedTable:
    """A table, and who has watched it."""

    spark: SparkSession
    lake: Lake
    name: str
    witness: Witness
    policy: Policy = POLICY
    seen: Seen = field(init=False)
    status: TableStatus = field(init=False)

    def look(self, now: float) -> None:
        """Ask both."""
        self.seen = see(self.spark, self.name)
        self.status = table_status(
            *rookery.table(self.name, self.lake).load(), self.policy, now=now, columns=True
        )

    def differences(self, now: float) -> list[str]:
        """Return all in which a table's status is not the truth."""
        self.look(now)
        told = msgspec.to_builtins(self.status)
        told["indexes"] = list(told["indexes"])
        for visibility in told["engine_visibility"]:
            del visibility["hint"]
        told["score"]["parts"] = {
            part["name"]: (part["value"], round(100 * part["weight"])) for part in told["score"]["parts"]
        }
        wanted = _truth(self, now)
        for indexes in (told["indexes"], wanted["indexes"]):  # in whatever order
            indexes.sort(key=lambda index: (index["kind"], index["column"]))
        if abs(told["score"]["total"] - wanted["score"]["total"]) < 0.0501:  # it is rounded
            wanted["score"]["total"] = told["score"]["total"]
        found = list(_unlike("", {key: told[key] for key in wanted}, wanted))
        found += _columns(self, wanted["statistics"])
        found += _bounds(self)
        found += _optimizer(self)
        return found


def _unlike(where: str, told: Any, wanted: Any) -> Iterator[str]:
    if isinstance(wanted, Mapping):
        if not isinstance(told, Mapping) or told.keys() != wanted.keys():
            yield f"{where}: {told} is not {wanted}"
            return
        for key, value in wanted.items():
            yield from _unlike(f"{where}.{key}", told[key], value)
    elif isinstance(wanted, (list, tuple)):
        if not isinstance(told, (list, tuple)) or len(told) != len(wanted):
            yield f"{where}: {told} is not {wanted}"
            return
        for number, (one, other) in enumerate(zip(told, wanted, strict=True)):
            yield from _unlike(f"{where}[{number}]", one, other)
    elif isinstance(wanted, float) and isinstance(told, float):
        if not math.isclose(told, wanted, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{where}: {told} is not {wanted}"
    elif told != wanted:
        yield f"{where}: {told} is not {wanted}"


def _truth(checked: CheckedTable, now: float) -> dict[str, Any]:
    seen, policy = checked.seen, checked.policy
    lies = truth_layout.layout(seen, policy)
    age = truth.staleness(seen, checked.witness)
    engine_visibility = truth.engine_visibility(seen)
    old = truth.expirable(seen, policy, int(now * 1000))
    drifts = [column for column in checked.status.columns if column.ndv]
    most = [column.drift_high for column in drifts]
    return {
        "table": checked.name,
        "format_version": seen.metadata["format-version"],
        "snapshot_id": seen.current.id if seen.current else None,
        "statistics": age,
        "engine_visibility": engine_visibility,
        "layout": lies,
        "sidecar_files": truth.beside(seen, {path: _snapshots(path) for path in seen.beside}),
        "expirable_snapshots": old,
        "score": _score(age, engine_visibility, lies, policy, old),
        "drift_low": max((column.drift_low or 0.0 for column in drifts), default=0.0),
        "drift_high": None if None in most else max((each for each in most if each), default=0.0),
        "indexes": _indexes(checked),
    }


def _snapshots(path: str) -> set[int]:
    with open_puffin(path) as reader:
        return {blob.snapshot_id for blob in reader.metadata.blobs}


def _score(
    age: Mapping[str, Any],
    engine_visibility: list[dict[str, Any]],
    lies: Mapping[str, Any],
    policy: Policy,
    old: int,
) -> dict[str, Any]:
    shares = [
        visibility["columns"] / visibility["of"] for visibility in engine_visibility if visibility["of"]
    ]
    deleted = sum(kind["share"] for kind in lies["deletes"])
    depth = lies["sort"]["depth"] if lies["sort"] else None
    parts = {
        "statistics": (
            age["health"] if age["freshness"] == "never" else (age["health"] + age["covered"]) / 2,
            35,
        ),
        "visibility": (sum(shares) / len(shares) if shares else 1.0, 10),
        "files": (1 - lies["crowded_files"] / lies["files"] if lies["files"] else 1.0, 25),
        "deletes": (1 - min(1, deleted / policy.compaction.delete_ratio), 15),
        "manifests": (min(1.0, policy.manifests.most_small / max(lies["small_manifests"], 1)), 5),
        "snapshots": (1 - old / lies["snapshots"] if lies["snapshots"] else 1.0, 5),
        "order": (1.0 if depth is None else min(1.0, policy.compaction.most_overlap / depth), 5),
    }
    return {"total": sum(value * weight for value, weight in parts.values()), "parts": parts}


def _indexes(checked: CheckedTable) -> list[dict[str, Any]]:
    """Of each declared index the files that it was built of and that are as they were."""
    seen, witness = checked.seen, checked.witness
    best = truth.best_state(seen)
    rows = sum(file.rows for file in seen.files)
    found = []
    for kind, number in sorted(each for each in witness.declared if each[1] in seen.columns):
        name, type_name = seen.columns[number]
        same: set[str] = set()
        if best is not None and _is_built(witness, best.name, kind, number, type_name):
            same = truth.as_they_were(seen, best.snapshot, witness)
        covered = sum(file.rows for file in seen.files if file.path in same)
        all_there = seen.current is not None and len(same) == len(seen.files)
        freshness = "current" if all_there else "stale" if same else "never"
        share = covered / rows if rows else 1.0 if seen.current and best else 0.0
        found.append(
            {
                "kind": kind,
                "column": name,
                "freshness": freshness,
                "files_covered": len(same),
                "covered": share,
                "known": True,
            }
        )
    return found


def _is_built(witness: Witness, state: str, kind: str, number: int, type_name: str) -> bool:
    return (kind, number) in witness.built[state] and witness.schemas[state][number][1] == type_name


def _columns(checked: CheckedTable, age: Mapping[str, Any]) -> Iterator[str]:
    """What is said of each column, but for its bounds."""
    seen = checked.seen
    base = truth.base_of(seen)
    spark, trino = truth.spark_sees(seen), truth.trino_sees(seen)
    told = {column.field_id: column for column in checked.status.columns}
    if told.keys() != seen.columns.keys():
        yield f".columns: {sorted(told)} are not {sorted(seen.columns)}"
        return
    for number, (name, kind) in seen.columns.items():
        column = told[number]
        ndv = _counted(checked, base, number, kind)
        stale = age["snapshots_behind"] != 0 or truth.base_is_off(seen, base)
        wanted = (
            name, kind, "never" if ndv is None else "stale" if stale else "current",
            0.0 if ndv is None else age["covered"], ndv, number in spark, number in trino,
        )  # fmt: skip
        said = (
            column.name, column.type, column.freshness.value, column.covered, column.ndv, column.spark,
            column.trino,
        )  # fmt: skip
        if any(str(one) != str(other) and one != other for one, other in zip(said, wanted, strict=True)):
            yield f".columns[{name}]: {said} is not {wanted}"


def _counted(checked: CheckedTable, base: truth.Base | None, number: int, kind: str) -> float | None:
    if base is None:
        return None
    if base.state is None:
        return base.stated.get(number) if base.stated is not None else None
    before = checked.witness.schemas[base.state.name].get(number, ("", ""))[1]
    rows = sum(file.rows for file in checked.witness.held[base.snapshot].values())
    ndv = base.state.thetas.get(number)
    return min(int(ndv), rows) if ndv is not None and before == kind else None


def _bounds(checked: CheckedTable) -> Iterator[str]:
    """Whether each column's distinct values lie where they are said to, and have moved as far as said."""
    columns = checked.seen.columns.values()
    counts = [f"count(DISTINCT `{name}`) AS `v_{name}`" for name, _ in columns]
    # Sketches go by bytes: two zeros are two values, and the empty text is none.
    counts += [f"count(DISTINCT nullif(string(`{name}`), '')) AS `b_{name}`" for name, _ in columns]
    row = checked.spark.sql(f"SELECT {', '.join(counts)} FROM {checked.name}").first()
    assert row is not None
    for column in checked.status.columns:
        values, sketched = row[f"v_{column.name}"], row[f"b_{column.name}"]
        yield from _bound(column, min(values, sketched), max(values, sketched))


def _bound(column: ColumnStatus, least: int, most: int) -> Iterator[str]:
    said = f"{column.name}: {least}–{most} values, between {column.ndv_low} and {column.ndv_high}"
    unmoved = column.drift_high == 0
    if column.ndv_low > most + 1e-6:
        yield f"{said}: too few"
    if column.ndv_high is not None and column.ndv_high < (least if unmoved else most) - 1e-6:
        yield f"{said}: too many"
    if column.ndv and column.ndv < EXACT and column.drift_low is not None:
        moved = [abs(true - column.ndv) / column.ndv for true in (least, most)]
        if column.drift_low > max(moved) + 1e-6:
            yield f"{said}: has not drifted by {column.drift_low}"
        if column.drift_high is not None and column.drift_high < min(moved) - 1e-6:
            yield f"{said}: has drifted more than {column.drift_high}"


def _optimizer(checked: CheckedTable) -> Iterator[str]:
    """Whether Spark's optimizer finds distinct values of exactly the columns that are said to be seen."""
    found = planned_with(checked)
    told = {column.name for column in checked.status.columns if column.spark}
    if found is not None and found != told:
        yield f".columns: Spark plans with {sorted(found)}, not with {sorted(told)}"


def planned_with(checked: CheckedTable) -> set[str] | None:
    """The columns whose distinct values Spark's optimizer finds; None where its planning fails."""
    seen = checked.seen
    if seen.current is None or not seen.statistics.get(seen.current.id, {}).keys() <= seen.columns.keys():
        return None  # statistics of a column that is gone
    spark = checked.spark
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan: Any = spark.sql(f"SELECT * FROM {checked.name}")._jdf.queryExecution().optimizedPlan()
        found: set[str] = set()
        each = plan.stats().attributeStats().iterator()
        while each.hasNext():
            pair = each.next()
            found |= {pair._1().name()} if pair._2().distinctCount().isDefined() else set()
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    return found
