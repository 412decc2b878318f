import java.util.*;
import java.util.concurrent.*;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.internal.SQLConf;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

class RuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new ScanRule((SparkSession) session);
  }
}

class ScanRule extends Rule {
  final SparkSession session;

  ScanRule(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    Attached attached = (Attached) RookeryAttach.SESSIONS.get(session);
    if (attached == null || usesWap()) {
      return plan;
    }
    try {
      QueryExecution query = running();
      if (changesRows(plan) || query != null && changesRows(query.analyzed())) {
        return plan;
      }
      TreeNode ordered = JoinOrder.kept(plan, attached.leastRows);
      return ordered.transformDown(new ReplaceTables(attached, new QueryTraits(plan, attached.budgetOf(query))));
    } catch (Throwable error) {
      attached.failed(error);
      return plan;
    }
  }

  static boolean changesRows(TreeNode plan) {
    return plan instanceof RowLevelWrite || plan instanceof DeleteFromTable;
  }

  /** The query or command that is running on this thread: subqueries are planned apart from the rest of it. */
  QueryExecution running() {
    String execution = session.sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    return execution == null ? null : SQLExecution.getQueryExecution(Long.parseLong(execution));
  }

  boolean usesWap() {
    return session.conf().getOption("spark.wap.branch").isDefined()
        || session.conf().getOption("spark.wap.id").isDefined();
  }
}

/** What is asked of a scan depends on the query. */
class QueryTraits {
  final boolean byCosts; // else Spark uses nothing but sizes
  final boolean hasNaN;
  final boolean hasJoin;
  final Set selective = Collections.newSetFromMap(new ConcurrentHashMap()); // scans whose keys may prune another one
  final Budget budget;
  volatile boolean hasOtherKeys; // of what is no scan of ours, or of conditions that were not pushed down

  QueryTraits(TreeNode plan, Budget budget) {
    this.budget = budget;
    byCosts = SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled();
    hasNaN = byCosts && plan.exists(new HasNaN());
    hasJoin = plan.exists(new IsJoin());
    hasOtherKeys = hasJoin && plan.exists(new HasOtherKeys());
  }

  /** Whether the keys of another side of a join may be few enough to prune a scan. */
  boolean hasKeysFor(PlannedScan scan) {
    return hasOtherKeys || selective.size() > (selective.contains(scan) ? 1 : 0);
  }
}

/** Whether a node may select few keys in a way that no scan of this plan tells. */
class HasOtherKeys extends AbstractFunction1 {
  public Object apply(Object node) {
    if (node instanceof Filter) {
      return Boolean.valueOf(!isPushed((Filter) node));
    }
    boolean isPlanned = !(node instanceof LeafNode) || ReplaceTables.isPlanned(node);
    return Boolean.valueOf(node instanceof Subquery || ((QueryPlan) node).subqueries().nonEmpty() || !isPlanned);
  }

  static boolean isPushed(Filter filter) {
    return ReplaceTables.isPlanned(filter.child())
        && DataSourceV2Strategy$.MODULE$.translateFilterV2(filter.condition()).isDefined();
  }
}

/** Joins, and subqueries, of which Spark makes joins later. */
class IsJoin extends AbstractFunction1 {
  public Object apply(Object node) {
    return Boolean.valueOf(
        node instanceof Join || node instanceof Subquery || ((QueryPlan) node).subqueries().nonEmpty());
  }
}

/** Whether a node of a plan, or an expression, has a literal NaN: Spark fails to estimate a range of it. */
class HasNaN extends AbstractFunction1 {
  public Object apply(Object node) {
    if (node instanceof QueryPlan) {
      return Boolean.valueOf(((QueryPlan) node).expressions().exists(this));
    }
    if (node instanceof org.apache.spark.sql.catalyst.expressions.Literal) {
      Object value = ((org.apache.spark.sql.catalyst.expressions.Literal) node).value();
      return Boolean.valueOf(
          value instanceof Double && ((Double) value).isNaN() || value instanceof Float && ((Float) value).isNaN());
    }
    return Boolean.valueOf(((TreeNode) node).children().exists(this));
  }
}

class ReplaceTables extends AbstractPartialFunction {
  final Attached attached;
  final QueryTraits query;

  ReplaceTables(Attached attached, QueryTraits query) {
    this.attached = attached;
    this.query = query;
  }

  public boolean isDefinedAt(Object node) {
    return isPlanned(node);
  }

  static boolean isPlanned(Object node) {
    if (!(node instanceof DataSourceV2Relation)) {
      return false;
    }
    Object table = ((DataSourceV2Relation) node).table();
    return table instanceof SparkTable && ((SparkTable) table).table() instanceof BaseTable;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) node;
    SparkTable table = (SparkTable) relation.table();
    Object proxy = Reflect.proxied(table, new TableHandler(table, attached, query));
    DataSourceV2Relation replaced =
        relation.copy(
            (org.apache.spark.sql.connector.catalog.Table) proxy,
            relation.output(),
            relation.catalog(),
            relation.identifier(),
            relation.options(),
            relation.timeTravelSpec());
    replaced.copyTagsFrom(relation);
    return replaced;
  }
}
