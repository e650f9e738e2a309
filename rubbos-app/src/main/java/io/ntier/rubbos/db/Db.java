package io.ntier.rubbos.db;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/**
 * The database as one request sees it: runs statements with bound values and counts them. It takes a connection with the first
 * statement, so that requests with wrong parameters need none, and holds it until the page is complete.
 */
public final class Db implements AutoCloseable {
    /** Makes a value of the current row. */
    @FunctionalInterface
    public interface Row<T> {
        T read(ResultSet row) throws SQLException;
    }

    /** The request wants to write and may not. */
    public static final class ReadOnlyException extends RuntimeException {
        ReadOnlyException() {
            super("a request that may not write", null, false, false);
        }
    }

    /** Class of SQLSTATEs. */
    private static final String CONSTRAINT_VIOLATED = "23";

    private final ConnectionPool pool;
    private final boolean mayWrite;
    private final StatementTrace trace;
    private Connection connection;
    private int statements;
    private boolean wrote;

    public Db(ConnectionPool pool, boolean mayWrite) {
        this(pool, mayWrite, null);
    }

    /** @param trace null: the request is not followed */
    public Db(ConnectionPool pool, boolean mayWrite, StatementTrace trace) {
        this.pool = pool;
        this.mayWrite = mayWrite;
        this.trace = trace;
    }

    /** All rows, in the order of the database. Values are bound, never part of the text. */
    public <T> List<T> list(String sql, Row<T> reader, Object... values) throws SQLException {
        try (PreparedStatement statement = prepare(sql)) {
            bind(statement, values);
            try (ResultSet rows = statement.executeQuery()) {
                List<T> list = new ArrayList<>();
                while (rows.next()) {
                    list.add(reader.read(rows));
                }
                return list;
            }
        } finally {
            ended();
        }
    }

    /**
     * Runs an INSERT, UPDATE or DELETE. All writing goes through here.
     *
     * @return rows that it changed
     * @throws ReadOnlyException if the request may not write
     */
    public int update(String sql, Object... values) throws SQLException {
        if (!mayWrite) {
            throw new ReadOnlyException();
        }
        try (PreparedStatement statement = prepare(sql)) {
            bind(statement, values);
            wrote = true;
            return statement.executeUpdate();
        } finally {
            ended();
        }
    }

    /** Runs an INSERT; false if a row with one of its unique values is there already. */
    public boolean insert(String sql, Object... values) throws SQLException {
        try {
            update(sql, values);
            return true;
        } catch (SQLException e) {
            if (e.getSQLState() != null && e.getSQLState().startsWith(CONSTRAINT_VIOLATED)) {
                return false;
            }
            throw e;
        }
    }

    /** Counts the statement; the first one takes a connection. */
    private PreparedStatement prepare(String sql) throws SQLException {
        if (connection == null) {
            take();
        }
        statements++;
        String text = pool.translate(sql);
        return connection.prepareStatement(trace == null ? text : trace.begin(text));
    }

    private void take() throws SQLException {
        if (trace == null) {
            connection = pool.take();
            return;
        }
        long fromNs = System.nanoTime();
        connection = pool.take();
        trace.waited(fromNs);
    }

    private void ended() {
        if (trace != null) {
            trace.end();
        }
    }

    private static void bind(PreparedStatement statement, Object... values) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            bindOne(statement, i + 1, values[i]);
        }
    }

    /** The first row, or null if there is none. */
    public <T> T first(String sql, Row<T> reader, Object... values) throws SQLException {
        List<T> list = list(sql, reader, values);
        return list.isEmpty() ? null : list.get(0);
    }

    private static void bindOne(PreparedStatement statement, int index, Object value) throws SQLException {
        if (value instanceof Integer number) {
            statement.setInt(index, number);
        } else if (value instanceof Long number) {
            statement.setLong(index, number);
        } else if (value instanceof LocalDateTime date) {
            statement.setObject(index, date);
        } else {
            statement.setString(index, (String) value);
        }
    }

    /**
     * A column of dates. Not getString: Connector/J would format the date with String.format, which was a third of the
     * application's CPU time.
     */
    public static LocalDateTime date(ResultSet row, int column) throws SQLException {
        return row.getObject(column, LocalDateTime.class);
    }

    /**
     * After a failure: if it was the connection's, goes on with a new one and forgets what was counted.
     *
     * @return false if the connection is not to blame, or if something may have been written: that must not be done twice
     */
    public boolean recover(SQLException failure) throws SQLException {
        if (connection == null || wrote || !broke(failure)) {
            return false;
        }
        connection = pool.replace(connection);
        statements = 0;
        return true;
    }

    /** Whether the failure means that the connection, and not the statement, is unusable (SQLSTATE class 08, or closed). */
    private boolean broke(SQLException failure) throws SQLException {
        String state = failure.getSQLState();
        return state != null && state.startsWith("08") || connection.isClosed();
    }

    @Override
    public void close() {
        if (connection != null) {
            pool.give(connection);
        }
    }

    /** Statements executed so far. */
    public int statements() {
        return statements;
    }

    /** Pattern of LIKE for texts that start with the given one; its wildcards stand for themselves. */
    public static String startsWith(String text) {
        return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + '%';
    }
}
