"""Differences between a table's files and those that its statistics describe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.collect.summary import first_of_each
from rookery.maintain.survey import Survey
from rookery.model import Snapshot
from rookery.tables import FILE_SCHEMA, IDENTITY, identities


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between two sets of files, in numbers.

    A file of which only the deletes have changed is neither added nor removed.
    """

    files_added: int = 0
    files_removed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    files_deleted_from: int = 0  # whose deletes have changed
    rows_covered: int = 0  # of live files that the statistics describe
    new_specs: bool = False  # some new file is partitioned in another way than all before


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """The difference between two sets of files: those added and those removed, by identity."""

    fresh: pa.Table
    gone: pa.Table
    rows_covered: int
    specs: frozenset[int]  # of the files before
    deleted_from: int = 0  # files that are neither, though their deletes have changed

    @property
    def rows_gone(self) -> int:
        """The rows of the files that are no longer live, or have other deletes."""
        return int(pc.sum(self.gone["rows"]).as_py() or 0)

    def changes(self) -> Changes:
        """Count it."""
        fresh, gone = self.fresh, self.gone
        same, back = _among(fresh, gone), _among(gone, fresh)
        added, removed = fresh.filter(pc.invert(same)), gone.filter(pc.invert(back))
        return Changes(
            files_added=added.num_rows,
            files_removed=removed.num_rows,
            rows_added=int(pc.sum(added["rows"]).as_py() or 0),
            rows_removed=int(pc.sum(removed["rows"]).as_py() or 0),
            files_deleted_from=int(pc.sum(same).as_py() or 0) + self.deleted_from,
            rows_covered=self.rows_covered,
            new_specs=bool(self.specs) and not set(added["spec_id"].unique().to_pylist()) <= self.specs,
        )


def since_state(survey: Survey) -> Difference:
    """By the state, which lists its files even if their snapshot has expired."""
    assert survey.fileset is not None
    assert survey.state is not None
    known = len(survey.fileset) - survey.fileset.fresh
    fresh = survey.files.slice(known).select(_NOTHING.column_names)
    gone = _gone(survey)
    covered = int(survey.numbers("rows")[:known].sum())
    specs = set(survey.files["spec_id"].slice(0, known).unique().to_pylist()) | set(
        gone["spec_id"].unique().to_pylist()
    )
    return Difference(fresh, gone, covered, frozenset(specs))


def _gone(survey: Survey) -> pa.Table:
    """The state's files that are no longer live, or have other deletes."""
    assert survey.fileset is not None
    assert survey.state is not None
    state, live = survey.state, survey.fileset.live
    lost = np.ones(state.files.num_rows, bool)
    lost[live.carried] = False
    rows = state.files.filter(pa.array(lost))
    segments, ordinals = rows["segment"].to_numpy(), rows["ordinal"].to_numpy()
    parts = [_NOTHING]
    for number in np.unique(segments).tolist():
        with survey.store.open_segment(state.header.segments[number]) as segment:
            used = np.unique(ordinals[segments == number]).astype(np.int64)
            parts.append(segment.files.select(_NOTHING.column_names).take(pa.array(used)))
    described = pa.concat_tables(parts, promote_options="permissive")
    return described.filter(pa.array(first_of_each(identities(described))))  # a file may be in two segments


_NOTHING = FILE_SCHEMA.empty_table().select(list(IDENTITY))


def _among(files: pa.Table, others: pa.Table) -> pa.Array:
    """Which of some files are among others, deletes disregarded."""
    return pc.is_in(identities(files), value_set=identities(others))


def since_snapshot(survey: Survey, then: Snapshot) -> Difference:
    """By file lists: those that both snapshots have need not be read."""
    table = survey.table
    old = [each for each in table.file_lists(then) if each.is_data]
    new = [each for each in survey.file_lists if each.is_data]
    shared = {each.identity for each in old} & {each.identity for each in new}
    before, after = (
        table.read_files([each for each in listed if each.identity not in shared]).select(
            _NOTHING.column_names
        )
        for listed in (old, new)
    )
    fresh = after.filter(pc.invert(_among(after, before)))
    gone = before.filter(pc.invert(_among(before, after)))
    covered = survey.rows - int(pc.sum(fresh["rows"]).as_py() or 0)
    specs = {each.spec_id for each in old}
    return Difference(
        fresh=fresh,
        gone=gone,
        rows_covered=covered,
        specs=frozenset(specs),
        deleted_from=_deleted_from(survey, then),
    )


def _deleted_from(survey: Survey, then: Snapshot) -> int:
    """How many files have other deletes than they had then; where no list of deletes is new, none."""
    table = survey.table
    listed = table.file_lists(then)
    data, deletes = ([each for each in listed if each.is_data is kind] for kind in (True, False))
    now = {each.identity for each in survey.file_lists if not each.is_data}
    if now == {each.identity for each in deletes}:
        return 0
    before = table.read_files(data)
    were = table.attached_deletes(before, table.read_files(deletes))
    at = pc.index_in(identities(survey.files), value_set=identities(before))
    changed = pc.not_equal(pa.array(were, pa.string()).take(at), survey.files["deletes"])
    return int(pc.sum(changed).as_py() or 0)


NO_DIFFERENCE = Difference(_NOTHING, _NOTHING, 0, frozenset())
