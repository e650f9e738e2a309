package io.ntier.jmeter;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/** What the heartbeat tells: cumulative counts, and the mean response time since the last beat. */
final class Counters {
    static final String HEADER = "t_s,users,started,completed,failed,in_flight,response_time_mean_ms,content_checked,"
            + "content_wrong,retries,statements";

    final AtomicInteger users = new AtomicInteger();
    private final LongAdder started = new LongAdder();
    private final LongAdder completed = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final LongAdder aborted = new LongAdder();
    private final LongAdder responseMs = new LongAdder();
    private final LongAdder checked = new LongAdder();
    private final LongAdder wrong = new LongAdder();
    private final LongAdder retries = new LongAdder();
    private final LongAdder statements = new LongAdder();
    private long lastCompleted;
    private long lastResponseMs;

    void begin() {
        started.increment();
    }

    /** An interaction that was begun, and that the end of the trial cut off. */
    void abort() {
        aborted.increment();
    }

    void interaction(long elapsedMs, boolean ok) {
        completed.increment();
        responseMs.add(elapsedMs);
        if (!ok) {
            failed.increment();
        }
    }

    void contentCheck(boolean right) {
        checked.increment();
        if (!right) {
            wrong.increment();
        }
    }

    void retry() {
        retries.increment();
    }

    /** What a page says that it took. */
    void statements(int number) {
        statements.add(number);
    }

    /**
     * The line of one beat; the mean is nan if nothing was completed since the last one. What comes last in an
     * interaction is read first, so that no line has more completed than started.
     */
    synchronized String beat(double nowS) {
        long wrongAnswers = failed.sum();
        long all = completed.sum();
        long gone = aborted.sum();
        long begun = started.sum();
        long ms = responseMs.sum();
        double mean = all == lastCompleted ? Double.NaN : (double) (ms - lastResponseMs) / (all - lastCompleted);
        lastCompleted = all;
        lastResponseMs = ms;
        String meanText = Double.isNaN(mean) ? "nan" : String.format(Locale.ROOT, "%.1f", mean);
        return String.format(
                Locale.ROOT,
                "%.3f,%d,%d,%d,%d,%d,%s,%d,%d,%d,%d%n",
                nowS,
                users.get(),
                begun,
                all,
                wrongAnswers,
                begun - all - gone,
                meanText,
                checked.sum(),
                wrong.sum(),
                retries.sum(),
                statements.sum());
    }
}
