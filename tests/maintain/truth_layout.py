"""How a table lies, worked out by other means than `status` has: loops over files and their deletes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rookery.maintain.policies.policy import Policy
from tests.maintain.seen import EQUALITY, POSITION, File, Seen

KINDS = ("deletion vectors", "position deletes", "equality deletes")


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


def attached(
    files: Sequence[File], deletes: Sequence[File], unpartitioned: set[int]
) -> dict[str, list[File]]:
    """For each data file the deletes that apply to it."""
    vectors = {each.target: each for each in deletes if each.format == "PUFFIN" and each.target}
    return {
        file.path: [each for each in deletes if applies(each, file, unpartitioned, vectors)] for file in files
    }


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
        "delete_heavy_files": worn,
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
