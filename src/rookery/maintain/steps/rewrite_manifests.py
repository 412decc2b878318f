"""Rewriting manifests: many small ones to few of the target size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rookery.maintain.steps.compact import NAME as COMPACT
from rookery.maintain.steps.rewrite_deletes import NAME as DELETES
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView
from rookery.maintain.steps.verify import as_planned, same_rows
from rookery.model import counted, in_bytes
from rookery.spark.procedures import call
from rookery.tables import FileList

NAME = "rewrite manifests"


def plan(view: PlanInput) -> Plan | Idle:
    """Plan which manifests to rewrite; Iceberg takes all of a partition spec together."""
    if view.not_rewritable:
        return Idle(view.not_rewritable)
    most = view.policy.manifests.most_small
    target = view.survey.table.target_list_size
    by_spec: defaultdict[int, list[FileList]] = defaultdict(list)
    for manifest in view.survey.file_lists:
        by_spec[manifest.spec_id].append(manifest)
    small = {spec: sum(each.size < target / 2 for each in manifests) for spec, manifests in by_spec.items()}
    specs = [spec for spec in sorted(by_spec) if small[spec] > most and _taken(by_spec[spec], target)]
    if not specs:
        return Idle(f"{counted(sum(small.values()), 'small manifest')}, limit {most:,}")
    taken = [manifest for spec in specs for manifest in _taken(by_spec[spec], target)]
    count = sum(small[spec] for spec in specs)
    return Plan(
        f"{counted(count, 'manifest')} below half of {in_bytes(target)}, limit {most:,}",
        len(taken),
        sum(manifest.size for manifest in taken),
        {"specs": tuple(specs)},
    )


def _taken(manifests: Sequence[FileList], target: int) -> list[FileList]:
    """The manifests that Iceberg would rewrite: of data, of deletes, or of both."""
    chosen: list[FileList] = []
    for is_data in (True, False):
        same_kind = [manifest for manifest in manifests if manifest.is_data is is_data]
        if len(same_kind) > 1 or sum(manifest.size for manifest in same_kind) > target:
            chosen += same_kind
    return chosen


def run(view: TableView, planned: Plan) -> Ran:
    """Rewrite the manifests, one partition spec after the other."""
    answers: list[Mapping[str, int]] = []
    for spec in planned.details["specs"]:
        answers += call(view.maintained.spark(), view.table, "rewrite_manifests", spec_id=spec)
    return Ran(sum(int(answer["rewritten_manifests_count"]) for answer in answers), planned.bytes)


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the rows are the same, and the manifests those that were planned."""
    notes = same_rows(before, after)
    if not notes:
        as_planned(planned, ran, "manifests")
    return notes


STEP = Step(name=NAME, needs=(COMPACT, DELETES), measures=("manifests",), plan=plan, run=run, verify=verify)
