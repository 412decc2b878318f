import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/** A session that is attached: where to ask, and what for. */
class Attached {
  static final ObjectMapper JSON = new ObjectMapper();
  static final int MOST_PATHS = 2000000; // that a session keeps

  final Function planner;
  final boolean runtime;
  final long timeout;
  final ThreadPoolExecutor threads =
      new ThreadPoolExecutor(4, 4, 60L, TimeUnit.SECONDS, new LinkedBlockingQueue(), new DaemonThreads());
  final AtomicReference overdue = new AtomicReference();
  final AtomicReference unreported = new AtomicReference();
  final Map numberings = new LinkedHashMap();
  final QueryLog queries = new QueryLog();

  Attached(Function planner, Map settings) {
    this.planner = planner;
    this.runtime = Boolean.TRUE.equals(settings.get("runtime"));
    this.timeout = ((Number) settings.get("timeout_ms")).longValue();
    threads.allowCoreThreadTimeOut(true); // each of them has a connection to Python of its own
  }

  /** The paths of the files that an answer leaves out: listed, or by their numbers. */
  Set skipped(Map answer, Map request) throws Exception {
    Set paths = new HashSet(list(answer, "skipped"));
    if (answer.containsKey("numbering")) {
      List all = numbered((String) answer.get("numbering"), request);
      byte[] bits = Base64.getDecoder().decode((String) answer.get("bits"));
      Set kept = new HashSet();
      for (int i = 0; i < all.size(); i++) {
        boolean isSkipped = (bits[i >> 3] & (1 << (i & 7))) != 0;
        (isSkipped ? paths : kept).add(all.get(i));
      }
      paths.removeAll(kept); // a file may be listed twice
    }
    return paths;
  }

  synchronized List numbered(String number, Map request) throws Exception {
    List all = (List) numberings.remove(number);
    if (all == null) {
      Map asked = new LinkedHashMap(request);
      asked.put("numbering", number);
      all = (List) ask(asked);
      if (all == null) {
        return Collections.EMPTY_LIST;
      }
    }
    long paths = all.size();
    for (Iterator each = numberings.values().iterator(); each.hasNext(); ) {
      paths += ((List) each.next()).size();
    }
    for (Iterator eldest = numberings.values().iterator(); paths > MOST_PATHS && eldest.hasNext(); ) {
      paths -= ((List) eldest.next()).size();
      eldest.remove();
    }
    numberings.put(number, all);
    return all;
  }

  static List list(Map answer, String name) {
    Object value = answer.get(name);
    return value == null ? Collections.EMPTY_LIST : (List) value;
  }

  /** Asks Python, for a bounded time. While an answer is overdue nothing is asked. */
  Object ask(Map request) throws Exception {
    Question late = (Question) overdue.get();
    if (late != null && !late.isAnswered) {
      return null;
    }
    Object missed = unreported.getAndSet(null);
    if (missed != null) {
      request.put("missed", missed);
    }
    Question question = new Question(planner, JSON.writeValueAsString(request));
    Future answer = threads.submit(question);
    try {
      Object received = answer.get(timeout, TimeUnit.MILLISECONDS);
      return received == null ? null : JSON.readValue((String) received, Object.class);
    } catch (TimeoutException error) {
      if (question.isAsked) {
        overdue.set(question);
      }
      answer.cancel(false);
      unreported.set("no answer within " + timeout + " ms");
      throw error;
    } catch (ExecutionException error) {
      throw new IllegalStateException(String.valueOf(error.getCause()), error.getCause());
    }
  }

  /** Reports an error, for one warning a session; the query runs as Spark alone would run it. */
  void failed(Throwable error) {
    if (error instanceof VirtualMachineError) {
      throw (VirtualMachineError) error;
    }
    if (error instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    } else if (!(error instanceof TimeoutException)) {
      unreported.set(String.valueOf(error));
    }
  }
}

class Question implements Callable {
  final Function planner;
  final String text;
  volatile boolean isAsked = false;
  volatile boolean isAnswered = false;

  Question(Function planner, String text) {
    this.planner = planner;
    this.text = text;
  }

  public Object call() {
    isAsked = true;
    try {
      return planner.apply(text);
    } finally {
      isAnswered = true;
    }
  }
}
