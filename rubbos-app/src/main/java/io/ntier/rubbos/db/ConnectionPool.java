package io.ntier.rubbos.db;

import java.sql.Connection;
import java.sql.SQLException;

/** Connections for one or more servlets. A request holds one while its page is made, as the original does. */
public interface ConnectionPool extends AutoCloseable {
    /** The statement as the DBMS behind this pool wants it, see {@link Database#translate}. */
    String translate(String sql);

    /** Waits until a connection is free. Pair with {@link #give}. */
    Connection take() throws SQLException;

    /** Takes a connection back; a closed one frees its place. */
    void give(Connection connection);

    /** Trades a broken connection for one opened just now. If that fails, the broken one stays the caller's to give back. */
    Connection replace(Connection broken) throws SQLException;

    int active();

    int waiting();

    int size();

    @Override
    void close();
}
