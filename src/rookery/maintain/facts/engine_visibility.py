"""Which statistics engines find: Spark takes the current snapshot's file, Trino the nearest ancestor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.maintain.facts.staleness import Ancestry, others_registered, stated_ndvs
from rookery.maintain.survey import Survey
from rookery.model import Snapshot
from rookery.model.type_names import SKETCHED, base_type
from rookery.sidecar.statistics_file import names_gone


@dataclass(frozen=True, slots=True)
class EngineVisibility:
    """What an engine finds."""

    engine: str
    columns: int  # whose distinct values it finds
    of: int  # columns that can have them
    current: bool  # all that it finds is of the current snapshot
    hint: str | None  # how to repair it, if something is wrong
    broken: bool = False  # it fails on statistics of dropped columns
    foreign: bool = False  # what is registered for the current snapshot is another engine's


def spark_sees(survey: Survey) -> dict[int, int]:
    """Return the columns whose distinct values Spark finds, and the snapshot that each was counted at.

    Spark takes the statistics file of the current snapshot or none.
    """
    return _nearest(survey, [survey.snapshot] if survey.snapshot is not None else [])


def trino_sees(survey: Survey, line: Ancestry) -> dict[int, int]:
    """Return the columns whose distinct values Trino finds, and the snapshot that each was counted at.

    Trino takes the statistics file of the nearest ancestor that has one, and no other: columns that this
    file lacks have no statistics in Trino.
    """
    return _nearest(survey, line.snapshots)


def _nearest(survey: Survey, snapshots: Sequence[Snapshot]) -> dict[int, int]:
    files = {file.snapshot_id: file for file in survey.table.statistics}
    file = next((files[snapshot.id] for snapshot in snapshots if snapshot.id in files), None)
    if file is None:
        return {}
    stated = stated_ndvs(file)
    # A file may hold sketches that its writer took over from an earlier one.
    return {
        blob.fields[0]: blob.snapshot_id
        for blob in file.blobs
        if len(blob.fields) == 1 and blob.fields[0] in stated
    }


def engine_visibility(survey: Survey, line: Ancestry) -> tuple[EngineVisibility, ...]:
    """Return what Spark and Trino find, and how to repair what they do not find."""
    if survey.snapshot is None or survey.table.not_loadable:
        return ()
    trino_columns = trino_sees(survey, line)
    columns = _visible(survey) | (_top_level(survey) & trino_columns.keys())
    name = survey.table.name
    by_spark = {key: value for key, value in spark_sees(survey).items() if key in columns}
    by_trino = {key: value for key, value in trino_columns.items() if key in columns}
    now = {survey.snapshot.id}
    spark_fresh, trino_fresh = now.issuperset(by_spark.values()), now.issuperset(by_trino.values())
    foreign = others_registered(survey, survey.snapshot)
    repair = f"run `rookery analyze {name}`"
    broken = any(
        names_gone(survey.table, file)
        for file in survey.table.statistics
        if file.snapshot_id == survey.snapshot.id
    )
    return (
        EngineVisibility(
            engine="spark",
            columns=len(by_spark),
            of=len(columns),
            current=spark_fresh and by_spark.keys() == columns,
            hint=_spark_hint(repair, by_spark.keys() == columns, spark_fresh, broken),
            broken=broken,
            foreign=foreign,
        ),
        EngineVisibility(
            engine="trino",
            columns=len(by_trino),
            of=len(columns),
            current=trino_fresh and by_trino.keys() == columns,
            hint=_trino_hint(repair, len(columns - by_trino.keys()), trino_fresh, not by_trino),
            foreign=foreign,
        ),
    )


def _top_level(survey: Survey) -> set[int]:
    """The columns that engines look at: those at the top of the table alone."""
    fields = survey.table.fields()
    return {field.id for field in fields if base_type(field.type) in SKETCHED and len(field.parts) == 1}


def _visible(survey: Survey) -> set[int]:
    """The columns with a number to find: 0 is not registered."""
    thetas = survey.state.thetas if survey.state is not None else {}
    return {number for number in _top_level(survey) if number not in thetas or len(thetas[number].hashes)}


def _spark_hint(repair: str, all_there: bool, fresh: bool, broken: bool) -> str | None:
    if broken:
        return f"{repair}; Spark's optimizer fails on statistics of dropped columns"
    if not all_there:
        return f"{repair}; Spark uses only statistics of the current snapshot"
    return None if fresh else f"{repair}; Spark plans with those of an older snapshot"


def _trino_hint(repair: str, missing: int, fresh: bool, nothing: bool) -> str | None:
    if missing:
        return repair if nothing else f"{repair}; Trino uses only the nearest statistics file"
    return None if fresh else f"{repair}; Trino plans with those of an older snapshot"
