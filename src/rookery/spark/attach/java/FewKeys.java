import java.util.*;
import java.util.concurrent.*;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Prunes a scan by the keys of another side that is not broadcast, if these are so few that reading them for
 * this alone pays. Spark prunes by a broadcast only, and finds none if adaptive execution has swapped the sides
 * of a join below it.
 */
class FewKeysRule extends Rule {
  static final double MOST_COST = 0.5; // of the bytes that are saved

  final Attached attached;

  FewKeysRule(Attached attached) {
    this.attached = attached;
  }

  public TreeNode apply(TreeNode plan) {
    try {
      return ((LogicalPlan) plan.transformDown(new PrunedScans())).transformAllExpressions(new RunKeys());
    } catch (Throwable error) {
      attached.failed(error);
      return plan;
    }
  }

  /** Adds the rule to those that a session applies after Spark has planned dynamic pruning. */
  static void add(SparkSession session, FewKeysRule rule) {
    List rules = new ArrayList(CollectionConverters.asJava(session.experimental().extraOptimizations()));
    rules.add(rule);
    session.experimental().extraOptimizations_$eq(CollectionConverters.asScala(rules).toList());
  }

  static void remove(SparkSession session) {
    List rules = new ArrayList(CollectionConverters.asJava(session.experimental().extraOptimizations()));
    for (Iterator each = rules.iterator(); each.hasNext(); ) {
      if (each.next() instanceof FewKeysRule) {
        each.remove();
      }
    }
    session.experimental().extraOptimizations_$eq(CollectionConverters.asScala(rules).toList());
  }

  /** The query of the keys, or one of more keys that costs less; null if none of them pays. */
  static LogicalPlan payingQuery(PlannedScan scan, LogicalPlan keys) {
    if (pays(scan, keys)) {
      return keys;
    }
    LogicalPlan wider = (LogicalPlan) keys.transformUp(new WithoutSemiJoins());
    return wider != keys && pays(scan, wider) ? wider : null;
  }

  /** Each key is in one file, if the scan is clustered by them: more files cannot be read. */
  static boolean pays(PlannedScan scan, LogicalPlan keys) {
    Option rows = keys.stats().rowCount();
    if (rows.isEmpty()) { // Spark estimates none if it does not plan by costs
      return false;
    }
    double share = ((scala.math.BigInt) rows.get()).doubleValue() / scan.filesRead(false);
    double saved = scan.bytesRead(false) * (1 - share);
    double cost = 0;
    for (Iterator leaves = CollectionConverters.asJava(keys.collectLeaves()).iterator(); leaves.hasNext(); ) {
      PlannedScan leaf = plannedScan(leaves.next());
      if (leaf == null) {
        return false;
      }
      cost += leaf.bytesRead(false);
    }
    return cost <= MOST_COST * saved;
  }

  static PlannedScan plannedScan(Object node) {
    if (!(node instanceof DataSourceV2ScanRelation)) {
      return null;
    }
    Object handler = Reflect.handlerOf(((DataSourceV2ScanRelation) node).scan());
    return handler instanceof ScanHandler ? ((ScanHandler) handler).planned : null;
  }
}

/** Filters over scans that Spark prunes by keys. */
class PrunedScans extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof Filter && FewKeysRule.plannedScan(((Filter) node).child()) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    Filter filter = (Filter) node;
    TreeNode changed = filter.condition().transformDown(new Keys(FewKeysRule.plannedScan(filter.child())));
    return changed == filter.condition() ? filter : filter.copy((org.apache.spark.sql.catalyst.expressions.Expression) changed, filter.child());
  }
}

/** Keys that a scan is pruned by. */
class Keys extends AbstractPartialFunction {
  final PlannedScan scan;

  Keys(PlannedScan scan) {
    this.scan = scan;
  }

  public boolean isDefinedAt(Object node) {
    if (!(node instanceof DynamicPruningSubquery)) {
      return false;
    }
    DynamicPruningSubquery keys = (DynamicPruningSubquery) node;
    return keys.onlyInBroadcast() && FewKeysRule.payingQuery(scan, keys.buildQuery()) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    DynamicPruningSubquery keys = (DynamicPruningSubquery) node;
    LogicalPlan query = FewKeysRule.payingQuery(scan, keys.buildQuery());
    return keys.copy(
        keys.pruningKey(), query, keys.buildKeys(), keys.broadcastKeyIndices(), false, keys.exprId(),
        keys.hint());
  }
}

/** The left sides of semi joins, which only leave out some of their rows. */
class WithoutSemiJoins extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof Join && ((Join) node).joinType() instanceof LeftSemi$;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return isDefinedAt(node) ? ((Join) node).left() : otherwise.apply(node);
  }
}

/**
 * Keys that a query of their own reads. Spark has copied that query before it has moved the conditions of other
 * keys within it down to their scans, and fails to evaluate them elsewhere.
 */
class RunKeys extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof DynamicPruningSubquery && !((DynamicPruningSubquery) node).onlyInBroadcast();
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return isDefinedAt(node)
        ? ((DynamicPruningSubquery) node).withNewPlan(
            (LogicalPlan) ((DynamicPruningSubquery) node).buildQuery().transformUp(new PrunedElsewhere()))
        : otherwise.apply(node);
  }
}

/** Conditions of keys that are not those of a scan; they only leave out rows that are left out anyway. */
class PrunedElsewhere extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof Filter && !isOfScan(((Filter) node).child());
  }

  static boolean isOfScan(LogicalPlan plan) {
    while (plan instanceof Filter || plan instanceof Project && plan.deterministic()) {
      plan = (LogicalPlan) plan.children().head();
    }
    return plan instanceof LeafNode;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return isDefinedAt(node)
        ? ((LogicalPlan) node).transformExpressions(new AnyKey())
        : otherwise.apply(node);
  }
}

/** A literal for each condition of keys. */
class AnyKey extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof DynamicPruningSubquery;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return isDefinedAt(node)
        ? org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral()
        : otherwise.apply(node);
  }
}
