import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.ref.SoftReference;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.apache.spark.sql.execution.QueryExecution;

/** A session that is attached: where to ask, and what for. */
class Attached {
  static final ObjectMapper JSON = new ObjectMapper();
  static final int MOST_PATHS = 2000000; // that a session keeps
  static final int MOST_AT_ONCE = 4; // questions of a session
  // Each thread has a connection to Python, which is not closed when the thread ends: so they end only after an
  // error, and all sessions use the same ones.
  static final ExecutorService THREADS =
      new ThreadPoolExecutor(
          0, Integer.MAX_VALUE, Long.MAX_VALUE, TimeUnit.NANOSECONDS, new SynchronousQueue(), new DaemonThreads());

  final Function planner;
  final boolean runtime;
  final long timeout;
  final long leastBytes; // of a scan that keys prune
  final long leastRows; // of tables whose joins are reordered
  final Semaphore free = new Semaphore(MOST_AT_ONCE);
  final AtomicReference overdue = new AtomicReference();
  final AtomicReference unreported = new AtomicReference();
  final Map numberings = new LinkedHashMap();
  final QueryLog queries = new QueryLog();
  final Map budgets = Collections.synchronizedMap(new WeakHashMap()); // by query that runs

  Attached(Function planner, Map settings) {
    this.planner = planner;
    this.runtime = Boolean.TRUE.equals(settings.get("runtime"));
    this.timeout = ((Number) settings.get("timeout_ms")).longValue();
    this.leastBytes = ((Number) settings.get("least_bytes")).longValue();
    this.leastRows = ((Number) settings.get("least_rows")).longValue();
  }

  /** The time for all questions of a query; its subqueries are planned apart. */
  Budget budgetOf(QueryExecution query) {
    synchronized (budgets) {
      Budget budget = (Budget) budgets.get(query);
      if (budget == null) {
        budget = new Budget(TimeUnit.MILLISECONDS.toNanos(timeout));
        if (query != null) {
          budgets.put(query, budget);
        }
      }
      return budget;
    }
  }

  /** The files that an answer skips: listed, or by their numbers. */
  Skipped skipped(Map answer, Map request, Budget budget) throws Exception {
    if (!answer.containsKey("numbering")) {
      return new Skipped(new HashSet(list(answer, "skipped")), Collections.EMPTY_MAP, new byte[0]);
    }
    Map numbers = numbered((String) answer.get("numbering"), request, budget);
    return new Skipped(Collections.EMPTY_SET, numbers, Base64.getDecoder().decode((String) answer.get("bits")));
  }

  /** The numbers of paths, which are sent once. They are kept while there is memory for them. */
  synchronized Map numbered(String number, Map request, Budget budget) throws Exception {
    SoftReference kept = (SoftReference) numberings.remove(number);
    Map numbers = kept == null ? null : (Map) kept.get();
    if (numbers == null) {
      Map asked = new LinkedHashMap(request);
      asked.put("numbering", number);
      Object sent = ask(asked, budget);
      if (!(sent instanceof List) || ((List) sent).isEmpty()) { // the state is gone by now
        return Collections.EMPTY_MAP;
      }
      List all = (List) sent;
      numbers = new HashMap(all.size() * 2);
      for (int i = 0; i < all.size(); i++) {
        numbers.put(all.get(i), Integer.valueOf(i));
      }
    }
    long paths = numbers.size();
    for (Iterator each = numberings.values().iterator(); each.hasNext(); ) {
      paths += sizeOf((SoftReference) each.next());
    }
    for (Iterator eldest = numberings.values().iterator(); paths > MOST_PATHS && eldest.hasNext(); ) {
      paths -= sizeOf((SoftReference) eldest.next());
      eldest.remove();
    }
    numberings.put(number, new SoftReference(numbers));
    return numbers;
  }

  static int sizeOf(SoftReference kept) {
    Map numbers = (Map) kept.get();
    return numbers == null ? 0 : numbers.size();
  }

  static List list(Map answer, String name) {
    Object value = answer.get(name);
    return value == null ? Collections.EMPTY_LIST : (List) value;
  }

  /** Asks Python, for as long as the query may still wait. */
  Object ask(Map request, Budget budget) throws Exception {
    return answered(asked(request, budget), budget);
  }

  /** Asks Python, and does not wait; null while an earlier answer is overdue, as nothing is asked then. */
  Pending asked(Map request, Budget budget) throws Exception {
    Question late = (Question) overdue.get();
    if (late != null && !late.isAnswered) {
      return null;
    }
    Object missed = unreported.getAndSet(null);
    if (missed != null) {
      request.put("missed", missed);
    }
    Question question = new Question(planner, JSON.writeValueAsString(request), free);
    long started = System.nanoTime();
    try {
      if (budget.left() <= 0 || !free.tryAcquire(budget.left(), TimeUnit.NANOSECONDS)) {
        throw timedOut();
      }
      return new Pending(question, started(question));
    } finally {
      budget.spend(System.nanoTime() - started);
    }
  }

  /** Waits for an answer. */
  Object answered(Pending pending, Budget budget) throws Exception {
    if (pending == null) {
      return null;
    }
    long started = System.nanoTime();
    try {
      Object received = pending.answer.get(Math.max(budget.left(), 0L), TimeUnit.NANOSECONDS);
      return received == null ? null : JSON.readValue((String) received, Object.class);
    } catch (TimeoutException error) {
      overdue.set(pending.question);
      throw timedOut();
    } catch (ExecutionException error) {
      throw new IllegalStateException(String.valueOf(error.getCause()), error.getCause());
    } finally {
      budget.spend(System.nanoTime() - started);
    }
  }

  TimeoutException timedOut() {
    unreported.set("no answer within " + timeout + " ms");
    return new TimeoutException();
  }

  Future started(Question question) {
    try {
      FutureTask answer = new FutureTask(question);
      THREADS.execute(new Asking(answer, question));
      return answer;
    } catch (RuntimeException error) {
      free.release();
      throw error;
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

/** A question that is asked, and its answer to come. */
class Pending {
  final Question question;
  final Future answer;

  Pending(Question question, Future answer) {
    this.question = question;
    this.answer = answer;
  }
}

/** How long a query may still wait for answers, in nanoseconds. */
class Budget {
  private long left;

  Budget(long left) {
    this.left = left;
  }

  synchronized long left() {
    return left;
  }

  synchronized void spend(long nanoseconds) {
    left -= nanoseconds;
  }
}

/** Paths that are skipped; of those with numbers, the ones whose bits are set. */
class Skipped {
  final Set listed;
  final Map numbers;
  final byte[] bits;

  Skipped(Set listed, Map numbers, byte[] bits) {
    this.listed = listed;
    this.numbers = numbers;
    this.bits = bits;
  }

  boolean isEmpty() {
    return listed.isEmpty() && numbers.isEmpty();
  }

  boolean has(String path) {
    Integer number = (Integer) numbers.get(path);
    return number == null ? listed.contains(path) : (bits[number.intValue() >> 3] & (1 << (number.intValue() & 7))) != 0;
  }
}

/**
 * A question has a number, which its answer begins with. py4j leaves the rest of a call unread if it refuses the call,
 * and then every answer on that connection would be that of an earlier question, which names other files.
 */
class Question implements Callable {
  static final AtomicLong NUMBERS = new AtomicLong();
  final Function planner;
  final String text;
  final Semaphore used;
  volatile boolean isAnswered = false;
  volatile boolean isUnderstood = false;

  Question(Function planner, String text, Semaphore used) {
    this.planner = planner;
    this.text = text;
    this.used = used;
  }

  public Object call() {
    try {
      String number = NUMBERS.incrementAndGet() + "\n";
      String received = (String) planner.apply(number + text);
      if (received == null || !received.startsWith(number)) {
        throw new IllegalStateException("the answer is that of another question");
      }
      isUnderstood = true;
      return received.substring(number.length());
    } finally {
      isAnswered = true;
      used.release();
    }
  }
}

/** Asks a question; the thread ends, and its connection is used no more, unless the answer is that of the question. */
class Asking implements Runnable {
  final FutureTask answer;
  final Question question;

  Asking(FutureTask answer, Question question) {
    this.answer = answer;
    this.question = question;
  }

  public void run() {
    answer.run();
    if (!question.isUnderstood) {
      throw new IllegalStateException("the connection is not used any more");
    }
  }
}
