import java.util.*;
import java.util.concurrent.*;
import org.apache.iceberg.ContentScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.AlwaysFalse;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.util.Utils;
import org.apache.spark.unsafe.types.UTF8String;

/** An Iceberg scan, with what Python knows of it. */
class PlannedScan {
  static final int MOST_KEYS = 100000; // of a join; beyond them only their range is used

  final Scan target;
  final SparkTable table;
  final Attached attached;
  final QueryTraits query;
  final Predicate[] pushed;
  final Schema schema;
  final Long snapshot;
  final int files;
  final long bytes;
  Map answer;
  String skipped = "";
  int filesSkipped = 0;
  long bytesSkipped = 0;
  long nanoseconds = 0; // in which Rookery planned

  PlannedScan(Scan target, TableHandler handler, Predicate[] pushed) throws Exception {
    this.target = target;
    this.table = handler.target;
    this.attached = handler.attached;
    this.query = handler.query;
    this.pushed = pushed;
    this.schema = (Schema) Reflect.call(target, "schema");
    this.snapshot = (Long) Reflect.call(target, "snapshotId");
    List tasks = tasks(); // which Spark needs as well
    long started = System.nanoTime();
    this.files = tasks.size();
    long sum = 0;
    for (int i = 0; i < tasks.size(); i++) {
      sum += ((org.apache.iceberg.ScanTask) tasks.get(i)).sizeBytes();
    }
    this.bytes = sum;
    this.nanoseconds = System.nanoTime() - started;
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

  void prune() throws Exception {
    if (snapshot == null || files == 0 || readsDeletedRows()) {
      return;
    }
    Map request = request();
    request.put("where", encoded(pushed));
    request.put("columns", columns());
    request.put("costs", Boolean.valueOf(query.byCosts));
    request.put("joins", Boolean.valueOf(query.hasJoin));
    long started = System.nanoTime();
    answer = (Map) attached.ask(request, query.budget);
    if (isUseful()) {
      removeTasks(answer, request);
    }
    nanoseconds += System.nanoTime() - started;
  }

  /** With `_deleted` rows that are deleted are read as well, which sketches do not describe. */
  boolean readsDeletedRows() throws Exception {
    Schema projection = (Schema) Reflect.call(target, "projection");
    return projection.findField(MetadataColumns.IS_DELETED.fieldId()) != null;
  }

  /** Prunes again, by the keys of a join. */
  void filter(Predicate[] keys) throws Exception {
    Map request = request();
    List where = new ArrayList();
    for (int i = 0; i < keys.length; i++) {
      where.add(keys[i].children().length > MOST_KEYS ? range(keys[i]) : encode(keys[i]));
    }
    request.put("where", where);
    request.put("runtime", Boolean.TRUE);
    long started = System.nanoTime();
    Map found = (Map) attached.ask(request, query.budget);
    if (found != null && !found.containsKey("unknown")) {
      removeTasks(found, request);
    }
    nanoseconds += System.nanoTime() - started;
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
    request.put("io", new HashMap(iceberg.io().properties()));
    request.put("snapshot", snapshot);
    request.put("current_schema", Boolean.valueOf(schema.schemaId() == iceberg.schema().schemaId()));
    request.put("bytes", Long.valueOf(bytes));
    return request;
  }

  void removeTasks(Map found, Map request) throws Exception {
    Skipped paths = attached.skipped(found, request, query.budget);
    List tasks = tasks();
    if (paths.isEmpty() || tasks.isEmpty()) {
      return;
    }
    List remaining = new ArrayList();
    for (int i = 0; i < tasks.size(); i++) {
      ContentScanTask task = (ContentScanTask) tasks.get(i);
      if (paths.has(task.file().location())) {
        bytesSkipped += task.sizeBytes();
      } else {
        remaining.add(task);
      }
    }
    if (remaining.size() < tasks.size()) {
      Reflect.method(target.getClass(), "resetTasks", new Class[] {List.class}).invoke(target, new Object[] {remaining});
      filesSkipped += tasks.size() - remaining.size();
      String stages = found.get("by") + (request.containsKey("runtime") ? " (join keys)" : "");
      skipped = skipped.isEmpty() ? stages : skipped + ", " + stages;
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

  List encoded(Predicate[] predicates) {
    List all = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      all.add(encode(predicates[i]));
    }
    return all;
  }

  Object encode(Object expression) {
    Map node = new LinkedHashMap();
    if (expression instanceof AlwaysTrue || expression instanceof AlwaysFalse) {
      node.put("op", expression instanceof AlwaysTrue ? "ALWAYS_TRUE" : "ALWAYS_FALSE");
      return node;
    }
    if (expression instanceof NamedReference) {
      Integer id = fieldId(((NamedReference) expression).fieldNames());
      if (id != null) {
        node.put("column", id);
        return node;
      }
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      Object value = jsonValue(literal.value());
      if (value != null || literal.value() == null) {
        node.put("type", literal.dataType().catalogString());
        node.put("value", value);
        return node;
      }
    } else if (expression instanceof GeneralScalarExpression) {
      GeneralScalarExpression general = (GeneralScalarExpression) expression;
      List children = new ArrayList();
      Expression[] parts = general.children();
      boolean isIn = general.name().equals("IN");
      for (int i = 0; i < (isIn ? 1 : parts.length); i++) {
        children.add(encode(parts[i]));
      }
      node.put("op", general.name());
      node.put("of", children);
      if (!isIn || putValues(parts, node)) {
        return node;
      }
      node.clear();
      node.put("opaque", "IN");
      return node;
    }
    node.put("opaque", String.valueOf(expression));
    return node;
  }

  /** Adds the values of a list, which may be long; false if they are not literals of one type. */
  static boolean putValues(Expression[] parts, Map node) {
    if (parts.length > MOST_KEYS) {
      return false;
    }
    List values = new ArrayList(parts.length);
    DataType type = null;
    for (int i = 1; i < parts.length; i++) {
      if (!(parts[i] instanceof Literal)) {
        return false;
      }
      Literal literal = (Literal) parts[i];
      Object value = jsonValue(literal.value());
      if (value == null && literal.value() != null || type != null && !type.equals(literal.dataType())) {
        return false;
      }
      type = literal.dataType();
      values.add(value);
    }
    if (type == null) {
      return false;
    }
    node.put("type", type.catalogString());
    node.put("values", values);
    return true;
  }

  /** The range of too many keys, where their order is that of the values. */
  Object range(Predicate keys) {
    Expression[] parts = keys.children();
    Comparable least = null;
    Comparable greatest = null;
    DataType type = null;
    boolean isRanged = keys.name().equals("IN");
    for (int i = 1; i < parts.length && isRanged; i++) {
      Object value = parts[i] instanceof Literal ? ((Literal) parts[i]).value() : null;
      isRanged = value instanceof Integer || value instanceof Long || value instanceof UTF8String;
      if (isRanged) {
        type = ((Literal) parts[i]).dataType();
        least = least == null || least.compareTo(value) > 0 ? (Comparable) value : least;
        greatest = greatest == null || greatest.compareTo(value) < 0 ? (Comparable) value : greatest;
      }
    }
    Map node = new LinkedHashMap();
    if (!isRanged) {
      node.put("opaque", "IN");
      return node;
    }
    List both = new ArrayList();
    both.add(compared(">=", parts[0], type, least));
    both.add(compared("<=", parts[0], type, greatest));
    node.put("op", "AND");
    node.put("of", both);
    return node;
  }

  Map compared(String name, Object column, DataType type, Object value) {
    Map literal = new LinkedHashMap();
    literal.put("type", type.catalogString());
    literal.put("value", jsonValue(value));
    List sides = new ArrayList();
    sides.add(encode(column));
    sides.add(literal);
    Map node = new LinkedHashMap();
    node.put("op", name);
    node.put("of", sides);
    return node;
  }

  /** The value as JSON has it; null for what it has no exact form for. */
  static Object jsonValue(Object value) {
    if (value instanceof Boolean || value instanceof Integer || value instanceof Long
        || value instanceof Short || value instanceof Byte) {
      return value;
    }
    if (value instanceof Float) { // as a double, exactly
      return Double.toHexString(((Float) value).doubleValue());
    }
    if (value instanceof Double) {
      return Double.toHexString(((Double) value).doubleValue());
    }
    if (value instanceof Decimal) {
      return ((Decimal) value).toJavaBigDecimal().toPlainString();
    }
    if (value instanceof UTF8String) {
      return Base64.getEncoder().encodeToString(((UTF8String) value).getBytes());
    }
    if (value instanceof byte[]) {
      return Base64.getEncoder().encodeToString((byte[]) value);
    }
    return null;
  }

  Integer fieldId(String[] parts) {
    Types.StructType struct = schema.asStruct();
    for (int i = 0; i < parts.length; i++) {
      Types.NestedField field = struct.field(parts[i]);
      if (field == null) {
        return null;
      }
      if (i == parts.length - 1) {
        return Integer.valueOf(field.fieldId());
      }
      if (!field.type().isStructType()) {
        return null;
      }
      struct = field.type().asStructType();
    }
    return null;
  }

  Map summary() {
    Map summary = new LinkedHashMap();
    summary.put("table", table.name());
    summary.put("snapshot", snapshot);
    summary.put("files", Integer.valueOf(files));
    summary.put("files_read", Integer.valueOf(files - filesSkipped));
    summary.put("bytes", Long.valueOf(bytes));
    summary.put("bytes_read", Long.valueOf(bytes - bytesSkipped));
    summary.put("by", skipped);
    summary.put("ms", Double.valueOf(nanoseconds / 1e6));
    return summary;
  }

  String describe() {
    if (filesSkipped == 0) {
      return "Rookery(all " + files + " files)";
    }
    String size = Utils.bytesToString(bytes - bytesSkipped) + " of " + Utils.bytesToString(bytes);
    return "Rookery(" + (files - filesSkipped) + " of " + files + " files, " + size + ", by " + skipped + ")";
  }
}
