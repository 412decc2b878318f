"""Rewriting deletes: position deletes in fewer files, and those that apply to nothing removed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.maintain.facts.layout import LARGE_SHARE, SMALL_SHARE
from rookery.maintain.steps.compact import NAME as COMPACT
from rookery.maintain.steps.grouping import delete_groups
from rookery.maintain.steps.packing import PackingSizes, chosen
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView
from rookery.maintain.steps.verify import as_planned, same_rows
from rookery.maintain.survey import PUFFIN, Survey
from rookery.model import counted
from rookery.spark.procedures import call
from rookery.tables.files import POSITION_DELETES
from rookery.tables.iceberg.dangling_deletes import remove_deletes
from rookery.tables.iceberg.table_properties import number_of

NAME = "rewrite deletes"
TARGET_PROPERTY, TARGET = "write.delete.target-file-size-bytes", 64 << 20


def sizes_of(survey: Survey, min_files: int) -> PackingSizes:
    """Which sizes of position delete files are right."""
    target = number_of(survey.table.properties, TARGET_PROPERTY, TARGET)
    return PackingSizes(target, int(target * SMALL_SHARE), int(target * LARGE_SHARE), min_files)


def scattered(survey: Survey, deletes: pa.Table, min_files: int) -> NDArray[np.int64]:
    """Return the sizes of the position delete files among *deletes* that Iceberg would rewrite."""
    files = deletes.filter(
        pc.and_(pc.equal(deletes["content"], POSITION_DELETES), pc.not_equal(deletes["format"], PUFFIN))
    )
    sizes = np.asarray(files["size"].to_numpy(), np.int64)
    groups = delete_groups(files, survey.table.specs)
    taken = chosen(sizes, groups, sizes_of(survey, min_files))
    return sizes[taken]


def plan(view: PlanInput) -> Plan | Idle:
    """Plan which deletes to remove, and which to rewrite."""
    survey, wanted = view.survey, view.policy.deletes
    if not survey.deletes.num_rows:
        return Idle("there are no deletes")
    if view.not_rewritable:
        return Idle(view.not_rewritable)
    loose = survey.dangling if wanted.dangling else survey.deletes.slice(0, 0)
    keys = _keys(loose)
    gone = set(keys)
    left = survey.deletes.filter(pa.array([key not in gone for key in _keys(survey.deletes)], pa.bool_()))
    small = scattered(survey, left, wanted.min_files)
    why = [f"{counted(len(keys), 'delete')} of no data file that is there"] if keys else []
    why += [f"{counted(len(small), 'small position delete file')}"] if len(small) else []
    if not why:
        files = counted(survey.deletes.num_rows, "delete file")
        return Idle(f"few deletes: {files}, {wanted.min_files:,} small ones needed in a partition")
    size = int(small.sum()) + _size(loose)
    details = {"dangling": tuple(keys), "small": len(small)}
    return Plan("; ".join(why), len(keys) + len(small), size, details)


def _keys(deletes: pa.Table) -> list[tuple[str, int]]:
    offsets = deletes["content_offset"].fill_null(-1).to_pylist()
    return list(zip(deletes["path"].to_pylist(), offsets, strict=True))


def _size(deletes: pa.Table) -> int:
    """Deletion vectors share a file: for each, only its own part counts."""
    own = pc.coalesce(deletes["content_size"], deletes["size"])
    return int(pc.sum(own).as_py() or 0)


def run(view: TableView, planned: Plan) -> Ran:
    """Remove what applies to nothing, then rewrite what is small."""
    spark, name = view.maintained.spark(), view.maintained.name
    removed = rewritten = size = 0
    if planned.details["dangling"]:
        assert view.survey.snapshot is not None
        removed = remove_deletes(spark, name, view.survey.snapshot.id, planned.details["dangling"])
    if planned.details["small"]:
        options = dict(sizes_of(view.survey, view.policy.deletes.min_files).options())
        answer = call(spark, view.table, "rewrite_position_delete_files", options=options)[0]
        rewritten, size = int(answer["rewritten_delete_files_count"]), int(answer["rewritten_bytes_count"])
    return Ran(removed + rewritten, size or planned.bytes, (), {"removed": removed, "rewritten": rewritten})


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the rows are the same, and the files those that were planned."""
    notes = same_rows(before, after)
    if notes or ran.files == planned.files:
        return notes
    if before.survey.table.format_version > 2:
        # There Iceberg converts all old deletes to deletion vectors.
        return (f"Iceberg rewrote {ran.details['rewritten']:,} delete files to deletion vectors",)
    as_planned(planned, ran, "delete files")
    return notes


STEP = Step(name=NAME, needs=(COMPACT,), measures=("delete files",), plan=plan, run=run, verify=verify)
