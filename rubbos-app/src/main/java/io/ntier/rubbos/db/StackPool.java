package io.ntier.rubbos.db;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The original's pool: each servlet has a stack of N connections (last in, first out); who finds it empty waits without limit.
 * If they lead to several places it is a queue: on top of a stack there would be the same place most of the time.
 */
public final class StackPool implements ConnectionPool {
    private static final Logger LOG = Logger.getLogger(StackPool.class.getName());

    private final Database database;
    private final int size;
    private final Deque<Connection> idle = new ArrayDeque<>();
    private int open;
    private int waiting;
    private boolean closed;

    /** Opens all connections; those that fail now are opened when needed. */
    public StackPool(Database database, int size) {
        this.database = database;
        this.size = size;
        try {
            while (open < size) {
                idle.push(database.open());
                open++;
            }
        } catch (SQLException e) {
            LOG.log(Level.WARNING, "cannot connect yet, will try again with each request: {0}", e.getMessage());
        }
    }

    @Override
    public String translate(String sql) {
        return database.translate(sql);
    }

    @Override
    public Connection take() throws SQLException {
        synchronized (this) {
            waiting++;
            try {
                while (idle.isEmpty() && open == size && !closed) {
                    wait();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new SQLException("interrupted while waiting for a connection", e);
            } finally {
                waiting--;
            }
            if (closed) {
                throw new SQLException("the pool is closed");
            }
            if (!idle.isEmpty()) {
                return idle.pop();
            }
            open++;
        }
        return openReserved();
    }

    private Connection openReserved() throws SQLException {
        try {
            return database.open();
        } catch (SQLException e) {
            synchronized (this) {
                open--;
                notify();
            }
            throw e;
        }
    }

    @Override
    public synchronized void give(Connection connection) {
        if (closed || Database.isClosed(connection)) {
            Database.closeQuietly(connection);
            open--;
        } else if (database.places() == 1) {
            idle.push(connection);
        } else {
            idle.addLast(connection);
        }
        notify();
    }

    @Override
    public Connection replace(Connection broken) throws SQLException {
        Database.closeQuietly(broken);
        return database.open();
    }

    @Override
    public synchronized int active() {
        return open - idle.size();
    }

    @Override
    public synchronized int waiting() {
        return waiting;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public synchronized void close() {
        closed = true;
        idle.forEach(Database::closeQuietly);
        open -= idle.size();
        idle.clear();
        notifyAll();
    }
}
