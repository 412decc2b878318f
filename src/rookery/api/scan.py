"""`scan`: a DataFrame over Iceberg's own reader, of the files that the cascade leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rookery.api.where import Where, bind
from rookery.model import ALWAYS, Predicate, Snapshot, quote_part
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.store import Store
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.jvm import staged_frame
from rookery.where.spelling import spell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 0.5  # of the files' bytes: where more are left, Spark's own scan plans as well


def scan(
    spark: SparkSession,
    table: IcebergTable,
    store: Store,
    where: Where = None,
    columns: Sequence[str] | None = None,
    snapshot: int | None = None,
) -> DataFrame:
    """Return the rows that match; the predicate is applied again by Spark, which has the last word."""
    current = table.at(snapshot)
    predicate = bind(where, table, current, session_zone(spark))
    frame = pruned_frame(spark, table, store, current, snapshot, predicate)
    text = where if isinstance(where, str) else None if where is None else spell(predicate)
    if text is not None:
        frame = frame.where(text)
    return frame if columns is None else frame.select(*(quote_part(name) for name in columns))


def session_zone(spark: SparkSession) -> str:
    """Return the zone in which a session reads local times."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def pruned_frame(
    spark: SparkSession,
    table: IcebergTable,
    store: Store,
    current: Snapshot | None,
    asked: int | None,
    predicate: Predicate,
) -> DataFrame:
    """Return all columns of the rows of the files that may match."""
    reader = spark.read if asked is None else spark.read.option("versionAsOf", asked)
    native = reader.table(str(table.name))
    # Staged files are read with the columns of now.
    other_columns = table.schema(current) != table.schema()
    if current is None or predicate == ALWAYS or other_columns or spark_connect(spark) or reads_aside(spark):
        return native
    pruning = prune(table, current, file_set(table, store, current), predicate)
    return native if pruning.share_left() > MOST else left_frame(spark, pruning, native)


def left_frame(spark: SparkSession, pruning: Pruning, native: DataFrame) -> DataFrame:
    """Return the columns that *native* has, of the files that are left."""
    if not len(pruning.numbers):
        return native.where("false")
    paths = pruning.files.files["path"].take(pruning.numbers).to_pylist()
    staged = staged_frame(spark, pruning.table.name, pruning.snapshot.id, paths)
    if staged is None:
        return native
    # Staged tables show columns of row lineage that the table does not.
    return staged.select(*(quote_part(name) for name in native.columns))


def reads_aside(spark: SparkSession) -> bool:
    """Whether a session reads what it has written and not published, which is no snapshot of main."""
    return any(spark.conf.get(key, None) for key in ("spark.wap.branch", "spark.wap.id"))


def spark_connect(spark: SparkSession) -> bool:
    """Whether a session has no JVM at hand, to which files could be staged."""
    return not hasattr(spark, "_jvm")
