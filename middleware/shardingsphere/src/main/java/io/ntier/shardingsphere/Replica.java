package io.ntier.shardingsphere;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Iterator;
import java.util.Locale;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.LongAdder;

/**
 * One database behind the proxy and what it is doing.
 *
 * <p>The proxy takes a connection from the replica's pool for each statement and returns it when the result was read, so
 * the connections in use are the pending statements. As in C-JDBC, one that still waits for a connection is not pending.
 */
final class Replica implements IMetricsTracker {
    private final String name;
    private final HikariDataSource pool;
    private final LongAdder executed = new LongAdder();
    private final LongAdder chosen = new LongAdder();
    private final Trace trace;
    private final ConcurrentLinkedDeque<Trace.Use> open = new ConcurrentLinkedDeque<>(); // used only with a trace

    /** Counts the statements of {@code pool} from now on; {@code trace} may be null. */
    Replica(final String name, final HikariDataSource pool, final Trace trace) {
        this.name = name;
        this.pool = pool;
        this.trace = trace;
        pool.setMetricsTrackerFactory((poolName, stats) -> this);
    }

    String name() {
        return name;
    }

    /** For the proxy's own questions; counts as a statement. */
    Connection connect() throws SQLException {
        return pool.getConnection();
    }

    /**
     * Statements that hold a connection now. Read from the pool's entries: events of taking and returning would drift apart,
     * since a connection that breaks in use is thrown away without being returned.
     */
    int pending() {
        return pool.getHikariPoolMXBean().getActiveConnections();
    }

    /** Counts one read that the policy sent here after it had {@code seen} these numbers of pending statements. */
    void markChosen(final int[] seen) {
        chosen.increment();
        if (trace != null) {
            trace.choose(name, seen);
        }
    }

    @Override
    public void recordConnectionAcquiredNanos(final long elapsedNanos) {
        if (trace != null) {
            open.add(trace.begin(name));
        }
    }

    @Override
    public void recordConnectionUsageMillis(final long elapsedMillis) {
        executed.increment();
        if (trace != null) {
            endUse();
        }
    }

    /** Ends the last use that this thread began; another's if a connection is given back by another thread than took it. */
    private void endUse() {
        for (Iterator<Trace.Use> uses = open.descendingIterator(); uses.hasNext();) {
            Trace.Use use = uses.next();
            if (use.thread == Thread.currentThread() && open.removeLastOccurrence(use)) {
                trace.end(use);
                return;
            }
        }
        Trace.Use oldest = open.poll();
        if (oldest != null) {
            trace.end(oldest);
        }
    }

    /** One line of the status file; the columns are {@link StatusWriter#HEADER}. */
    String statusLine(final long nowMs) {
        int awaiting = pool.getHikariPoolMXBean().getThreadsAwaitingConnection();
        return String.format(Locale.ROOT, "%d.%03d,%s,%d,%d,%d,%d,%d%n", nowMs / 1000, nowMs % 1000, name,
                pending() + awaiting, awaiting, pool.getMaximumPoolSize(), executed.sum(), chosen.sum());
    }
}
