"""Iceberg's Java side, through the caller's session: committing statistics, staging files to read."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rookery.model import CatalogError, StorageError, TableName
from rookery.puffin import THETA_V1, WrittenFile
from rookery.tables.secrets import redact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Walking tasks through py4j takes most of a millisecond each; this runs where they are.
#
# A relation of ours has a table that is in no catalog and whose metadata never changes: all scans of it see
# one snapshot, and Spark has nothing to load anew. Iceberg's staged scan looks its tasks up by a key when it
# is planned, which may be long after it was made, so the tasks must live as long as any plan that can still
# be run. Plans are copied, cached and stored in views; what all copies share is Iceberg's table: each staged
# relation has one of its own, and the tasks go when it does.
_READ = """
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.source.SparkRewriteTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.StructType;
public class RookeryRead {
  static final java.lang.ref.Cleaner CLEANER = java.lang.ref.Cleaner.create();
  public static class Pinned implements TableOperations {
    final TableOperations operations;
    final TableMetadata metadata;
    Pinned(Table table) {
      this.operations = ((HasTableOperations) table).operations();
      this.metadata = operations.current();
    }
    public TableMetadata current() { return metadata; }
    public TableMetadata refresh() { return metadata; }
    public void commit(TableMetadata base, TableMetadata changed) {
      throw new UnsupportedOperationException("a pinned table is only read");
    }
    public FileIO io() { return operations.io(); }
    public EncryptionManager encryption() { return operations.encryption(); }
    public String metadataFileLocation(String name) { return operations.metadataFileLocation(name); }
    public LocationProvider locationProvider() { return operations.locationProvider(); }
    public TableOperations temp(TableMetadata changed) { return operations.temp(changed); }
    public long newSnapshotId() { return operations.newSnapshotId(); }
    public boolean requireStrictCleanup() { return operations.requireStrictCleanup(); }
  }
  public static class Staged extends SparkRewriteTable {  // which shows row lineage as plain columns
    final SparkTable plain;
    public Staged(Table table, String key) {
      super(table, key);
      this.plain = new SparkTable(table);
    }
    public StructType schema() { return plain.schema(); }
    public Column[] columns() { return plain.columns(); }
    public MetadataColumn[] metadataColumns() { return plain.metadataColumns(); }
  }
  static class Unstage implements Runnable {
    final Table table;
    final String key;
    Unstage(Table table, String key) { this.table = table; this.key = key; }
    public void run() { ScanTaskSetManager.get().removeTasks(table, key); }
  }
  public static Object pin(Table table) { return new BaseTable(new Pinned(table), table.name()); }
  public static Object whole(Table pinned) { return new SparkTable(pinned); }
  public static Object staged(Table table, String key, long snapshotId, Collection paths) throws Exception {
    if (paths.isEmpty()) return null;
    Set missing = new HashSet(paths);
    Set wanted = new HashSet(paths);
    List tasks = new ArrayList();
    CloseableIterable planned = ((TableScan) table.newScan().useSnapshot(snapshotId)).planFiles();
    try {
      for (Object each : planned) {
        FileScanTask task = (FileScanTask) each;
        String path = ((DataFile) task.file()).location();
        if (wanted.contains(path)) tasks.add(task);
        missing.remove(path);
      }
    } finally { planned.close(); }
    if (!missing.isEmpty()) throw new IllegalStateException("snapshot lacks " + missing.iterator().next());
    Table holder = new BaseTable(new Pinned(table), table.name());
    ScanTaskSetManager.get().stageTasks(table, key, tasks);
    CLEANER.register(holder, new Unstage(table, key));
    return new Staged(holder, key);
  }
}
"""
_compiled: dict[tuple[int, str], dict[str, Any]] = {}  # methods, by JVM and class


_NO_CLASSES = re.compile(r"No FileSystem for scheme|ClassNotFound|NoClassDefFound|Cannot find constructor")
_GONE = re.compile(r"^(?!NoSuchBucket).*(no such file|not exist|NotFound|NoSuch|Cannot find snapshot)", re.I)
_ATTEMPTS = 12  # each of which Java tries several times again, as the table's properties say
_LONGEST_PAUSE = 2.0


def load_java_table(spark: SparkSession, name: TableName) -> Any:
    """Return Java's table of that name, as it is now."""
    jvm: Any = spark._jvm
    try:
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, str(name))
        table.refresh()
    except Exception as error:  # py4j wraps whatever Java throws
        reason = java_reason(error)
        raise CatalogError(f"Spark cannot load {name}: {reason}", hint=failure_hint(reason)) from error
    return table


def failure_hint(reason: str) -> str:
    """Say what to check, by what Java or a Python worker complains of."""
    if _NO_CLASSES.search(reason):
        return "the session lacks Iceberg's bundle for that store: `rookery doctor` names it, for --packages"
    if _GONE.search(reason):
        return "has the table been dropped, the snapshot expired, or a file deleted, under the run?"
    return "check that the session knows the catalog by that name, and that catalog and store are reachable"


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


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """Java's table with the metadata that it had when it was loaded, to be read by Spark."""

    spark: SparkSession
    name: TableName
    java: Any
    uuid: str
    metadata_location: str | None

    def frame(self) -> DataFrame:
        """Return all rows of the current snapshot."""
        frame: DataFrame = self._frame("whole", self.java)
        return frame

    def staged(self, snapshot_id: int, paths: Sequence[str]) -> DataFrame | None:
        """Return a DataFrame over exactly these data files of a snapshot; None if none are given.

        They are read with the table's current columns, and stay staged as long as anything refers to them:
        the DataFrame, what is derived from it, a cached plan, a temporary view.
        """
        jvm: Any = self.spark._jvm
        wanted = jvm.java.util.ArrayList()
        for path in paths:
            wanted.add(path)
        key = f"rookery-{uuid.uuid4().hex}"
        frame: DataFrame | None = self._frame("staged", self.java, key, snapshot_id, wanted)
        return frame

    def _frame(self, method: str, *arguments: Any) -> Any:
        session: Any = self.spark._jsparkSession
        jvm: Any = self.spark._jvm
        try:
            relation = call_compiled(self.spark, "RookeryRead", _READ, method, *arguments)
        except Exception as error:  # py4j wraps whatever Java throws
            reason = java_reason(error)
            raise StorageError(
                f"Iceberg cannot plan what is to be read: {reason}", hint=failure_hint(reason)
            ) from error
        if relation is None:  # Iceberg refuses to stage nothing
            return None
        # With a catalog but no name in it, Spark finds Iceberg's functions and loads no other table.
        catalog = jvm.scala.Option.apply(session.sessionState().catalogManager().catalog(self.name.catalog))
        plan = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation.create(
            relation, catalog, jvm.scala.Option.empty()
        )
        return self.spark.read._df(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan))


def pinned_table(spark: SparkSession, name: TableName) -> PinnedTable:
    """Load a table as it is now, whatever Spark's catalog remembers of it."""
    table = load_java_table(spark, name)
    jvm: Any = spark._jvm
    try:
        pinned = call_compiled(spark, "RookeryRead", _READ, "pin", table)
        location = jvm.org.apache.iceberg.TableUtil.metadataFileLocation(pinned)
    except Exception as error:  # py4j wraps whatever Java throws
        raise CatalogError(
            f"Spark cannot read {name}: {java_reason(error)}",
            hint="read a table, not one of its metadata tables",
        ) from error
    return PinnedTable(spark, name, pinned, str(pinned.uuid().toString()), location)


@contextmanager
def staged(
    spark: SparkSession, name: TableName, snapshot_id: int, paths: Sequence[str]
) -> Iterator[DataFrame | None]:
    """Give a DataFrame over exactly these data files, deletes applied by Iceberg's own reader."""
    pinned = pinned_table(spark, name)
    if _has_another_schema(pinned.java, snapshot_id):
        # Staged files are read with the table's current schema; only time travel brings back the old one.
        frame = spark.read.option("versionAsOf", snapshot_id).table(str(name))
        yield frame.where(frame["_file"].isin(list(paths)))
    else:
        yield pinned.staged(snapshot_id, paths)


def _has_another_schema(table: Any, snapshot_id: int) -> bool:
    """Whether the columns of an old snapshot are not those of now."""
    if table.currentSnapshot() is not None and table.currentSnapshot().snapshotId() == snapshot_id:
        return False
    snapshot = table.snapshot(snapshot_id)
    return snapshot is not None and snapshot.schemaId() not in (None, table.schema().schemaId())


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
