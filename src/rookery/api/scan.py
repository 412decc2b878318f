"""`scan`: a DataFrame over Iceberg's own reader, of the files that the cascade leaves."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rookery.api.lake import Lake
from rookery.api.session import prunes, session_zone
from rookery.api.where import Where, bind
from rookery.model import ALWAYS, Predicate, Snapshot, TableName, quote_part
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.sidecar import Store
from rookery.spark.live import check_session, has_jvm
from rookery.tables import EngineTable, Table
from rookery.tables.java_errors import NotLoadableError, OtherTableError, refused_types, translated
from rookery.where.to_sql import spell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_MOST = 0.5  # of the files' bytes: where more are left, Spark's own scan is as good
_ATTEMPTS = 3  # to load a table for Python and for Java between two commits of others


def scan(
    spark: SparkSession,
    lake: Lake,
    name: TableName,
    where: Where = None,
    columns: Sequence[str] | None = None,
    snapshot: int | None = None,
) -> DataFrame:
    """Return the rows that match; Spark applies the predicate again."""
    check_session(spark)
    table, store, pinned = _open_in_both(spark, lake, name)
    current = table.at(snapshot)
    text = where if isinstance(where, str) else None
    prunable = pinned is not None and prunes(spark, text or "")
    # In a session with unknown settings, only Spark can interpret a text.
    known = text is None or prunable
    predicate = bind(where, table, current, session_zone(spark)) if known else ALWAYS
    has_columns_of_now = current is not None and table.schema(current) == table.schema()
    with translated(f"scan of {name}"), refused_types(name):
        if pinned is None or not prunable or current is None or not has_columns_of_now:
            frame = _by_spark(spark, table, snapshot)
        elif (pruning := _pruning(table, store, current, predicate)) is not None:
            frame = _left_frame(pruning, pinned)
        else:
            frame = pinned.frame() if snapshot is None else _by_spark(spark, table, snapshot)
    if where is not None:
        frame = frame.where(spell(predicate) if text is None else text)
    return frame if columns is None else frame.select(*(quote_part(name) for name in columns))


def _pruning(table: Table, store: Store, current: Snapshot, predicate: Predicate) -> Pruning | None:
    """Return what is left of a snapshot, or None if that is most of it."""
    if predicate == ALWAYS:
        return None
    pruning = prune(table, current, file_set(table, store, current), predicate)
    return pruning if pruning.share_left() <= _MOST else None


def _open_in_both(
    spark: SparkSession, lake: Lake, name: TableName
) -> tuple[Table, Store, EngineTable | None]:
    """Load a table as it is now, for Python and for Spark; None where Spark's catalog has other metadata."""
    if not has_jvm(spark):
        return *lake.open(name), None
    for _ in range(_ATTEMPTS):
        table, store = lake.open(name)
        if table.not_loadable is not None:
            raise NotLoadableError(name, table.not_loadable)
        pinned = table.for_engine(spark)
        if pinned.uuid != table.uuid:
            raise OtherTableError(name)
        if pinned.version == table.version:
            return table, store, pinned
    log.warning("%s is not pruned: Spark's catalog has other metadata of it", name)
    return table, store, None


def _by_spark(spark: SparkSession, table: Table, snapshot_id: int | None) -> DataFrame:
    """Return all rows as Spark reads them: of the given snapshot, of its branch, or the newest ones."""
    if not has_jvm(spark):
        spark.catalog.refreshTable(str(table.name))
    else:
        table.check_loadable(spark)  # refreshes the cache of Spark's catalog
    reader = spark.read if snapshot_id is None else spark.read.option("versionAsOf", snapshot_id)
    return reader.table(str(table.name))


def _left_frame(pruning: Pruning, pinned: EngineTable) -> DataFrame:
    """Return the rows of the files that are left."""
    paths = pruning.files.files["path"].take(pruning.numbers).to_pylist()
    staged = pinned.staged(pruning.snapshot.id, paths)
    return pinned.frame().where("false") if staged is None else staged
