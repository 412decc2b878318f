import java.util.*;
import java.util.concurrent.*;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import scala.Option;
import scala.runtime.AbstractFunction1;

/**
 * The JVM's half of `rookery.attach`: the entry points that Python calls. Compiled by Janino: no lambdas, raw
 * types. The files of this folder are one compilation unit.
 */
public class RookeryAttach {
  static final long LISTENERS_MS = 2000; // to wait for the listeners of the last query
  static final Map SESSIONS = Collections.synchronizedMap(new WeakHashMap());
  static final Map EXTENSIONS = Collections.synchronizedMap(new WeakHashMap());

  public static void attach(SparkSession session, List planner, String settings) throws Exception {
    detach(session);
    Map chosen = (Map) Attached.JSON.readValue(settings, Object.class);
    Attached attached = new Attached((Function) planner.get(0), chosen);
    SESSIONS.put(session, attached);
    session.listenerManager().register(attached.queries);
    if (attached.runtime) {
      FewKeysRule.add(session, new FewKeysRule(attached));
    }
    Object extensions = session.extensions();
    synchronized (EXTENSIONS) {
      if (EXTENSIONS.put(extensions, Boolean.TRUE) == null) { // rules cannot be removed again
        session.extensions().injectPreCBORule(new RuleBuilder());
      }
    }
  }

  public static void detach(SparkSession session) {
    Attached attached = (Attached) SESSIONS.remove(session);
    if (attached != null) {
      session.listenerManager().unregister(attached.queries);
      FewKeysRule.remove(session);
    }
  }

  /** The last queries as JSON; null if the session is not attached. */
  public static String queries(SparkSession session) throws Exception {
    Attached attached = (Attached) SESSIONS.get(session);
    if (attached == null) {
      return null;
    }
    try {
      session.sparkContext().listenerBus().waitUntilEmpty(LISTENERS_MS);
    } catch (TimeoutException busy) {
      // the newest may be missing
    }
    return Attached.JSON.writeValueAsString(attached.queries.listed());
  }

  /**
   * The nodes of a query's plan as JSON, with what is estimated for them and, if it is to run, with their rows;
   * null for a statement that changes anything, which is not run.
   */
  public static String nodes(SparkSession session, String text, Boolean run) throws Exception {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session); // whose settings the estimates depend on
    try {
      return activeNodes(session, text, run);
    } finally {
      if (before.isDefined()) {
        SparkSession.setActiveSession((SparkSession) before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }

  static String activeNodes(SparkSession session, String text, Boolean run) throws Exception {
    LogicalPlan parsed = session.sessionState().sqlParser().parsePlan(text);
    QueryExecution query = session.sessionState().executePlan(parsed, CommandExecutionMode$.MODULE$.SKIP());
    if (query.analyzed().exists(new IsCommand())) {
      return null;
    }
    return Attached.JSON.writeValueAsString(Plans.nodes(query, run.booleanValue()));
  }
}

class IsCommand extends AbstractFunction1 {
  public Object apply(Object node) {
    return Boolean.valueOf(node instanceof Command);
  }
}

class DaemonThreads implements ThreadFactory, Thread.UncaughtExceptionHandler {
  public Thread newThread(Runnable run) {
    // A thread that inherited the active session of the one that started it would hold it for good.
    Thread thread = new Thread(null, run, "rookery-attach", 0, false);
    thread.setDaemon(true);
    thread.setUncaughtExceptionHandler(this);
    return thread;
  }

  /** The query that has asked reports the error. */
  public void uncaughtException(Thread thread, Throwable error) {}
}
