"""What `status` has to say of a table, worked out by other means: sets, loops and plain arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.maintain.policies.policy import Policy
from tests.maintain.seen import Commit, Kept, Seen, Witness, columns_of
from tests.maintain.truth_layout import attached, unpartitioned_of

COUNTS = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")
TOUCHED = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
ORDER = (
    "ingest", "compaction", "deletes", "schema change", "partition evolution", "foreign statistics",
    "expired snapshot", "rollback",
)  # fmt: skip


@dataclass(frozen=True)
class Base:
    """The statistics that there are."""

    snapshot: int
    state: Kept | None  # none: another's
    stated: Mapping[int, int] | None  # what is registered for that snapshot


# -- statistics


def best_state(seen: Seen) -> Kept | None:
    """The state of the nearest ancestor; else the newest."""
    ranks = {commit.id: number for number, commit in enumerate(seen.line)}
    by_age = sorted(seen.states, key=lambda state: (state.sequence, state.name[-39:]))
    return min(reversed(by_age), key=lambda state: ranks.get(state.snapshot, len(ranks)), default=None)


def base_is_off(seen: Seen, base: Base | None) -> bool:
    """Whether the statistics are of no ancestor."""
    return base is not None and base.snapshot not in {commit.id for commit in seen.line}


def as_they_were(seen: Seen, snapshot: int, witness: Witness) -> set[str]:
    """The live files that were there at a snapshot, with the same deletes."""
    before = witness.held[snapshot]
    unpartitioned = unpartitioned_of(seen.metadata)
    then = attached(list(before.values()), witness.deletes[snapshot], unpartitioned)
    now = attached(seen.files, seen.deletes, unpartitioned)
    return {
        path
        for path in now.keys() & before.keys()
        if {each.key for each in then[path]} == {each.key for each in now[path]}
    }


def base_of(seen: Seen) -> Base | None:
    """Our statistics if there are any; else the nearest to the current snapshot, else the newest anywhere."""
    stated = {snapshot: found for snapshot, found in seen.statistics.items() if found}
    best = best_state(seen)
    if best is not None and best.thetas:
        return Base(best.snapshot, best, stated.get(best.snapshot))
    for commit in seen.line:
        if commit.id in stated:
            return Base(commit.id, None, stated[commit.id])
    elsewhere = [snapshot for snapshot in stated if snapshot in seen.commits]
    newest = max(elsewhere, key=lambda snapshot: seen.commits[snapshot].time, default=None)
    return None if newest is None else Base(newest, None, stated[newest])


def since_of(seen: Seen, base: Base, witness: Witness) -> list[Commit]:
    """The snapshots after that of the statistics; all that are younger, if it is not among the ancestors."""
    found = []
    for commit in seen.line:
        if commit.id == base.snapshot:
            return found
        found.append(commit)
    return [each for each in found if (each.sequence, each.time) > _moment(seen, base, witness)]


def _moment(seen: Seen, base: Base, witness: Witness) -> tuple[int, int]:
    number = base.state.sequence if base.state else seen.commits[base.snapshot].sequence
    return number, witness.times[base.snapshot]


def changed_rows(since: Sequence[Commit]) -> int:
    """How many rows snapshots say that they have changed."""
    total = 0
    for commit in since:
        if commit.operation != "replace":
            said = Counter(commit.summary)
            positions = said["added-position-deletes"] - said["removed-position-deletes"]
            taken = said["deleted-records"] + max(positions, 0) + said["added-equality-deletes"]
            total += max(said["added-records"], taken)
    return total


def staleness(seen: Seen, witness: Witness) -> dict[str, Any]:
    """The age of the statistics."""
    base = base_of(seen)
    rows = sum(file.rows for file in seen.files)
    nothing = dict.fromkeys(
        ("files_added", "files_removed", "rows_added", "rows_removed", "files_deleted_from", "rows_covered"),
        0,
    ) | {"new_specs": False}
    if base is None:
        return {
            "freshness": "never", "ours": False, "snapshot_id": None, "snapshots_behind": None,
            "changes": nothing, "changed_rows": rows, "rows": rows, "health": 0.0 if rows else 1.0,
            "covered": 0.0, "causes": [],
        }  # fmt: skip
    since = since_of(seen, base, witness)
    on_line = base.snapshot in {commit.id for commit in seen.line}
    changes = _changes(seen, base, witness)
    causes = _causes(seen, base, since, witness, changes["new_specs"])
    changed = changed_rows(since) if on_line else max(changes["rows_added"], changes["rows_removed"])
    fresh = not since and on_line and "schema change" not in causes
    return {
        "freshness": "current" if fresh else "stale",
        "ours": base.state is not None,
        "snapshot_id": base.snapshot,
        "snapshots_behind": len(since) if on_line or "expired snapshot" in causes else None,
        "changes": changes,
        "changed_rows": changed,
        "rows": rows,
        "health": 1.0 if not changed else max(0.0, 1 - changed / rows) if rows else 0.0,
        "covered": changes["rows_covered"] / rows if rows else 1.0,
        "causes": [cause for cause in ORDER if cause in causes],
    }


def _changes(seen: Seen, base: Base, witness: Witness) -> dict[str, Any]:
    """The difference of two sets of files by their paths."""
    before, now = witness.held[base.snapshot], {file.path: file for file in seen.files}
    added, removed = now.keys() - before.keys(), before.keys() - now.keys()
    touched = (now.keys() & before.keys()) - as_they_were(seen, base.snapshot, witness)
    unseen = added | touched if base.state else added
    specs = {file.spec for file in before.values()}
    return {
        "files_added": len(added),
        "files_removed": len(removed),
        "rows_added": sum(now[path].rows for path in added),
        "rows_removed": sum(before[path].rows for path in removed),
        "files_deleted_from": len(touched),
        "rows_covered": sum(file.rows for path, file in now.items() if path not in unseen),
        "new_specs": bool(specs) and not {now[path].spec for path in added} <= specs,
    }


def _causes(seen: Seen, base: Base, since: Sequence[Commit], witness: Witness, new_specs: bool) -> set[str]:
    found = set()
    for commit in since:
        said = Counter(commit.summary)
        if commit.operation == "replace":
            found |= {"compaction"} if any(said[key] for key in TOUCHED) else set()
            continue
        if said["added-records"] or commit.operation == "append":
            found.add("ingest")
        if any(said[key] for key in COUNTS[1:]) or commit.operation == "delete":
            found.add("deletes")
    if base_is_off(seen, base):
        found.add("expired snapshot" if _below(seen, base, witness) else "rollback")
    if new_specs:
        found.add("partition evolution")
    if _schema_changed(seen, base, witness):
        found.add("schema change")
    if _is_foreign(seen, base):
        found.add("foreign statistics")
    return found


def _below(seen: Seen, base: Base, witness: Witness) -> bool:
    """Whether the line of ancestors is cut, and the statistics are older than all that is left of it."""
    if not seen.line or seen.line[-1].parent is None:
        return False
    oldest = seen.line[-1]
    return _moment(seen, base, witness) < (oldest.sequence, oldest.time)


def _schema_changed(seen: Seen, base: Base, witness: Witness) -> bool:
    """Whether there are columns that are younger, or whose type is; if they were asked for."""
    if base.state is None:
        schema = seen.commits[base.snapshot].schema
        assert schema is not None
        before = columns_of(seen.metadata, schema)
        return any(before.get(number, ("", ""))[1] != kind for number, (_, kind) in seen.columns.items())
    before = witness.schemas[base.state.name]
    return any(
        number not in before or (number in base.state.collected and before[number][1] != kind)
        for number, (_, kind) in seen.columns.items()
    )


def _is_foreign(seen: Seen, base: Base) -> bool:
    return base.state is None or of_others(seen) or _is_others(seen, base.state, base.snapshot)


def of_others(seen: Seen) -> bool:
    """Whether what is registered for the current snapshot is not ours."""
    return seen.current is not None and _is_others(seen, best_state(seen), seen.current.id)


def _is_others(seen: Seen, state: Kept | None, snapshot: int) -> bool:
    stated, then = seen.statistics.get(snapshot), seen.commits.get(snapshot)
    if not stated or then is None:
        return False
    if state is None or state.snapshot != snapshot:
        return True
    current = seen.current is not None and then.id == seen.current.id
    present = seen.columns if current or then.schema is None else columns_of(seen.metadata, then.schema)
    mine = {number: int(ndv) for number, ndv in state.thetas.items() if number in present}
    return any(stated.get(number) != (ndv or None) for number, ndv in mine.items())


# -- who sees what, and what lies beside


def spark_sees(seen: Seen) -> dict[int, int]:
    """The columns that the current snapshot's statistics tell of, and the snapshots they were counted at."""
    return _known(seen, seen.line[:1])


def trino_sees(seen: Seen) -> dict[int, int]:
    """The same of the statistics of the nearest ancestor that has any."""
    return _known(seen, [commit for commit in seen.line if commit.id in seen.statistics][:1])


def _known(seen: Seen, commits: Sequence[Commit]) -> dict[int, int]:
    ids = {commit.id for commit in commits}
    blobs = [
        blob
        for file in seen.metadata.get("statistics", [])
        for blob in file["blob-metadata"]
        if file["snapshot-id"] in ids and "ndv" in blob.get("properties", {})
    ]
    return {blob["fields"][0]: blob["snapshot-id"] for blob in blobs if blob["fields"][0] in seen.columns}


def engine_visibility(seen: Seen) -> list[dict[str, Any]]:
    """What engines find; hints are not judged."""
    if seen.current is None:
        return []
    spark, trino, best = spark_sees(seen), trino_sees(seen), best_state(seen)
    empty = {number for number, ndv in best.thetas.items() if not ndv} if best is not None else set()
    columns = (seen.columns.keys() - empty) | trino.keys()
    gone = bool(
        seen.statistics.get(seen.current.id, {}).keys() - seen.columns.keys()
    )  # on which the optimizer fails
    found = [("spark", spark, gone), ("trino", trino, False)]
    return [
        {
            "engine": engine,
            "columns": len(each),
            "of": len(columns),
            "current": each == dict.fromkeys(columns, seen.current.id),
            "broken": broken,
            "foreign": of_others(seen),
        }
        for engine, each, broken in found
    ]


def beside(seen: Seen, snapshots_of: Mapping[str, set[int]]) -> dict[str, int]:
    """What lies beside the data, by listing folders; *snapshots_of* is what each statistics file is of."""
    entries = seen.metadata.get("statistics", [])
    partitions = seen.metadata.get("partition-statistics", [])
    named = {
        "/" + each["statistics-path"].removeprefix("file:").lstrip("/") for each in (*entries, *partitions)
    }
    left = {path: size for path, size in seen.beside.items() if path not in named}
    replaced = [path for path in left if snapshots_of[path] and snapshots_of[path] <= seen.commits.keys()]
    orphaned = [path for path in left if path not in replaced]
    return {
        "statistics_files": len(entries),
        "statistics_bytes": sum(each["file-size-in-bytes"] for each in entries),
        "replaced_files": len(replaced),
        "replaced_bytes": sum(left[path] for path in replaced),
        "orphaned_files": len(orphaned),
        "orphaned_bytes": sum(left[path] for path in orphaned),
        "states": len(seen.state_sizes),
        "state_bytes": sum(seen.state_sizes),
        "segments": len(seen.segments),
        "segment_bytes": sum(seen.segments),
    }


def expirable(seen: Seen, policy: Policy, now_ms: int) -> int:
    """How many snapshots are too old, and kept by no branch, no tag and no count."""
    assert policy.snapshots.keep_for is not None
    oldest = now_ms - int(policy.snapshots.keep_for.total_seconds() * 1000)
    kept, reached = set(), set()
    for ref in seen.refs:
        kept.add(ref.snapshot_id)
        reached.add(ref.snapshot_id)
        commit, walked, keeping = seen.commits.get(ref.snapshot_id), 0, ref.type == "BRANCH"
        while commit is not None and ref.type == "BRANCH":
            reached.add(commit.id)
            keeping = keeping and (walked < policy.snapshots.keep_last or commit.time >= oldest)
            kept |= {commit.id} if keeping else set()
            walked += 1
            commit = seen.commits.get(commit.parent) if commit.parent is not None else None
    loose = {
        commit.id for commit in seen.commits.values() if commit.id not in reached and commit.time >= oldest
    }
    return len(seen.commits.keys() - kept - loose)
