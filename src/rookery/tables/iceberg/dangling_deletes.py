"""Removing delete files that apply to nothing, in one commit of Iceberg's own.

Iceberg's action of that purpose judges position deletes by partition: it keeps those of a removed file
as long as the partition has older data, and leaves tables without partitions alone. So the caller proves
deletes one by one, and they are only committed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rookery.model import TableName
from rookery.tables.iceberg.jvm import load_java_table
from rookery.tables.java_code import call_compiled
from rookery.tables.java_errors import ConflictError, translate_java_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMOVE = """
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.io.CloseableIterable;
public class RookeryDangling {
  public static int remove(Table table, Collection keys) throws Exception {
    Set wanted = new HashSet(keys);
    RewriteFiles rewrite = table.newRewrite();
    int found = 0;
    for (Object each : table.currentSnapshot().deleteManifests(table.io())) {
      ManifestReader files = ManifestFiles.readDeleteManifest((ManifestFile) each, table.io(), table.specs());
      try {
        for (Object live : files) {
          DeleteFile file = (DeleteFile) ((DeleteFile) live).copy();
          long offset = file.contentOffset() == null ? -1L : file.contentOffset().longValue();
          if (wanted.contains(file.location() + "@" + offset)) {
            rewrite.deleteFile(file);
            found++;
          }
        }
      } finally { files.close(); }
    }
    if (found > 0) rewrite.commit();
    return found;
  }
}
"""


def remove_deletes(
    spark: SparkSession, name: TableName, snapshot_id: int, deletes: Sequence[tuple[str, int]]
) -> int:
    """Remove delete files, by path and offset (-1: none), proved to apply to nothing in a snapshot."""
    table = load_java_table(spark, name)
    if table.currentSnapshot() is None or table.currentSnapshot().snapshotId() != snapshot_id:
        raise ConflictError(f"{name} has changed since its deletes were planned", hint="run it again")
    jvm: Any = spark._jvm
    keys = jvm.java.util.ArrayList()
    for path, offset in deletes:
        keys.add(f"{path}@{offset}")
    try:
        return int(call_compiled(spark, "RookeryDangling", _REMOVE, "remove", table, keys))
    except Exception as error:  # py4j wraps all that Java throws
        raise translate_java_error(error, f"removing deletes of {name}") from error
