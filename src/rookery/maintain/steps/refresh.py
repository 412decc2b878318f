"""Refreshing statistics and indexes: when the policy requires it, and after files were rewritten."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.collect.choose import Choice, selects
from rookery.collect.column_sets import column_set_fields
from rookery.collect.declared_statistics import distributions
from rookery.collect.readable import unreadable
from rookery.indexes import kind_for
from rookery.indexes.declare import declare
from rookery.maintain.facts.reasons import reasons
from rookery.maintain.policies.policy import WantedIndex
from rookery.maintain.steps.compact import NAME as COMPACT
from rookery.maintain.steps.rewrite_deletes import NAME as DELETES
from rookery.maintain.steps.rewrite_manifests import NAME as MANIFESTS
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView, VerificationError
from rookery.maintain.survey import Survey
from rookery.model import UsageError, column_named, counted
from rookery.model.type_names import SKETCHED, base_type
from rookery.sidecar.statistics_file import is_registered
from rookery.tables.java_errors import ConflictError

NAME = "refresh statistics"
REWRITES = (COMPACT, DELETES, MANIFESTS)


def choice_of(view: PlanInput) -> Choice:
    """The columns that the policy selects; all, if its queries name none of the table's."""
    wanted, table = view.policy.statistics, view.survey.table
    if not wanted.queries:
        return Choice(wanted.columns)
    from rookery.maintain.policies.queried import queried_columns  # brings sqlglot

    return Choice(queried_columns(wanted.queries, table.name, table.fields()))


def plan(view: PlanInput) -> Plan | Idle:
    """Plan whether to refresh statistics, why, and how much to read."""
    survey = view.survey
    if survey.snapshot is None or not survey.files.num_rows:
        return Idle("the table has no rows")
    missing = tuple(missing_indexes(view))
    why = list(_why(view, missing))
    if not why:
        return Idle("statistics and indexes are within the policy")
    fresh = _unread(survey)
    return Plan(
        "; ".join(why),
        fresh[0],
        fresh[1],
        {"indexes": tuple((each.kind, each.column) for each in missing), "snapshot": survey.snapshot.id},
    )


def _why(view: PlanInput, missing: tuple[WantedIndex, ...]) -> Iterator[str]:
    survey = view.survey
    yield from reasons(view.age, view.engine_visibility, view.policy)
    rewritten = [step for step in REWRITES if step in view.done]
    if rewritten and view.policy.statistics.after_compaction:
        yield "files were rewritten by this run"
    if missing:
        yield f"{counted(len(missing), 'index', 'indexes')} missing"
    elif _indexes_behind(survey, view.policy.statistics.health):
        yield "indexes do not cover all files"
    if survey.state is not None and (lacking := _columns_lacking(view)):
        yield f"{counted(lacking, 'column')} not collected yet"
    if lacking := _statistics_lacking(survey):
        yield f"{counted(lacking, 'declared statistic')} not collected yet"


def _columns_lacking(view: PlanInput) -> int:
    """How many of the columns that the policy names are not collected."""
    survey, names = view.survey, choice_of(view).columns
    assert survey.state is not None
    known = survey.state.header.types
    columns = [each for each in survey.table.fields() if any(selects(name, each) for name in names)]
    return sum(each.id not in known and base_type(each.type) in SKETCHED for each in columns)


def _statistics_lacking(survey: Survey) -> int:
    """How many histograms, frequent values and column sets are declared and not collected.

    Where Spark cannot read all columns, some of them may never be; those are no reason to try again.
    """
    if survey.state is None or survey.snapshot is None or unreadable(survey.table, survey.snapshot):
        return 0
    fields, header = survey.table.fields(), survey.state.header
    wanted, rows = distributions(survey.declared, fields), header.rows
    lacking = {
        ("histogram", each.id) for each in wanted.histogram if rows is None or each.id not in rows.histogram
    }
    lacking |= {("top-k", each.id) for each in wanted.top_k if rows is None or each.id not in rows.top_k}
    sets = column_set_fields(survey.declared.column_sets, fields)
    return len(lacking) + sum(each.id not in header.types for each in sets)


def missing_indexes(view: PlanInput) -> Iterator[WantedIndex]:
    """Yield the indexes of the policy that are not declared."""
    if not view.policy.indexes:
        return
    fields = view.survey.table.fields()
    there = {(index.kind, index.field_id) for index in view.survey.declared.indexes}
    for wanted in view.policy.indexes:
        if (wanted.kind, column_named(fields, wanted.column).id) not in there:
            yield wanted


def _indexes_behind(survey: Survey, health: float) -> bool:
    """Whether an index lacks a file that statistics describe, or more rows than statistics may lack."""
    if survey.fileset is None or survey.state is None:
        return False
    fields = {field.id: field for field in survey.table.fields()}
    known = len(survey.fileset) - survey.fileset.fresh
    covered = [
        survey.fileset.covered(each)
        for each in survey.declared.indexes
        if each.field_id in fields and kind_for(each, fields[each.field_id]) is not None
    ]
    rows = survey.numbers("rows")
    return any(mask.sum() < known or rows[mask].sum() < health * rows.sum() for mask in covered)


def _unread(survey: Survey) -> tuple[int, int]:
    """The files that no state describes, and their bytes."""
    assert survey.fileset is not None
    known = len(survey.fileset) - survey.fileset.fresh
    return survey.fileset.fresh, int(survey.numbers("size")[known:].sum())


def run(view: TableView, planned: Plan) -> Ran:
    """Declare what is missing, then collect."""
    from rookery.collect.analyze import analyze  # brings numba, which plans do without

    table, store = view.survey.table, view.survey.store
    notes = []
    for kind, column in planned.details["indexes"]:
        try:
            declare(table, store, kind, column)
        except UsageError as error:  # for example too many values for its kind: the rest is still useful
            notes.append(f"no {kind} index on {column}: {error}")
    maintained = view.maintained
    outcome = analyze(
        maintained.spark,
        table,
        store,
        choice_of(view),
        engine=maintained.engine,
        progress=maintained.progress,
    )
    return Ran(outcome.files_to_read, outcome.bytes_to_read, tuple(notes))


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the statistics of the analyzed snapshot are registered, with Rookery's numbers."""
    table = after.survey.table
    snapshot = table.snapshots.get(planned.details["snapshot"])
    if snapshot is None:
        return ("the snapshot has expired since",)
    if after.survey.snapshot is not None and after.survey.snapshot.id != snapshot.id:
        return ("others have committed at the same time",)
    state = after.survey.state
    if state is None or not is_registered(table, snapshot, state):
        if table.schema().id != before.survey.table.schema().id:
            raise ConflictError(f"the schema of {table.name} has changed meanwhile", hint="run it again")
        raise VerificationError(
            f"the statistics of snapshot {snapshot.id} are not registered",
            hint="`rookery analyze` tries again",
        )
    return ()


STEP = Step(name=NAME, needs=(), measures=(), plan=plan, run=run, verify=verify, any_format=True)
