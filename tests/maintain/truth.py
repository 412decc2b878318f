"""What `status` has to say of a table, worked out by other means: sets, loops and plain arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.maintain.policy import Policy
from tests.maintain.seen import EQUALITY, POSITION, Commit, File, Kept, Seen, Witness, columns_of

COUNTS = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")
TOUCHED = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
ORDER = (
    "ingest", "compaction", "deletes", "schema change", "partition evolution", "foreign statistics",
    "expired snapshot", "rollback",
)  # fmt: skip
KINDS = ("deletion vectors", "position deletes", "equality deletes")


@dataclass(frozen=True)
class Base:
    """The statistics that there are."""

    snapshot: int
    state: Kept | None  # none: another's
    stated: Mapping[int, int] | None  # what is registered for that snapshot


# -- deletes


def applies(delete: File, data: File, unpartitioned: set[int], vectors: Mapping[str, File]) -> bool:
    """Whether a delete file is to be applied to a data file, after the specification."""
    if delete.content == EQUALITY:
        return data.sequence < delete.sequence and (
            delete.spec in unpartitioned or delete.place == data.place
        )
    if data.sequence > delete.sequence or (delete.format != "PUFFIN" and data.path in vectors):
        return False  # a vector holds all that other position deletes say of its file
    return delete.target == data.path if delete.target is not None else delete.place == data.place


def unpartitioned_of(metadata: Mapping[str, Any]) -> set[int]:
    """The specs that have no fields."""
    return {spec["spec-id"] for spec in metadata["partition-specs"] if not spec["fields"]}


def attached(files: Sequence[File], deletes: Sequence[File], unpartitioned: set[int]) -> dict[str, list[File]]:
    """For each data file the deletes that apply to it."""
    vectors = {each.target: each for each in deletes if each.format == "PUFFIN" and each.target}
    return {
        file.path: [each for each in deletes if applies(each, file, unpartitioned, vectors)] for file in files
    }


# -- layout


def layout(seen: Seen, policy: Policy) -> dict[str, Any]:
    """How the table lies."""
    files, deletes = seen.files, seen.deletes
    properties = seen.metadata.get("properties", {})
    target = policy.compaction.target_size or int(properties.get("write.target-file-size-bytes", 512 << 20))
    small_below = policy.compaction.small_size
    small_below = int(target * 0.75) if small_below is None else small_below
    small = [file for file in files if file.size < small_below]
    large = [file for file in files if file.size > int(target * 1.8)]
    counts = Counter(file.place for file in files)
    weights: Counter[Any] = Counter()
    for file in files:
        weights[file.place] += file.size
    crowds = Counter(file.place for file in small)
    applied = attached(files, deletes, unpartitioned_of(seen.metadata))
    used = {delete.key for rows in applied.values() for delete in rows}
    worn = 0
    for file in files:
        hidden = sum(delete.rows for delete in applied[file.path] if delete.target)
        worn += min(hidden / max(file.rows, 1), 1) >= policy.compaction.delete_ratio
    manifest_target = int(properties.get("commit.manifest.target-size-bytes", 8 << 20))
    size = sum(file.size for file in files)
    return {
        "files": len(files),
        "bytes": size,
        "rows": sum(file.rows for file in files),
        "target_size": target,
        "small_files": len(small),
        "right_files": len(files) - len(small) - len(large),
        "large_files": len(large),
        "partitions": len(counts),
        "files_per_partition": len(files) / len(counts) if counts else 0.0,
        "files_in_largest": max(counts.values(), default=0),
        "skew": max(weights.values()) * len(weights) / size if size else 1.0,
        "crowded_files": sum(n for n in crowds.values() if n >= max(policy.compaction.min_files, 2)),
        "worn_files": worn,
        "data_manifests": sum(content == 0 for content, _ in seen.manifests),
        "delete_manifests": sum(content == 1 for content, _ in seen.manifests),
        "manifest_bytes": sum(length for _, length in seen.manifests),
        "small_manifests": sum(length < manifest_target / 2 for _, length in seen.manifests),
        "snapshots": len(seen.commits),
        "branches": sum(ref.type == "BRANCH" for ref in seen.refs),
        "tags": sum(ref.type == "TAG" for ref in seen.refs),
        "oldest_ms": min((commit.time for commit in seen.commits.values()), default=None),
        "newest_ms": seen.current.time if seen.current else None,
        "deletes": _deletes(files, deletes),
        "dangling_deletes": sum(delete.key not in used for delete in deletes),
        "sort": _sort(seen),
    }


def _deletes(files: Sequence[File], deletes: Sequence[File]) -> list[dict[str, Any]]:
    found = []
    rows = sum(file.rows for file in files)
    for kind in KINDS:
        mine = [each for each in deletes if _kind(each) == kind]
        if mine:
            count = sum(each.rows for each in mine)
            size = sum(each.content_size if each.format == "PUFFIN" else each.size for each in mine)
            share = count / rows if rows else 0.0
            found.append({"kind": kind, "files": len(mine), "bytes": size, "rows": count, "share": share})
    return found


def _kind(delete: File) -> str:
    if delete.content == POSITION:
        return KINDS[0] if delete.format == "PUFFIN" else KINDS[1]
    return KINDS[2]


def _sort(seen: Seen) -> dict[str, Any] | None:
    """The declared order, and by brute force how many files of a partition hold what each begins with."""
    number = seen.metadata["default-sort-order-id"]
    (order,) = [each for each in seen.metadata["sort-orders"] if each["order-id"] == number]
    if not order["fields"]:
        return None
    terms = [(seen.columns[each["source-id"]][0], each) for each in order["fields"]]
    text = ", ".join(
        f"{name if each['transform'] == 'identity' else each['transform'] + f'({name})'} "
        f"{each['direction'].upper()} {each['null-order'].replace('-', ' ').upper()}"
        for name, each in terms
    )
    column, leading = terms[0]
    if leading["transform"].startswith("bucket"):
        return {"order": text, "column": None, "depth": None, "depth_most": None, "files": 0}
    known = [file for file in seen.files if None not in file.bounds.get(column, (None, None))]
    depths = [
        sum(
            other.place == file.place
            and other.bounds[column][0] <= file.bounds[column][0] <= other.bounds[column][1]
            for other in known
        )
        for file in known
    ]
    return {
        "order": text,
        "column": column,
        "depth": sum(depths) / len(depths) if depths else None,
        "depth_most": max(depths, default=None),
        "files": len(depths),
    }


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
    """The statistics nearest to the current snapshot, ours before others'; else the newest anywhere."""
    stated = {snapshot: found for snapshot, found in seen.statistics.items() if found}
    best = best_state(seen)
    ours = best if best is not None and best.thetas else None
    for commit in seen.line:
        if ours is not None and ours.snapshot == commit.id:
            return Base(commit.id, ours, stated.get(commit.id))
        if commit.id in stated:
            return Base(commit.id, None, stated[commit.id])
    if ours is not None:
        return Base(ours.snapshot, ours, stated.get(ours.snapshot))
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


def _causes(
    seen: Seen, base: Base, since: Sequence[Commit], witness: Witness, new_specs: bool
) -> set[str]:
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
    if base.state is not None:
        before = witness.schemas[base.state.name]
    else:
        schema = seen.commits[base.snapshot].schema
        assert schema is not None
        before = columns_of(seen.metadata, schema)
    return any(before.get(number, ("", ""))[1] != kind for number, (_, kind) in seen.columns.items())


def _is_foreign(seen: Seen, base: Base) -> bool:
    if base.state is None:
        return True
    then = seen.commits.get(base.snapshot)
    if base.stated is None or then is None:
        return False
    current = seen.current is not None and then.id == seen.current.id
    present = seen.columns if current or then.schema is None else columns_of(seen.metadata, then.schema)
    mine = {number: int(ndv) for number, ndv in base.state.thetas.items() if number in present}
    return any(base.stated.get(number) != ndv for number, ndv in mine.items())


# -- who sees what, and what lies beside


def spark_sees(seen: Seen) -> set[int]:
    """The columns whose distinct values are stated for the current snapshot."""
    return set(seen.statistics.get(seen.current.id, {})) & seen.columns.keys() if seen.current else set()


def trino_sees(seen: Seen) -> dict[int, int]:
    """The columns of which an ancestor's statistics tell, and which: the nearest."""
    found: dict[int, int] = {}
    for commit in reversed(seen.line):
        found |= dict.fromkeys(seen.statistics.get(commit.id, {}), commit.id)
    return {number: snapshot for number, snapshot in found.items() if number in seen.columns}


def sights(seen: Seen) -> list[dict[str, Any]]:
    """What engines find; hints are not judged."""
    if seen.current is None:
        return []
    columns, spark, trino = seen.columns.keys(), spark_sees(seen), trino_sees(seen)
    now = trino.keys() == columns and set(trino.values()) <= {seen.current.id}
    return [
        {"engine": "spark", "columns": len(spark), "of": len(columns), "current": spark == columns},
        {"engine": "trino", "columns": len(trino), "of": len(columns), "current": now},
    ]


def beside(seen: Seen, snapshots_of: Mapping[str, set[int]]) -> dict[str, int]:
    """What lies beside the data, by listing folders; *snapshots_of* is what each statistics file is of."""
    entries = seen.metadata.get("statistics", [])
    partitions = seen.metadata.get("partition-statistics", [])
    named = {"/" + each["statistics-path"].removeprefix("file:").lstrip("/") for each in (*entries, *partitions)}
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
    loose = {commit.id for commit in seen.commits.values() if commit.id not in reached and commit.time >= oldest}
    return len(seen.commits.keys() - kept - loose)
