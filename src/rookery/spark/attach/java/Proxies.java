import java.lang.reflect.Method;
import java.util.*;
import java.util.concurrent.*;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's table. It equals another proxy of the same table, and never the table itself: Spark keeps the old
 * node of a plan where the new one equals it.
 */
class TableHandler extends Forwarding {
  final SparkTable target;
  final Attached attached;
  final QueryTraits query;

  TableHandler(SparkTable target, Attached attached, QueryTraits query) {
    this.target = target;
    this.attached = attached;
    this.query = query;
  }

  public Object invoke(Object proxy, Method called, Object[] arguments) throws Throwable {
    String name = called.getName();
    if (name.equals("equals")) {
      Object other = Reflect.handlerOf(arguments[0]);
      return Boolean.valueOf(other instanceof TableHandler && ((TableHandler) other).target.equals(target));
    }
    if (name.equals("newScanBuilder") && hasVariant()) {
      arguments = new Object[] {readByRow((CaseInsensitiveStringMap) arguments[0])};
    }
    Object answer = forward(target, called, arguments);
    if (name.equals("newScanBuilder") && answer.getClass().getSimpleName().equals("SparkScanBuilder")) {
      return Reflect.proxied(answer, new BuilderHandler((ScanBuilder) answer, this));
    }
    return answer;
  }

  /** Whether files may have a variant, also of a column that was dropped. */
  boolean hasVariant() {
    try {
      return TableUtil.formatVersion(target.table()) >= 3 && hasVariant(target.table().schemas().values());
    } catch (RuntimeException error) {
      attached.failed(error);
      return false;
    }
  }

  static boolean hasVariant(Collection schemas) {
    for (Iterator each = schemas.iterator(); each.hasNext(); ) {
      Iterator fields = TypeUtil.indexById(((Schema) each.next()).asStruct()).values().iterator();
      while (fields.hasNext()) {
        if (((Types.NestedField) fields.next()).type().isVariantType()) {
          return true;
        }
      }
    }
    return false;
  }

  /** Iceberg's vectorized reader fails on files with a variant, even for other columns. */
  static CaseInsensitiveStringMap readByRow(CaseInsensitiveStringMap options) {
    Map changed = new HashMap(options.asCaseSensitiveMap());
    changed.put("vectorization-enabled", "false");
    return new CaseInsensitiveStringMap(changed);
  }
}

class BuilderHandler extends Forwarding {
  final ScanBuilder target;
  final TableHandler table;
  Predicate[] pushed = new Predicate[0];

  BuilderHandler(ScanBuilder target, TableHandler table) {
    this.target = target;
    this.table = table;
  }

  public Object invoke(Object proxy, Method called, Object[] arguments) throws Throwable {
    String name = called.getName();
    if (name.equals("pushPredicates")) {
      pushed = (Predicate[]) arguments[0];
    }
    Object answer = forward(target, called, arguments);
    if (!name.equals("build") || !answer.getClass().getSimpleName().equals("SparkBatchQueryScan")) {
      return answer;
    }
    try {
      PlannedScan planned = new PlannedScan((Scan) answer, table, pushed);
      if (planned.mayBeSelective()) {
        table.query.selective.add(planned);
      }
      return planned.isUseful() ? Reflect.proxied(answer, new ScanHandler(planned)) : answer;
    } catch (Throwable error) {
      table.query.hasOtherKeys = true;
      table.attached.failed(error);
      return answer;
    }
  }
}

/**
 * Iceberg's scan. What it equals is fixed when it is built: Iceberg's hash changes when keys of a join prune it,
 * and adaptive execution would plan such a query forever.
 */
class ScanHandler extends Forwarding {
  final PlannedScan planned;
  final String identity;
  final int hash;
  Statistics statistics;

  ScanHandler(PlannedScan planned) {
    this.planned = planned;
    // Iceberg describes only the predicates that it uses itself.
    this.identity = planned.target.description() + Arrays.toString(planned.pushed) + planned.byConditions.files;
    this.hash = planned.target.hashCode();
  }

  boolean sameAs(ScanHandler other) {
    return hash == other.hash && identity.equals(other.identity)
        && planned.table.equals(other.planned.table)
        && planned.target.readSchema().equals(other.planned.target.readSchema());
  }

  public Object invoke(Object proxy, Method called, Object[] arguments) throws Throwable {
    String name = called.getName();
    if (name.equals("equals")) {
      Object other = Reflect.handlerOf(arguments[0]);
      return Boolean.valueOf(other instanceof ScanHandler && sameAs((ScanHandler) other));
    }
    if (name.equals("hashCode")) {
      return Integer.valueOf(hash);
    }
    if (name.equals("filter")) {
      planned.filter(this, called, (Predicate[]) arguments[0]);
      return null;
    }
    if (name.equals("estimateStatistics") && arguments == null) {
      return statistics(called);
    }
    if (name.equals("toBatch")) {
      Object batch = planned.batch(this, called);
      return Reflect.proxied(batch, new BatchHandler((Batch) batch, this));
    }
    Object answer = forward(planned.target, called, arguments);
    if (name.equals("description") || name.equals("toString")) {
      return answer + " " + planned.describe();
    }
    if (name.equals("filterAttributes")) {
      return attributes((NamedReference[]) answer);
    }
    if (name.equals("reportDriverMetrics")) {
      return metrics((CustomTaskMetric[]) answer);
    }
    return answer;
  }

  /** Spark resolves the name again, perhaps without regard to case. */
  boolean isUnique(String name) {
    int same = 0;
    StructField[] fields = planned.target.readSchema().fields();
    for (int i = 0; i < fields.length; i++) {
      same += fields[i].name().equalsIgnoreCase(name) ? 1 : 0;
    }
    return same == 1;
  }

  /** Iceberg's own metrics of files, bytes and milliseconds, with ours. */
  Object metrics(CustomTaskMetric[] original) {
    CustomTaskMetric[] changed = new CustomTaskMetric[original.length];
    for (int i = 0; i < original.length; i++) {
      String name = original[i].name();
      long more = name.equals("skippedDataFiles") ? planned.files - planned.filesRead(true) : 0;
      more = name.equals("resultDataFiles") ? planned.filesRead(true) - planned.files : more;
      more = name.equals("totalDataFileSize") ? planned.bytesRead(true) - planned.bytes : more;
      more = name.equals("totalPlanningDuration") ? planned.nanoseconds / 1000000 : more;
      changed[i] = new Counted(name, original[i].value() + more);
    }
    return changed;
  }

  /** The statistics of the files that are left; Spark asks many times for a plan. */
  synchronized Object statistics(Method estimate) throws Throwable {
    if (statistics == null) {
      statistics = known((Statistics) forward(planned.target, estimate, null));
    }
    return statistics;
  }

  Statistics known(Statistics original) {
    try {
      return planned.answer.containsKey("rows") ? new KnownStatistics(original, planned) : original;
    } catch (Throwable error) {
      planned.attached.failed(error);
      return original;
    }
  }

  Object attributes(NamedReference[] original) {
    try {
      List more = Attached.list(planned.answer, "runtime");
      boolean isLarge = planned.bytes >= planned.attached.leastBytes;
      if (more.isEmpty() || !isLarge || !planned.query.hasKeysFor(planned)) {
        return original;
      }
      Map all = new LinkedHashMap();
      for (int i = 0; i < original.length; i++) {
        all.put(Arrays.asList(original[i].fieldNames()), original[i]);
      }
      Schema projection = (Schema) Reflect.call(planned.target, "projection");
      for (int i = 0; i < more.size(); i++) {
        Types.NestedField field = projection.asStruct().field(((Number) more.get(i)).intValue());
        if (field != null && isUnique(field.name())) {
          all.put(Collections.singletonList(field.name()), FieldReference.column(field.name()));
        }
      }
      return all.values().toArray(new NamedReference[all.size()]);
    } catch (Throwable error) {
      planned.attached.failed(error);
      return original;
    }
  }
}

class Counted implements CustomTaskMetric {
  final String name;
  final long value;

  Counted(String name, long value) {
    this.name = name;
    this.value = value;
  }

  public String name() {
    return name;
  }

  public long value() {
    return value;
  }
}

class BatchHandler extends Forwarding {
  final Batch target;
  final ScanHandler scan;

  BatchHandler(Batch target, ScanHandler scan) {
    this.target = target;
    this.scan = scan;
  }

  public Object invoke(Object proxy, Method called, Object[] arguments) throws Throwable {
    if (called.getName().equals("equals")) {
      Object other = Reflect.handlerOf(arguments[0]);
      return Boolean.valueOf(other instanceof BatchHandler && scan.sameAs(((BatchHandler) other).scan));
    }
    if (called.getName().equals("hashCode")) {
      return Integer.valueOf(scan.hash);
    }
    return forward(target, called, arguments);
  }
}
