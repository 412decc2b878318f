"""Rewriting data files: small and large ones to the target size, without deleted rows, optionally sorted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rookery.maintain.facts.layout import deleted_share
from rookery.maintain.facts.layout import sizes_of as right_sizes
from rookery.maintain.facts.sort_order import partition_codes
from rookery.maintain.policies.policy import Compaction, Policy, Strategy
from rookery.maintain.steps.grouping import rewrite_groups
from rookery.maintain.steps.packing import GROUP_BYTES, PackingSizes, chosen
from rookery.maintain.steps.sort_depth import sort_depth
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView
from rookery.maintain.steps.verify import as_planned, same_rows
from rookery.maintain.survey import Survey
from rookery.model import UsageError, column_named, counted, in_bytes
from rookery.model.names import quote_part
from rookery.spark.procedures import call
from rookery.tables.iceberg import iceberg

NAME = "rewrite data files"
_PARTIAL = "partial-progress."
_MOST_FILES = "max-files-to-rewrite"
# Large rewrites are committed in parts, so that an interrupted run keeps what it has completed.
_BYTES_A_COMMIT, _MOST_COMMITS = 10 << 30, 10


@dataclass(frozen=True, slots=True)
class FilesToCompact:
    """Which files would be rewritten, and why."""

    files: NDArray[np.int64]
    forced: NDArray[np.bool_]  # which of them have too many deleted rows
    everything: bool

    @property
    def too_many_deletes(self) -> int:
        """How many have too many deleted rows."""
        return int(self.forced.sum())


def sizes_of(survey: Survey, policy: Policy) -> PackingSizes:
    """Which sizes are right: by the policy, or by the table."""
    right = right_sizes(survey.table.target_file_size, policy)
    if right.small >= right.target:
        raise UsageError(
            f"all files of {in_bytes(right.target)} would count as small below {in_bytes(right.small)}",
            hint="set compaction.small-size below compaction.target-size",
        )
    return PackingSizes(right.target, right.small, right.large, policy.compaction.min_files)


def choose(survey: Survey, policy: Policy, *, everything: bool = False) -> FilesToCompact:
    """Return which files Iceberg would rewrite."""
    forced = deleted_share(survey) >= policy.compaction.delete_ratio
    groups = rewrite_groups(survey.files, iceberg(survey.table).current_spec_id)
    taken = chosen(survey.numbers("size"), groups, sizes_of(survey, policy), forced, all_files=everything)
    return FilesToCompact(taken, forced[taken], everything)


def plan(view: PlanInput) -> Plan | Idle:
    """Plan which files to rewrite."""
    survey, wanted = view.survey, view.policy.compaction
    if wanted.strategy is Strategy.NONE:
        return Idle("compaction is off in the policy")
    if not survey.files.num_rows:
        return Idle("the table has no files")
    if view.not_rewritable:
        return Idle(view.not_rewritable)
    order = _sort_order(survey, wanted)
    depth = sort_depth(survey, wanted)
    everything = depth is not None and depth > wanted.most_overlap * _groups_of_largest(survey)
    choice = choose(survey, view.policy, everything=everything)
    if not len(choice.files):
        return Idle(_why_idle(survey, view.policy))
    sizes = survey.numbers("size")[choice.files]
    most, left = _within(sizes, view.policy.limits.bytes)
    if not most:
        raise UsageError(
            f"a file of {in_bytes(int(sizes.max()))} is to be rewritten, more than the limit of a run",
            hint=f"raise limits.bytes above {in_bytes(view.policy.limits.bytes)}",
        )
    options = dict(sizes_of(survey, view.policy).options())
    size = int(np.sort(sizes)[::-1][:most].sum())
    options |= {"delete-ratio-threshold": repr(wanted.delete_ratio), f"{_PARTIAL}enabled": "true"}
    options |= {f"{_PARTIAL}max-commits": str(min(size // _BYTES_A_COMMIT + 1, _MOST_COMMITS))}
    options |= {"rewrite-all": "true"} if everything else {}
    options |= {_MOST_FILES: str(most)} if left else {}
    return Plan(
        _why(choice, survey, view.policy, depth, left),
        most,
        size,
        {"options": options, "order": order, "strategy": _STRATEGIES[wanted.strategy], "limited": left > 0},
    )


_STRATEGIES = {Strategy.BIN_PACK: "binpack", Strategy.SORT: "sort", Strategy.Z_ORDER: "sort"}


def _why(choice: FilesToCompact, survey: Survey, policy: Policy, depth: float | None, left: int) -> str:
    if choice.everything:
        why = f"{depth:.1f} files overlap in the sort order"
    else:
        right, sizes = sizes_of(survey, policy), survey.numbers("size")[choice.files]
        sizes = sizes[~choice.forced]
        small, large = int((sizes < right.small).sum()), int((sizes > right.large).sum())
        parts = [counted(small, "small file")] if small else []
        parts += [counted(large, "large file")] if large else []
        if choice.too_many_deletes:
            parts.append(f"{counted(choice.too_many_deletes, 'file')} with too many deleted rows")
        why = "; ".join(parts)
    return why + (f"; the limit leaves {left:,} for the next run" if left else "")


def _why_idle(survey: Survey, policy: Policy) -> str:
    """Why no file is rewritten, by the numbers that `status` shows."""
    right, deleted = sizes_of(survey, policy), float(deleted_share(survey).max())
    small = int((survey.numbers("size") < right.small).sum())
    groups = rewrite_groups(survey.files, iceberg(survey.table).current_spec_id)
    each = " in a partition" if len(np.unique(groups)) > 1 else ""
    reasons = [
        f"{counted(small, 'small file')}, {right.min_files:,} needed{each}" if small else "no small file"
    ]
    if deleted:
        most = policy.compaction.delete_ratio
        reasons.append(f"at most {deleted:.1%} of a file's rows deleted, {most:.0%} needed")
    return "; ".join(reasons)


def _groups_of_largest(survey: Survey) -> int:
    """In how many groups Iceberg rewrites the largest partition; each is sorted separately."""
    weights = np.bincount(partition_codes(survey), survey.numbers("size"))
    return max(1, int(np.ceil(weights.max() / GROUP_BYTES)))


def _within(sizes: NDArray[np.int64], limit: int | None) -> tuple[int, int]:
    """How many files may be rewritten, no matter which Iceberg takes first, and how many are left."""
    if limit is None or int(sizes.sum()) <= limit:
        return len(sizes), 0
    most = int(np.searchsorted(np.cumsum(np.sort(sizes)[::-1]), limit, side="right"))
    return most, len(sizes) - most


def _sort_order(survey: Survey, wanted: Compaction) -> str | None:
    """The order as an argument of the procedure; None for the table's own."""
    if wanted.strategy is Strategy.BIN_PACK:
        return None
    fields = survey.table.fields()
    names = [".".join(map(quote_part, column_named(fields, name).parts)) for name in wanted.columns]
    if wanted.strategy is Strategy.Z_ORDER:
        if not names:
            raise UsageError("z-order needs columns", hint="list them under compaction.columns")
        return f"zorder({', '.join(names)})"
    if not names and not survey.table.sort_order:
        raise UsageError(
            f"{survey.table.name} has no sort order",
            hint="list columns under compaction.columns, or ALTER TABLE … WRITE ORDERED BY",
        )
    return ", ".join(f"{name} ASC NULLS FIRST" for name in names) or None


def run(view: TableView, planned: Plan) -> Ran:
    """Rewrite; files that were not rewritten are tried again in one commit, so that Java reports why.

    With partial progress Iceberg's own commits may conflict, and it only logs failures.
    """
    options = planned.details["options"]
    first = _call(view, planned, options)
    left = planned.files - first["files"]
    if left <= 0:
        return Ran(first["files"], first["bytes"])
    once = {key: value for key, value in options.items() if not key.startswith(_PARTIAL)}
    once |= {_MOST_FILES: str(left)} if planned.details["limited"] else {}
    second = _call(view, planned, once)
    return Ran(
        first["files"] + second["files"],
        first["bytes"] + second["bytes"],
        (f"{counted(second['files'], 'file')} needed a second attempt",) if second["files"] else (),
    )


def _call(view: TableView, planned: Plan, options: Mapping[str, str]) -> dict[str, int]:
    order = planned.details["order"]
    answer = call(
        view.row_session(),
        view.table,
        "rewrite_data_files",
        strategy=planned.details["strategy"],
        **({"sort_order": order} if order else {}),
        options=options,
    )[0]
    return {
        "files": int(answer["rewritten_data_files_count"]),
        "bytes": int(answer["rewritten_bytes_count"] or 0),
    }


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the rows are the same, and the files those that were planned."""
    notes = same_rows(before, after)
    if not notes:
        as_planned(planned, ran, "files")
    return notes


STEP = Step(
    name=NAME, needs=(), measures=("files", "small files", "bytes"), plan=plan, run=run, verify=verify
)
