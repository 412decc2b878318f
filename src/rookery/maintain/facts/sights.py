"""Who sees which statistics: Spark looks at the current snapshot alone, Trino at its ancestors too."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.collect.statistics import names_gone
from rookery.maintain.facts.staleness import Line, others_registered, stated_ndvs
from rookery.maintain.survey import Survey
from rookery.sketch.typing import SKETCHED, base_type


@dataclass(frozen=True, slots=True)
class Sight:
    """What an engine finds."""

    engine: str
    columns: int  # whose distinct values it finds
    of: int  # columns that can have them
    current: bool  # all that it finds is of the current snapshot
    hint: str | None  # how to mend it, where something is amiss
    broken: bool = False  # it fails on what it finds: statistics of columns that are gone
    foreign: bool = False  # what is registered for the current snapshot is another engine's


def spark_sees(survey: Survey) -> frozenset[int]:
    """Return the columns of which Spark's optimizer finds distinct values: an exact match of snapshots."""
    if survey.snapshot is None:
        return frozenset()
    files = survey.table.table.metadata.statistics
    return frozenset(
        field_id for file in files if file.snapshot_id == survey.snapshot.id for field_id in stated_ndvs(file)
    )


def trino_sees(survey: Survey, line: Line) -> dict[int, int]:
    """Return the columns whose distinct values Trino finds, and of which snapshot: the nearest's."""
    files = {file.snapshot_id: file for file in survey.table.table.metadata.statistics}
    found: dict[int, int] = {}
    for snapshot in line.snapshots:
        if snapshot.id in files:
            for field_id in stated_ndvs(files[snapshot.id]):
                found.setdefault(field_id, snapshot.id)
    return found


def sights(survey: Survey, line: Line) -> tuple[Sight, ...]:
    """Return what Spark and Trino find, and how to mend what they do not."""
    if survey.snapshot is None:
        return ()
    seen = trino_sees(survey, line)
    columns = _visible(survey) | (_top_level(survey) & seen.keys())
    name = survey.table.name
    by_spark = spark_sees(survey) & columns
    by_trino = {key: value for key, value in seen.items() if key in columns}
    fresh = all(value == survey.snapshot.id for value in by_trino.values())
    foreign = others_registered(survey, survey.snapshot)
    repair = f"run `rookery analyze {name}`"
    broken = any(
        names_gone(survey.table, file)
        for file in survey.table.table.metadata.statistics
        if file.snapshot_id == survey.snapshot.id
    )
    return (
        Sight(
            "spark",
            len(by_spark),
            len(columns),
            by_spark == columns,
            _spark_hint(repair, by_spark == columns, broken),
            broken,
            foreign,
        ),
        Sight(
            "trino",
            len(by_trino),
            len(columns),
            fresh and by_trino.keys() == columns,
            _trino_hint(repair, len(by_trino) == len(columns), fresh),
            foreign=foreign,
        ),
    )


def _top_level(survey: Survey) -> set[int]:
    """The columns that engines look at: those at the top of the table alone."""
    fields = survey.table.fields()
    return {field.id for field in fields if base_type(field.type) in SKETCHED and len(field.parts) == 1}


def _visible(survey: Survey) -> set[int]:
    """The columns that have something to find: a number that is 0 is not registered."""
    thetas = survey.state.thetas if survey.state is not None else {}
    return {number for number in _top_level(survey) if number not in thetas or len(thetas[number].hashes)}


def _spark_hint(repair: str, all_there: bool, broken: bool) -> str | None:
    if broken:
        return f"{repair}; Spark's optimizer fails on statistics of columns that are gone"
    return None if all_there else f"{repair}; Spark takes statistics of the current snapshot only"


def _trino_hint(repair: str, all_there: bool, fresh: bool) -> str | None:
    if all_there and fresh:
        return None
    return f"{repair}; Trino plans with those of an older snapshot" if all_there else repair
