package io.ntier.shardingsphere;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import java.sql.Connection;
import java.sql.SQLException;
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

    /** Counts the statements of {@code pool} from now on. */
    Replica(final String name, final HikariDataSource pool) {
        this.name = name;
        this.pool = pool;
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

    /** Counts one read that the policy sent here. */
    void markChosen() {
        chosen.increment();
    }

    @Override
    public void recordConnectionUsageMillis(final long elapsedMillis) {
        executed.increment();
    }

    /** One line of the status file; the columns are {@link StatusWriter#HEADER}. */
    String statusLine(final long nowMs) {
        int awaiting = pool.getHikariPoolMXBean().getThreadsAwaitingConnection();
        return String.format("%d.%03d,%s,%d,%d,%d,%d,%d%n", nowMs / 1000, nowMs % 1000, name,
                pending() + awaiting, awaiting, pool.getMaximumPoolSize(), executed.sum(), chosen.sum());
    }
}
