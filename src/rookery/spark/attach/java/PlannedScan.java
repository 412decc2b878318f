import java.lang.reflect.Method;
import java.util.*;
import java.util.concurrent.*;
import org.apache.iceberg.ContentScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.util.Utils;

/** An Iceberg scan, with what Python knows of it. */
class PlannedScan {
  final Scan target;
  final SparkTable table;
  final Attached attached;
  final QueryTraits query;
  final Predicate[] pushed;
  final Schema schema;
  final Conditions conditions;
  final Long snapshot;
  final Map request; // what each request names
  final int files;
  final long bytes;
  Map answer;
  final SkippedTasks byConditions = new SkippedTasks();
  SkippedTasks byKeys = new SkippedTasks(); // of a join, for the last batch of those
  long nanoseconds = 0; // in which Rookery planned
  final ThreadLocal pruned = new ThreadLocal(); // the tasks that the keys of a join leave, for the next batch

  PlannedScan(Scan target, TableHandler handler, Predicate[] pushed) throws Exception {
    this.target = target;
    this.table = handler.target;
    this.attached = handler.attached;
    this.query = handler.query;
    this.pushed = pushed;
    this.schema = (Schema) Reflect.call(target, "schema");
    this.conditions = new Conditions(schema);
    this.snapshot = (Long) Reflect.call(target, "snapshotId");
    long started = System.nanoTime();
    this.request = request();
    Pending pending = ask();
    this.nanoseconds = System.nanoTime() - started;
    List tasks = tasks(); // which Spark needs as well; Python answers meanwhile
    started = System.nanoTime();
    this.files = tasks.size();
    long sum = 0;
    for (int i = 0; i < tasks.size(); i++) {
      sum += ((org.apache.iceberg.ScanTask) tasks.get(i)).sizeBytes();
    }
    this.bytes = sum;
    prune(pending);
    this.nanoseconds += System.nanoTime() - started;
  }

  boolean isUseful() {
    return answer != null && !answer.containsKey("unknown");
  }

  /** Whether its conditions may leave so few rows that their keys can prune the other side of a join. */
  boolean mayBeSelective() {
    return isUseful() ? !Boolean.FALSE.equals(answer.get("selective")) : pushed.length > 0;
  }

  List tasks() throws Exception {
    return (List) Reflect.call(target, "tasks");
  }

  /** Asks what is known of the files; null if nothing can be. */
  Pending ask() throws Exception {
    if (snapshot == null || readsDeletedRows()) {
      return null;
    }
    Map asked = new LinkedHashMap(request);
    asked.put("where", conditions.encoded(pushed));
    asked.put("columns", columns());
    asked.put("costs", Boolean.valueOf(query.byCosts));
    asked.put("joins", Boolean.valueOf(query.hasJoin));
    return attached.asked(asked, query.budget);
  }

  void prune(Pending pending) throws Exception {
    answer = (Map) attached.answered(pending, query.budget);
    if (isUseful()) {
      removeTasks(answer, byConditions);
    }
  }

  /** With `_deleted` rows that are deleted are read as well, which sketches do not describe. */
  boolean readsDeletedRows() throws Exception {
    Schema projection = (Schema) Reflect.call(target, "projection");
    return projection.findField(MetadataColumns.IS_DELETED.fieldId()) != null;
  }

  /**
   * Prunes again, by the keys of a join. Spark asks for a batch next, on the same thread. Only that one is pruned:
   * Spark may use a scan at several places of a plan, which have other keys or none.
   */
  synchronized void filter(Forwarding forwarding, Method filter, Predicate[] keys) throws Throwable {
    List all = tasks();
    try {
      Predicate[] partitions = ofPartitions(keys);
      if (partitions.length > 0) {
        forwarding.forward(target, filter, new Object[] {partitions});
      }
      if (attached.runtime) {
        skipByKeys(keys);
      }
      pruned.set(tasks());
    } finally {
      resetTasks(all);
    }
  }

  void skipByKeys(Predicate[] keys) {
    try {
      Map asked = new LinkedHashMap(request);
      List where = new ArrayList();
      for (int i = 0; i < keys.length; i++) {
        where.add(conditions.ofKeys(keys[i]));
      }
      asked.put("where", where);
      asked.put("runtime", Boolean.TRUE);
      long started = System.nanoTime();
      Map found = (Map) attached.ask(asked, query.budget);
      if (found != null && !found.containsKey("unknown")) {
        SkippedTasks byTheseKeys = new SkippedTasks();
        removeTasks(found, byTheseKeys);
        byKeys = byTheseKeys;
      }
      nanoseconds += System.nanoTime() - started;
    } catch (Throwable error) {
      attached.failed(error);
    }
  }

  /** The batch of the tasks that the keys of a join leave, if it is asked for these; else that of all tasks. */
  synchronized Object batch(Forwarding forwarding, Method toBatch) throws Throwable {
    List remaining = (List) pruned.get();
    if (remaining == null) {
      return forwarding.forward(target, toBatch, null);
    }
    pruned.remove();
    List all = tasks();
    resetTasks(remaining);
    try {
      return forwarding.forward(target, toBatch, null);
    } finally {
      resetTasks(all);
    }
  }

  /**
   * The predicates on columns that Iceberg prunes by. It would evaluate the others too, without effect, and
   * list each of their keys in the plan.
   */
  Predicate[] ofPartitions(Predicate[] keys) {
    Set own = new HashSet();
    NamedReference[] attributes = ((SupportsRuntimeV2Filtering) target).filterAttributes();
    for (int i = 0; i < attributes.length; i++) {
      own.add(Arrays.asList(attributes[i].fieldNames()));
    }
    List forwarded = new ArrayList();
    for (int i = 0; i < keys.length; i++) {
      NamedReference[] references = keys[i].references();
      boolean isOwn = true;
      for (int j = 0; j < references.length; j++) {
        isOwn = isOwn && own.contains(Arrays.asList(references[j].fieldNames()));
      }
      if (isOwn) {
        forwarded.add(keys[i]);
      }
    }
    return (Predicate[]) forwarded.toArray(new Predicate[forwarded.size()]);
  }

  Map request() {
    Table iceberg = table.table();
    Map request = new LinkedHashMap();
    request.put("table", iceberg.name());
    request.put("uuid", String.valueOf(iceberg.uuid()));
    request.put("metadata", TableUtil.metadataFileLocation(iceberg));
    request.put("io", Storage.settings(iceberg));
    request.put("snapshot", snapshot);
    request.put("current_schema", Boolean.valueOf(schema.schemaId() == iceberg.schema().schemaId()));
    return request;
  }

  void resetTasks(List tasks) throws Exception {
    Reflect.method(target.getClass(), "resetTasks", new Class[] {List.class}).invoke(target, new Object[] {tasks});
  }

  void removeTasks(Map found, SkippedTasks skipped) throws Exception {
    Skipped paths = attached.skipped(found, request, query.budget);
    List tasks = tasks();
    if (paths.isEmpty() || tasks.isEmpty()) {
      return;
    }
    List remaining = new ArrayList();
    for (int i = 0; i < tasks.size(); i++) {
      ContentScanTask task = (ContentScanTask) tasks.get(i);
      if (paths.has(task.file().location())) {
        skipped.bytes += task.sizeBytes();
      } else {
        remaining.add(task);
      }
    }
    if (remaining.size() < tasks.size()) {
      resetTasks(remaining);
      skipped.files = tasks.size() - remaining.size();
      skipped.stages = String.valueOf(found.get("by"));
    }
  }

  /** The ids of the columns that are read, without nested ones. */
  List columns() throws Exception {
    Schema projection = (Schema) Reflect.call(target, "projection");
    List ids = new ArrayList();
    List fields = projection.columns();
    for (int i = 0; i < fields.size(); i++) {
      Types.NestedField field = (Types.NestedField) fields.get(i);
      if (field.type().isPrimitiveType()) {
        ids.add(Integer.valueOf(field.fieldId()));
      }
    }
    return ids;
  }

  int filesRead(boolean isByKeys) {
    return files - byConditions.files - (isByKeys ? byKeys.files : 0);
  }

  long bytesRead(boolean isByKeys) {
    return bytes - byConditions.bytes - (isByKeys ? byKeys.bytes : 0);
  }

  /** The stages that skipped files. */
  String stages(boolean isByKeys) {
    if (!isByKeys || byKeys.files == 0) {
      return byConditions.stages;
    }
    return (byConditions.files == 0 ? "" : byConditions.stages + ", ") + byKeys.stages + " (join keys)";
  }

  /** What a node of a plan reads that is pruned by the keys of a join, or not. */
  Map summary(boolean isByKeys) {
    Map summary = new LinkedHashMap();
    summary.put("table", table.name());
    summary.put("snapshot", snapshot);
    summary.put("files", Integer.valueOf(files));
    summary.put("files_read", Integer.valueOf(filesRead(isByKeys)));
    summary.put("bytes", Long.valueOf(bytes));
    summary.put("bytes_read", Long.valueOf(bytesRead(isByKeys)));
    summary.put("by", stages(isByKeys));
    summary.put("ms", Double.valueOf(nanoseconds / 1e6));
    return summary;
  }

  String describe() {
    if (filesRead(true) == files) {
      return "Rookery(all " + files + " files)";
    }
    String size = Utils.bytesToString(bytesRead(true)) + " of " + Utils.bytesToString(bytes);
    return "Rookery(" + filesRead(true) + " of " + files + " files, " + size + ", by " + stages(true) + ")";
  }
}

/** The tasks of a scan that were skipped. */
class SkippedTasks {
  int files = 0;
  long bytes = 0;
  String stages = "";
}
