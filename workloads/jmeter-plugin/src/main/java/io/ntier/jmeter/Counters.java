package io.ntier.jmeter;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/** What the heartbeat tells: cumulative counts, and the mean response time since the last beat. */
final class Counters {
    static final String HEADER =
            "t_s,users,completed,errors,response_time_mean_ms,content_checked,content_wrong,retries";

    final AtomicInteger users = new AtomicInteger();
    private final LongAdder completed = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final LongAdder responseMs = new LongAdder();
    private final LongAdder checked = new LongAdder();
    private final LongAdder wrong = new LongAdder();
    private final LongAdder retries = new LongAdder();
    private long lastCompleted;
    private long lastResponseMs;

    void interaction(long elapsedMs, boolean ok) {
        completed.increment();
        responseMs.add(elapsedMs);
        if (!ok) {
            errors.increment();
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

    /** The line of one beat; the mean is nan if nothing was completed since the last one. */
    synchronized String beat(double nowS) {
        long all = completed.sum();
        long ms = responseMs.sum();
        double mean = all == lastCompleted ? Double.NaN : (double) (ms - lastResponseMs) / (all - lastCompleted);
        lastCompleted = all;
        lastResponseMs = ms;
        String meanText = Double.isNaN(mean) ? "nan" : String.format(Locale.ROOT, "%.1f", mean);
        return String.format(
                Locale.ROOT,
                "%.3f,%d,%d,%d,%s,%d,%d,%d%n",
                nowS,
                users.get(),
                all,
                errors.sum(),
                meanText,
                checked.sum(),
                wrong.sum(),
                retries.sum());
    }
}
