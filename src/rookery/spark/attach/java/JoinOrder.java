import java.util.*;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotSummary;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Keeps the order of joins over few rows. Spark reorders joins for fewer rows between them, and then joins results
 * of joins, each of which is broadcast only after the one below it: over few rows this costs more than it saves.
 */
class JoinOrder {
  /** Spark does not reorder a join that has a hint, be it an empty one. */
  static TreeNode kept(TreeNode plan, long leastRows) {
    boolean isReordered = SQLConf.get().cboEnabled() && SQLConf.get().joinReorderEnabled();
    return isReordered && rows((LogicalPlan) plan) < leastRows ? plan.transformDown(new HintedJoins()) : plan;
  }

  /** The rows of all tables of a plan; the greatest number if those of one are not known. */
  static long rows(LogicalPlan plan) {
    long sum = 0;
    for (Iterator each = CollectionConverters.asJava(plan.collectLeaves()).iterator(); each.hasNext(); ) {
      Object leaf = each.next();
      Snapshot snapshot = ReplaceTables.isPlanned(leaf)
          ? ((SparkTable) ((DataSourceV2Relation) leaf).table()).table().currentSnapshot()
          : null;
      String rows = snapshot == null ? null : (String) snapshot.summary().get(SnapshotSummary.TOTAL_RECORDS_PROP);
      if (rows == null) {
        return Long.MAX_VALUE;
      }
      sum += Long.parseLong(rows);
    }
    return sum;
  }
}

/** Inner joins without a hint: Spark reorders no others. */
class HintedJoins extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof Join
        && ((Join) node).joinType() instanceof InnerLike
        && ((Join) node).hint().equals(JoinHint.NONE());
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    Join join = (Join) node;
    JoinHint empty = new JoinHint(Option.apply(new HintInfo(Option.empty())), Option.empty());
    return join.copy(join.left(), join.right(), join.joinType(), join.condition(), empty);
  }
}
