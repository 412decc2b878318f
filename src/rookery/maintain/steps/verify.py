"""What must be true after a step: the same rows, and no file missing that a snapshot names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rookery.io import shown
from rookery.io.identity import Listing
from rookery.maintain.policies.policy import Verify
from rookery.maintain.steps.deletable import still_absent
from rookery.maintain.steps.listing import list_table
from rookery.maintain.steps.step import Plan, Ran, TableView, VerificationError
from rookery.model import Snapshot, TableName, counted
from rookery.model.table import REPLACE
from rookery.tables import Table
from rookery.tables.java_errors import translate_java_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HASH = "sum(cast(xxhash64(to_json(struct({}))) AS decimal(38, 0)))"


def rewritten(before: TableView, after: TableView) -> list[tuple[int, int]]:
    """Return the sequences of rewrites since a step began: the snapshot before each, and its last.

    Other commits between them may change rows; a rewrite never does.
    """
    base = before.survey.snapshot
    stretches: list[tuple[int, int]] = []
    last: int | None = None
    for snapshot in _since(before, after):
        if snapshot.operation != REPLACE:
            last = None
            continue
        if last is None:
            last = snapshot.id
            stretches.append((snapshot.id, snapshot.id))
        if snapshot.parent_id is not None:
            stretches[-1] = (snapshot.parent_id, last)
    assert base is not None or not stretches
    return [(first, last) for first, last in stretches if first in after.table.snapshots]


def others_came(before: TableView, after: TableView) -> bool:
    """Whether others have committed rows, or set the table to another snapshot, since a step began."""
    base = before.survey.snapshot
    newer = _since(before, after)
    ends = newer[-1].parent_id if newer else (base.id if base is not None else None)
    current = after.survey.snapshot
    moved = not newer and current is not None and base is not None and current.id != base.id
    return (
        moved
        or ends != (base.id if base is not None else None)
        or any(snapshot.operation != REPLACE for snapshot in newer)
    )


def _since(before: TableView, after: TableView) -> list[Snapshot]:
    """The snapshots committed since, the newest first."""
    base, current = before.survey.snapshot, after.survey.snapshot
    if current is None:
        return []
    known = before.table.snapshots
    newer = []
    for snapshot in after.table.ancestors(current):
        if (base is not None and snapshot.id == base.id) or snapshot.id in known:
            break
        newer.append(snapshot)
    return newer


def same_rows(before: TableView, after: TableView) -> tuple[str, ...]:
    """Check that rewrites have changed no row; return notes for the report."""
    stretches = rewritten(before, after)
    spark = before.row_session() if stretches else None
    for first, last in stretches:
        assert spark is not None
        columns = _lasting(after.table, first, last) if before.policy.verify is Verify.ROWS else ()
        counts = [rows_at(spark, before.maintained.name, each, columns) for each in (first, last)]
        if counts[0] != counts[1]:
            raise VerificationError(
                f"the rewrite up to snapshot {last} has changed the rows: {_format_rows(counts[0])} before, "
                f"{_format_rows(counts[1])} after",
                hint=roll_back(before.maintained.name, first),
            )
    return ("others have committed at the same time",) if others_came(before, after) else ()


def _lasting(table: Table, first: int, last: int) -> tuple[str, ...]:
    """The columns that two snapshots share: each is read by the schema that it was written with."""
    sets = []
    for number in (first, last):
        snapshot = table.snapshots.get(number)
        schema = (table.written_schema(snapshot) if snapshot is not None else None) or table.schema()
        sets.append({(column.id, column.name, str(column.type)) for column in schema.columns})
    return tuple(name for _, name, _ in sorted(set.intersection(*sets)))


def as_planned(planned: Plan, ran: Ran, what: str) -> None:
    """Check that Iceberg has rewritten what was planned."""
    if ran.files != planned.files:
        raise VerificationError(
            f"Iceberg rewrote {ran.files:,} {what}; planned were {planned.files:,}",
            hint="the rows are the same; check the snapshot's summary before you continue",
        )


def rows_at(
    spark: SparkSession, name: TableName, snapshot_id: int, columns: Sequence[str]
) -> tuple[int, Any]:
    """Count the rows of a snapshot, and add up a hash of each by some columns, where there are any."""
    try:
        frame = spark.read.option("versionAsOf", snapshot_id).table(str(name))
        if not columns:
            return frame.count(), None
        hashed = _HASH.format(", ".join(f"`{column.replace('`', '``')}`" for column in columns))
        row = frame.selectExpr("count(*) AS n", f"{hashed} AS hash").collect()[0]
        return int(row["n"]), row["hash"]
    except Exception as error:  # Spark and py4j wrap all that Java throws
        raise translate_java_error(error, f"reading snapshot {snapshot_id} of {name}") from error


def _format_rows(rows: tuple[int, Any]) -> str:
    return f"{rows[0]:,} rows" + (f" with the hash {rows[1]}" if rows[1] is not None else "")


def roll_back(name: TableName, snapshot_id: int) -> str:
    """The hint on how to undo a rewrite."""
    inside = ".".join(name.identifier)
    return f"undo it: CALL {name.catalog}.system.rollback_to_snapshot('{inside}', {snapshot_id})"


def nothing_missing(after: TableView, folder: str | None = None) -> Listing:
    """Check that all files that a table names and that belong in a folder, its own or *folder*, are there."""
    table, store = after.table, after.survey.store
    listing = list_table(table.location if folder is None else folder, store)
    lost = still_absent(after.maintained, store, listing, listing.account(after.named.required).absent)
    if lost:
        raise VerificationError(
            f"{counted(len(lost), 'file')} of {table.name} missing, {shown(min(lost))} among them",
            hint="restore them from a backup, or roll back to a snapshot that can be read",
        )
    return listing
