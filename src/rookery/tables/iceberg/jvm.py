"""Iceberg's Java side, through the caller's session: committing statistics, staging files to read."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rookery.model import CatalogError, StorageError, TableName
from rookery.puffin import THETA_V1, WrittenFile
from rookery.tables.secrets import redact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Walking tasks through py4j takes most of a millisecond each; this runs where they are.
_STAGE = """
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkTableCache;
public class RookeryStage {
  public static int stage(Table table, String key, long snapshotId, Collection paths) throws Exception {
    Set wanted = new HashSet(paths);
    List kept = new ArrayList();
    CloseableIterable tasks = ((TableScan) table.newScan().useSnapshot(snapshotId)).planFiles();
    try {
      for (Object found : tasks) {
        FileScanTask task = (FileScanTask) found;
        if (wanted.contains(((DataFile) task.file()).location())) kept.add(task);
      }
    } finally { tasks.close(); }
    if (!kept.isEmpty()) {
      SparkTableCache.get().add(key, table);
      ScanTaskSetManager.get().stageTasks(table, key, kept);
    }
    return kept.size();
  }
  public static void unstage(Table table, String key) {
    ScanTaskSetManager.get().removeTasks(table, key);
    SparkTableCache.get().remove(key);
  }
  static final java.lang.ref.Cleaner CLEANER = java.lang.ref.Cleaner.create();
  static class Unstage implements Runnable {
    final Table table;
    final String key;
    Unstage(Table table, String key) { this.table = table; this.key = key; }
    public void run() { unstage(table, key); }
  }
  public static void unstageAfter(Object holder, Table table, String key) {
    CLEANER.register(holder, new Unstage(table, key));
  }
}
"""
_compiled: dict[tuple[int, str], dict[str, Any]] = {}  # methods, by JVM and class


_ATTEMPTS = 12  # each of which Java tries several times again, as the table's properties say
_LONGEST_PAUSE = 2.0


def load_java_table(spark: SparkSession, name: TableName) -> Any:
    """Return Java's table of that name, as it is now."""
    jvm: Any = spark._jvm
    try:
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, str(name))
        table.refresh()
    except Exception as error:  # py4j wraps whatever Java throws
        raise CatalogError(
            f"Spark cannot load {name}: {java_reason(error)}",
            hint="check that the session knows the catalog by that name, and that the table is still there",
        ) from error
    return table


def java_reason(error: BaseException) -> str:
    """Say in one line what Java complains of: the innermost cause, which is the most telling."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if thrown is None:
        return redact((str(error).splitlines() or [type(error).__name__])[0])
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    message = str(thrown.getMessage() or "").splitlines() or [""]
    return redact(f"{thrown.getClass().getSimpleName()}: {message[0]}".removesuffix(": "))


def register_statistics(spark: SparkSession, name: TableName, snapshot_id: int, written: WrittenFile) -> None:
    """Make a statistics file that of a snapshot, in one commit that is tried again on conflict.

    Only theta blobs are registered: PyIceberg refuses tables that register a type it does not know.
    """
    jvm: Any = spark._jvm
    # Each dot in the name of a class is a question to the JVM: asked once here, not once a blob.
    new_list, new_map = jvm.java.util.ArrayList, jvm.java.util.HashMap
    new_blob = jvm.org.apache.iceberg.GenericBlobMetadata
    blobs = new_list()
    for blob in written.metadata.blobs:
        if blob.type == THETA_V1:
            fields, properties = new_list(), new_map()
            for field_id in blob.fields:
                fields.add(field_id)
            for key, value in blob.properties.items():
                properties.put(key, value)
            blobs.add(new_blob(blob.type, blob.snapshot_id, blob.sequence_number, fields, properties))
    file = jvm.org.apache.iceberg.GenericStatisticsFile(
        snapshot_id, written.location, written.size, written.footer_size, blobs
    )
    for attempt in range(_ATTEMPTS):
        table = load_java_table(spark, name)
        if table.snapshot(snapshot_id) is None:  # Java would register them all the same
            raise CatalogError(
                f"snapshot {snapshot_id} of {name} has expired under the run", hint="run analyze again"
            )
        try:
            table.updateStatistics().setStatistics(file).commit()
        except Exception as error:  # py4j wraps whatever Java throws
            if _is_conflict(error) and attempt + 1 < _ATTEMPTS:
                # Others commit faster than Java tries; statistics are in nobody's way and can wait.
                pause = min(0.05 * 2**attempt, _LONGEST_PAUSE)
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311
                continue
            raise CatalogError(
                f"the statistics of {name} could not be registered: {java_reason(error)}",
                hint="what was collected is kept; run analyze again",
            ) from error
        return


def _is_conflict(error: Exception) -> bool:
    thrown = getattr(error, "java_exception", None)
    return thrown is not None and thrown.getClass().getSimpleName() == "CommitFailedException"


@contextmanager
def staged(
    spark: SparkSession, name: TableName, snapshot_id: int, paths: Sequence[str]
) -> Iterator[DataFrame | None]:
    """Give a DataFrame over exactly these data files, deletes applied by Iceberg's own reader."""
    table = load_java_table(spark, name)
    if _has_another_schema(table, snapshot_id):
        # Staged files are read with the table's current schema; only time travel brings back the old one.
        frame = spark.read.option("versionAsOf", snapshot_id).table(str(name))
        yield frame.where(frame["_file"].isin(list(paths)))
        return
    key = _stage(spark, table, snapshot_id, paths)
    if key is None:
        yield None
        return
    try:
        yield spark.read.format("iceberg").load(key)
    finally:
        _call(spark, "unstage", table, key)


def staged_frame(
    spark: SparkSession, name: TableName, snapshot_id: int, paths: Sequence[str]
) -> DataFrame | None:
    """Return a DataFrame over exactly these data files, for whoever to keep; None if there are none.

    The files stay staged as long as some plan refers to them. None too where the snapshot has other columns
    than the table has now: staged files are read with the current ones.
    """
    table = load_java_table(spark, name)
    if _has_another_schema(table, snapshot_id):
        return None
    key = _stage(spark, table, snapshot_id, paths)
    if key is None:
        return None
    frame = spark.read.format("iceberg").load(key)
    # What is derived from the frame shares this object with it, and nothing else does.
    holder = frame._jdf.queryExecution().analyzed().collectLeaves().head().table()
    _call(spark, "unstageAfter", holder, table, key)
    return frame


def _stage(spark: SparkSession, table: Any, snapshot_id: int, paths: Sequence[str]) -> str | None:
    jvm: Any = spark._jvm
    wanted = jvm.java.util.ArrayList()
    for path in paths:
        wanted.add(path)
    key = f"rookery-{uuid.uuid4().hex}"
    staged_tasks = _call(spark, "stage", table, key, snapshot_id, wanted)
    return key if staged_tasks else None  # Iceberg refuses to stage nothing


def _has_another_schema(table: Any, snapshot_id: int) -> bool:
    """Whether the columns of an old snapshot are not those of now."""
    if table.currentSnapshot() is not None and table.currentSnapshot().snapshotId() == snapshot_id:
        return False
    snapshot = table.snapshot(snapshot_id)
    return snapshot is not None and snapshot.schemaId() not in (None, table.schema().schemaId())


def _call(spark: SparkSession, name: str, *arguments: Any) -> Any:
    try:
        return call_compiled(spark, "RookeryStage", _STAGE, name, *arguments)
    except Exception as error:  # py4j wraps whatever Java throws
        raise StorageError(
            f"Iceberg cannot plan what is to be read: {java_reason(error)}",
            hint="has the table been dropped, or the snapshot expired, under the run?",
        ) from error


def call_compiled(spark: SparkSession, class_name: str, source: str, name: str, *arguments: Any) -> Any:
    """Call a static method of a class compiled where it runs; py4j cannot name it, so by reflection."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    key = (id(gateway), class_name)
    if key not in _compiled:  # once a JVM, with the compiler that Spark brings
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source)
        found = compiler.getClassLoader().loadClass(class_name)
        _compiled[key] = {method.getName(): method for method in found.getDeclaredMethods()}
    packed = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for position, argument in enumerate(arguments):
        packed[position] = argument
    return _compiled[key][name].invoke(None, packed)
