"""Iceberg's Java side, through the caller's session: committing statistics, staging files to read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rookery.model import CatalogError, RookeryError, StorageError, TableName
from rookery.puffin import THETA_V1, BlobMetadata, WrittenFile
from rookery.tables.iceberg import commit
from rookery.tables.java_code import call_compiled
from rookery.tables.java_errors import failure_hint, java_reason, refused_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Walking tasks through py4j takes most of a millisecond each; this runs where they are.
#
# A staged relation has a table that is in no catalog and whose metadata never changes: all scans of it see
# one snapshot, and Spark has nothing to reload. Iceberg's staged scan looks its tasks up by a key when it
# is planned, which may be long after it was made, so the tasks must be kept as long as a plan that can still
# be run. Plans are copied, cached and stored in views; what all copies share is Iceberg's table: each staged
# relation has one of its own, and the tasks are removed with it.
_READ = """
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.source.SparkRewriteTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.TableCatalog;
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
  public static class Shown extends BaseTable {
    final Schema schema;
    Shown(Table table, Schema schema) {
      super(new Pinned(table), table.name());
      this.schema = schema;
    }
    public Schema schema() { return schema; }
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
  static Table refreshed(SparkSession session, String name) throws Exception {
    Table table = Spark3Util.loadIcebergTable(session, name);
    table.refresh();
    return table;
  }
  public static Object load(Object session, String name) throws Exception {
    // Spark loads a catalog by the settings of the thread's active session.
    scala.Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession((SparkSession) session);
    try {
      return refreshed((SparkSession) session, name);
    } catch (IllegalStateException replaced) {  // the catalog has cached another table, which had this name
      Spark3Util.CatalogAndIdentifier found = Spark3Util.catalogAndIdentifier((SparkSession) session, name);
      ((TableCatalog) found.catalog()).invalidateTable(found.identifier());
      return refreshed((SparkSession) session, name);
    } finally {
      if (before.isDefined()) SparkSession.setActiveSession((SparkSession) before.get());
      else SparkSession.clearActiveSession();
    }
  }
  public static Object pin(Table table) { return new BaseTable(new Pinned(table), table.name()); }
  public static Object hasVariant(Table table) {  // or files that have one of a column that is gone
    for (Object schema : table.schemas().values())
      for (Object field : TypeUtil.indexById(((Schema) schema).asStruct()).values())
        if (((Types.NestedField) field).type().isVariantType()) return Boolean.TRUE;
    return Boolean.FALSE;
  }
  public static Object whole(Table pinned) { return new SparkTable(pinned); }
  public static Object staged(Table table, String key, long snapshotId, int schemaId, Collection paths,
      Collection only) throws Exception {
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
    Schema schema = (Schema) table.schemas().get(schemaId);
    if (only != null) schema = TypeUtil.select(schema, new HashSet(only));
    Table holder = new Shown(table, schema);
    ScanTaskSetManager.get().stageTasks(table, key, tasks);
    CLEANER.register(holder, new Unstage(table, key));
    return new Staged(holder, key);
  }
}
"""


def load_java_table(spark: SparkSession, name: TableName) -> Any:
    """Return Java's table of that name, as it is now."""
    try:
        with refused_types(name):
            return call_compiled(spark, "RookeryRead", _READ, "load", spark._jsparkSession, str(name))
    except RookeryError:
        raise
    except Exception as error:  # py4j wraps all that Java throws
        reason = java_reason(error)
        raise CatalogError(f"Spark cannot load {name}: {reason}", hint=failure_hint(reason)) from error


def register_statistics(
    spark: SparkSession,
    name: TableName,
    snapshot_id: int,
    written: WrittenFile,
    is_named: Callable[[BlobMetadata], bool] = lambda blob: blob.type == THETA_V1,
) -> None:
    """Register a statistics file for a snapshot, in one commit that is retried on conflict.

    The table's metadata names theta blobs, or those that *is_named* picks: PyIceberg refuses tables that name
    a type it does not know.
    """
    jvm: Any = spark._jvm
    # Each dot in a class name is a call to the JVM: made once here, not once per blob.
    new_list, new_map = jvm.java.util.ArrayList, jvm.java.util.HashMap
    new_blob = jvm.org.apache.iceberg.GenericBlobMetadata
    blobs = new_list()
    for blob in written.metadata.blobs:
        if is_named(blob):
            fields, properties = new_list(), new_map()
            for field_id in blob.fields:
                fields.add(field_id)
            for key, value in blob.properties.items():
                properties.put(key, value)
            blobs.add(new_blob(blob.type, blob.snapshot_id, blob.sequence_number, fields, properties))
    file = jvm.org.apache.iceberg.GenericStatisticsFile(
        snapshot_id, written.location, written.size, written.footer_size, blobs
    )
    for attempt in commit.commit_attempts():  # in each of which Java tries several times itself
        table = load_java_table(spark, name)
        if table.snapshot(snapshot_id) is None:
            raise commit.expired(name, snapshot_id)
        try:
            table.updateStatistics().setStatistics(file).commit()
        except Exception as error:  # py4j wraps all that Java throws
            if not _is_conflict(error) or attempt == commit.ATTEMPTS:
                raise commit.not_registered(name, java_reason(error)) from error
        else:
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
    version: str | None  # the metadata file

    def frame(self) -> DataFrame:
        """Return all rows of the current snapshot."""
        frame: DataFrame = self._frame("whole", self.java)
        return frame

    def staged(
        self, snapshot_id: int, paths: Sequence[str], only: Sequence[int] | None = None
    ) -> DataFrame | None:
        """Return a DataFrame over exactly these data files of a snapshot; None if none are given.

        They have the columns of the snapshot, or the leaf columns *only*, by id, for a table with others that
        Spark cannot read. They stay staged as long as anything references them: the DataFrame, those derived
        from it, a cached plan, a temporary view.
        """
        key = f"rookery-{uuid.uuid4().hex}"
        shown = None if only is None else self._list(only)
        frame: DataFrame | None = self._frame(
            "staged", self.java, key, snapshot_id, self._schema_id(snapshot_id), self._list(paths), shown
        )
        return frame

    def _schema_id(self, snapshot_id: int) -> int:
        """The current columns for the current snapshot, which may be older than they are."""
        now = self.java.currentSnapshot()
        snapshot = self.java.snapshot(snapshot_id)
        is_old = snapshot is not None and now is not None and now.snapshotId() != snapshot_id
        schema_id = snapshot.schemaId() if is_old else None
        return int(self.java.schema().schemaId() if schema_id is None else schema_id)

    def _list(self, values: Sequence[object]) -> Any:
        java_list = self.spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for value in values:
            java_list.add(value)
        return java_list

    def _frame(self, method: str, *arguments: Any) -> Any:
        session: Any = self.spark._jsparkSession
        jvm: Any = self.spark._jvm
        try:
            with refused_types(self.name):
                relation = call_compiled(self.spark, "RookeryRead", _READ, method, *arguments)
                by_row = call_compiled(self.spark, "RookeryRead", _READ, "hasVariant", self.java)
        except RookeryError:
            raise
        except Exception as error:  # py4j wraps all that Java throws
            reason = java_reason(error)
            raise StorageError(
                f"Iceberg cannot plan the files to read: {reason}", hint=failure_hint(reason)
            ) from error
        if relation is None:  # Iceberg refuses to stage no files
            return None
        # With a catalog but no name in it, Spark finds Iceberg's functions and loads no other table.
        catalog = jvm.scala.Option.apply(session.sessionState().catalogManager().catalog(self.name.catalog))
        # Iceberg's vectorized reader fails on files with a variant, even for other columns.
        options = jvm.java.util.HashMap()
        if by_row:
            options.put("vectorization-enabled", "false")
        nothing = jvm.scala.Option.empty()
        plan = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation.create(
            relation,
            catalog,
            nothing,
            jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options),
            nothing,
        )
        return self.spark.read._df(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan))


def pinned_table(spark: SparkSession, name: TableName) -> PinnedTable:
    """Load a table as it is now, not as Spark's catalog has cached it."""
    table = load_java_table(spark, name)
    jvm: Any = spark._jvm
    try:
        pinned = call_compiled(spark, "RookeryRead", _READ, "pin", table)
        location = jvm.org.apache.iceberg.TableUtil.metadataFileLocation(pinned)
    except Exception as error:  # py4j wraps all that Java throws
        raise CatalogError(
            f"Spark cannot read {name}: {java_reason(error)}",
            hint="read a table, not one of its metadata tables",
        ) from error
    return PinnedTable(
        spark=spark, name=name, java=pinned, uuid=str(pinned.uuid().toString()), version=location
    )
