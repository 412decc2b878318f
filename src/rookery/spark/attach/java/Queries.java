import java.util.*;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.CollectLimitExec;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.TakeOrderedAndProjectExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.util.AccumulatorV2;
import org.apache.spark.sql.util.QueryExecutionListener;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/** The last queries of a session: what was read, and the rows that were estimated and counted. */
class QueryLog implements QueryExecutionListener {
  static final int MOST = 200;
  static final int MOST_TEXT = 10000; // characters of a query
  final Deque last = new ArrayDeque();

  public void onSuccess(String action, QueryExecution query, long nanoseconds) {
    add(action, query, Long.valueOf(nanoseconds), null);
  }

  public void onFailure(String action, QueryExecution query, Exception error) {
    add(action, query, null, error.getClass().getSimpleName());
  }

  void add(String action, QueryExecution query, Long nanoseconds, String error) {
    SparkSession.setActiveSession(query.sparkSession()); // whose settings the estimates depend on
    try {
      List scans = new ArrayList();
      addScans(query.executedPlan(), null, 1.0, scans);
      if (scans.isEmpty()) {
        return;
      }
      Map entry = new LinkedHashMap();
      Option text = query.logical().origin().sqlText();
      String written = text.isDefined() ? String.valueOf(text.get()) : "";
      entry.put("text", written.substring(0, Math.min(written.length(), MOST_TEXT)));
      entry.put("action", action);
      entry.put("ms", nanoseconds == null ? null : Double.valueOf(nanoseconds.longValue() / 1e6));
      entry.put("error", error);
      entry.put("at", Long.valueOf(System.currentTimeMillis()));
      entry.put("scans", scans);
      entry.put("estimated", Plans.rows(query.optimizedPlan()));
      entry.put("rows", error == null ? Plans.counted(query.executedPlan(), 1.0) : null);
      synchronized (last) {
        last.addLast(entry);
        if (last.size() > MOST) {
          last.removeFirst();
        }
      }
    } catch (Throwable failed) {
      if (failed instanceof VirtualMachineError) {
        throw (VirtualMachineError) failed;
      } // a query that cannot be described is not listed
    } finally {
      SparkSession.clearActiveSession();
    }
  }

  List listed() {
    synchronized (last) {
      return new ArrayList(last);
    }
  }

  static void addScans(SparkPlan plan, SparkPlan filter, double runs, List scans) {
    if (plan instanceof BatchScanExec) {
      Scan scan = ((BatchScanExec) plan).scan();
      Object handler = Reflect.handlerOf(scan);
      if (handler instanceof ScanHandler) {
        Map entry = ((ScanHandler) handler).planned.summary(((BatchScanExec) plan).runtimeFilters().nonEmpty());
        SparkPlan counting = filter == null ? plan : filter;
        entry.put("estimated", Plans.estimated(counting, plan));
        entry.put("rows", Plans.rows(counting, runs));
        scans.add(entry);
      }
    }
    boolean isBetween =
        plan instanceof ColumnarToRowExec || plan instanceof InputAdapter || plan instanceof WholeStageCodegenExec;
    List inner = Plans.inner(plan);
    double runsBelow = Plans.runsBelow(plan, runs);
    for (int i = 0; i < inner.size(); i++) {
      SparkPlan above = plan instanceof FilterExec ? plan : isBetween ? filter : null;
      addScans((SparkPlan) inner.get(i), above, runsBelow, scans);
    }
  }
}

/** Physical plans: their nodes, and the rows that were estimated for them and counted by them. */
class Plans {
  /** The plans under a node, also those of its subqueries and those that adaptive execution has made of it. */
  static List inner(SparkPlan plan) {
    List inner = new ArrayList();
    if (plan instanceof AdaptiveSparkPlanExec) {
      inner.add(((AdaptiveSparkPlanExec) plan).executedPlan());
    } else if (plan instanceof QueryStageExec) {
      inner.add(((QueryStageExec) plan).plan());
    } else if (!(plan instanceof ReusedExchangeExec) && !(plan instanceof ReusedSubqueryExec)) {
      for (scala.collection.Iterator each = plan.children().iterator(); each.hasNext(); ) {
        inner.add(each.next());
      }
      for (scala.collection.Iterator each = plan.subqueries().iterator(); each.hasNext(); ) {
        inner.add(each.next());
      }
    }
    return inner;
  }

  /** A metric of a node; null if it has none of that name. */
  static Long metric(SparkPlan plan, String name) {
    Option metric = plan.metrics().get(name);
    return metric.isDefined() ? (Long) ((AccumulatorV2) metric.get()).value() : null;
  }

  /** The rows that a node has counted, as far as Spark counts them. */
  static Long metric(SparkPlan plan) {
    return metric(plan, "numOutputRows");
  }

  /** The rows of a node that was run so many times. */
  static Long rows(SparkPlan plan, double runs) {
    Long counted = metric(plan);
    return counted == null ? null : Long.valueOf(Math.round(counted.longValue() / runs));
  }

  /**
   * How many times the nodes below one were run. A sort first reads its input to find the ranges of its partitions,
   * and large partitions of it once more; what is below another exchange is read from that.
   */
  static double runsBelow(SparkPlan plan, double runs) {
    if (plan instanceof ShuffleExchangeExec) {
      Object ranges = ((ShuffleExchangeExec) plan).outputPartitioning();
      if (ranges instanceof RangePartitioning && ((RangePartitioning) ranges).numPartitions() > 1) {
        Long written = metric(plan, "shuffleRecordsWritten");
        Long counted = countedBefore((ShuffleExchangeExec) plan);
        boolean isKnown = written != null && counted != null && written.longValue() > 0;
        return isKnown ? Math.max(1.0, counted.doubleValue() / written.longValue()) : 2.0;
      }
    }
    return plan instanceof Exchange || plan instanceof BaseSubqueryExec ? 1.0 : runs;
  }

  /** The rows that are counted below an exchange before anything changes their number. */
  static Long countedBefore(ShuffleExchangeExec exchange) {
    SparkPlan plan = exchange.child();
    while (plan instanceof ProjectExec || plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter) {
      plan = (SparkPlan) plan.children().head();
    }
    return metric(plan);
  }

  /** The rows of the first node that counts them, and has no siblings, as far as a limit passes them on. */
  static Long counted(SparkPlan plan, double runs) {
    Long rows = rows(plan, runs);
    List inner = inner(plan);
    if (rows != null || inner.size() != 1) {
      return rows;
    }
    rows = counted((SparkPlan) inner.get(0), runsBelow(plan, runs));
    if (rows != null && plan instanceof CollectLimitExec) {
      return limited(rows, ((CollectLimitExec) plan).limit(), ((CollectLimitExec) plan).offset());
    }
    if (rows != null && plan instanceof TakeOrderedAndProjectExec) {
      return limited(rows, ((TakeOrderedAndProjectExec) plan).limit(), ((TakeOrderedAndProjectExec) plan).offset());
    }
    return rows;
  }

  /** The rows between an offset and a limit, which includes the offset and is negative if there is none. */
  static Long limited(Long rows, int limit, int offset) {
    long most = limit < 0 ? rows.longValue() : Math.min(rows.longValue(), limit);
    return Long.valueOf(Math.max(0L, most - Math.max(0, offset)));
  }

  static Object rows(LogicalPlan plan) {
    Option rows = plan.stats().rowCount();
    return rows.isDefined() ? Double.valueOf(((scala.math.BigInt) rows.get()).doubleValue()) : null;
  }

  static Object estimated(SparkPlan plan, SparkPlan below) {
    LogicalPlan logical = logical(plan, below);
    return logical == null ? null : rows(logical);
  }

  /** The logical node of a physical one; of a filter and a scan, which may share one, their own. */
  static LogicalPlan logical(SparkPlan plan, SparkPlan below) {
    Option link = plan.logicalLink();
    if (!link.isDefined()) {
      return null;
    }
    LogicalPlan linked = (LogicalPlan) link.get();
    if (plan instanceof FilterExec) {
      return within(linked, null);
    }
    return plan instanceof BatchScanExec ? within(linked, ((BatchScanExec) plan).scan()) : linked;
  }

  /** The first filter, or the relation with a given scan. */
  static LogicalPlan within(LogicalPlan plan, Scan scan) {
    boolean isFound =
        scan == null
            ? plan instanceof Filter
            : plan instanceof DataSourceV2ScanRelation && ((DataSourceV2ScanRelation) plan).scan() == scan;
    if (isFound) {
      return plan;
    }
    for (scala.collection.Iterator each = plan.children().iterator(); each.hasNext(); ) {
      LogicalPlan found = within((LogicalPlan) each.next(), scan);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  /** The nodes that count rows, as a tree in depth-first order, each with its estimates and its count. */
  static List nodes(QueryExecution query, boolean run) {
    if (run) {
      query.toRdd().count();
    }
    List nodes = new ArrayList();
    addNodes(query.executedPlan(), null, 0, run, 1.0, nodes);
    return nodes;
  }

  static void addNodes(SparkPlan plan, LogicalPlan above, int depth, boolean run, double runs, List nodes) {
    LogicalPlan logical = metric(plan) == null ? null : logical(plan, plan);
    // Both halves of an aggregation belong to one node; the upper one has the result.
    boolean isOwn = logical != null && logical != above;
    if (isOwn) {
      Map node = new LinkedHashMap();
      node.put("depth", Integer.valueOf(depth));
      node.put("name", plan.nodeName());
      node.put("text", plan.simpleString(200));
      node.put("alone", rows((LogicalPlan) logical.transformUp(new WithoutProxies())));
      node.put("attached", rows(logical));
      node.put("rows", run ? rows(plan, runs) : null);
      nodes.add(node);
    }
    List inner = inner(plan);
    double runsBelow = runsBelow(plan, runs);
    for (int i = 0; i < inner.size(); i++) {
      SparkPlan below = (SparkPlan) inner.get(i);
      addNodes(below, isOwn ? logical : above, isOwn ? depth + 1 : depth, run, runsBelow, nodes);
    }
  }
}

/** Puts Iceberg's own scans in the place of their proxies, to see what Spark estimates by them. */
class WithoutProxies extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof DataSourceV2ScanRelation
        && Reflect.handlerOf(((DataSourceV2ScanRelation) node).scan()) instanceof ScanHandler;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    Scan target = ((ScanHandler) Reflect.handlerOf(relation.scan())).planned.target;
    return relation.copy(
        relation.relation(), target, relation.output(), relation.keyGroupedPartitioning(), relation.ordering());
  }
}
