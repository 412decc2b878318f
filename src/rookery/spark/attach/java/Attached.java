import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.ref.SoftReference;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/** A session that is attached: where to ask, and what for. */
class Attached {
  static final ObjectMapper JSON = new ObjectMapper();
  static final int MOST_PATHS = 2000000; // that a session keeps
  static final int MOST_AT_ONCE = 4; // questions of a session
  // Each thread has a connection to Python, which is not closed when the thread ends: so they never end, and
  // all sessions use the same ones.
  static final ExecutorService THREADS =
      new ThreadPoolExecutor(
          0, Integer.MAX_VALUE, Long.MAX_VALUE, TimeUnit.NANOSECONDS, new SynchronousQueue(), new DaemonThreads());

  final Function planner;
  final boolean runtime;
  final long timeout;
  final Semaphore free = new Semaphore(MOST_AT_ONCE);
  final AtomicReference overdue = new AtomicReference();
  final AtomicReference unreported = new AtomicReference();
  final Map numberings = new LinkedHashMap();
  final QueryLog queries = new QueryLog();

  Attached(Function planner, Map settings) {
    this.planner = planner;
    this.runtime = Boolean.TRUE.equals(settings.get("runtime"));
    this.timeout = ((Number) settings.get("timeout_ms")).longValue();
  }

  /** The files that an answer skips: listed, or by their numbers. */
  Skipped skipped(Map answer, Map request) throws Exception {
    if (!answer.containsKey("numbering")) {
      return new Skipped(new HashSet(list(answer, "skipped")), Collections.EMPTY_MAP, new byte[0]);
    }
    Map numbers = numbered((String) answer.get("numbering"), request);
    return new Skipped(Collections.EMPTY_SET, numbers, Base64.getDecoder().decode((String) answer.get("bits")));
  }

  /** The numbers of paths, which are sent once. They are kept while there is memory for them. */
  synchronized Map numbered(String number, Map request) throws Exception {
    SoftReference kept = (SoftReference) numberings.remove(number);
    Map numbers = kept == null ? null : (Map) kept.get();
    if (numbers == null) {
      Map asked = new LinkedHashMap(request);
      asked.put("numbering", number);
      Object sent = ask(asked);
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
    Question question = new Question(planner, JSON.writeValueAsString(request), free);
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeout);
    try {
      if (!free.tryAcquire(timeout, TimeUnit.MILLISECONDS)) {
        throw new TimeoutException();
      }
      Object received = started(question).get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      return received == null ? null : JSON.readValue((String) received, Object.class);
    } catch (TimeoutException error) {
      if (question.isAsked) {
        overdue.set(question);
      }
      unreported.set("no answer within " + timeout + " ms");
      throw error;
    } catch (ExecutionException error) {
      throw new IllegalStateException(String.valueOf(error.getCause()), error.getCause());
    }
  }

  Future started(Question question) {
    try {
      Future answer = THREADS.submit(question);
      question.isAsked = true;
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

class Question implements Callable {
  final Function planner;
  final String text;
  final Semaphore used;
  volatile boolean isAsked = false;
  volatile boolean isAnswered = false;

  Question(Function planner, String text, Semaphore used) {
    this.planner = planner;
    this.text = text;
    this.used = used;
  }

  public Object call() {
    try {
      return planner.apply(text);
    } finally {
      isAnswered = true;
      used.release();
    }
  }
}
