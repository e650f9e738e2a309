package io.ntier.rubbos.db;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import java.sql.Connection;
import java.sql.SQLException;

/** One pool for all servlets (HikariCP). Who waits for more than 30 s (its default) fails. */
public final class SharedPool implements ConnectionPool {
    private final Database database;
    private final HikariDataSource source;
    private final int size;

    public SharedPool(Database database, int size) {
        this.database = database;
        this.size = size;
        // No ping when a connection is taken: it would be a statement RUBBoS does not have. Broken ones are replaced instead.
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", Long.toString(Integer.MAX_VALUE));
        HikariConfig config = new HikariConfig();
        config.setPoolName("rubbos");
        config.setDataSource(database.source());
        config.setMaximumPoolSize(size);
        config.setMaxLifetime(0);
        config.setInitializationFailTimeout(-1);
        source = new HikariDataSource(config);
    }

    @Override
    public String translate(String sql) {
        return database.translate(sql);
    }

    @Override
    public Connection take() throws SQLException {
        return source.getConnection();
    }

    @Override
    public void give(Connection connection) {
        Database.closeQuietly(connection);
    }

    @Override
    public Connection replace(Connection broken) throws SQLException {
        source.evictConnection(broken);
        // What broke one connection (a restart of the other side) most likely broke the idle ones as well.
        source.getHikariPoolMXBean().softEvictConnections();
        return source.getConnection();
    }

    @Override
    public int active() {
        HikariPoolMXBean pool = source.getHikariPoolMXBean();
        return pool == null ? 0 : pool.getActiveConnections();
    }

    @Override
    public int waiting() {
        HikariPoolMXBean pool = source.getHikariPoolMXBean();
        return pool == null ? 0 : pool.getThreadsAwaitingConnection();
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public void close() {
        source.close();
    }
}
