package io.ntier.rubbos.db;

import java.sql.Connection;
import java.sql.Driver;
import java.sql.SQLException;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.sql.DataSource;

/** Where the database is and how the driver talks to it; opens connections. */
public final class Database {
    /**
     * Connector/J: nothing on the wire but RUBBoS' own statements (no questions about session state, no SET autocommit), and no
     * text parsed twice. Anything here may be overridden in the JDBC URL.
     */
    private static final String[][] MYSQL_DEFAULTS = {
        {"cachePrepStmts", "true"},
        {"prepStmtCacheSize", "128"},
        {"prepStmtCacheSqlLimit", "4096"},
        {"cacheServerConfiguration", "true"},
        {"cacheResultSetMetadata", "true"},
        {"useLocalSessionState", "true"},
        {"elideSetAutoCommits", "true"},
        {"alwaysSendSetIsolation", "false"},
        {"enableQueryTimeouts", "false"},
        {"maintainTimeStats", "false"},
        {"dontTrackOpenResources", "true"}, // each statement is closed where it was opened
        {"processEscapeCodesForPrepStmts", "false"}, // no {ts ...} in our SQL
        {"connectionAttributes", "none"},
        {"tcpKeepAlive", "true"},
        {"connectTimeout", "5000"},
    };

    /** pgjdbc: likewise. */
    private static final String[][] POSTGRESQL_DEFAULTS = {
        {"stringtype", "unspecified"}, // days are bound as text, as for MySQL; the server finds the type
        {"assumeMinServerVersion", "13"}, // no questions about it
        {"ApplicationName", "rubbos"},
        {"tcpKeepAlive", "true"},
        {"connectTimeout", "5"},
    };

    /** RUBBoS has columns of this name, which the grammars of some PostgreSQL proxies take for the type. */
    private static final Pattern DATE = Pattern.compile("\\bdate\\b");

    private final Driver driver;
    private final boolean mysql;
    private final Map<String, String> translated = new ConcurrentHashMap<>();
    private final String[] urls;
    private final AtomicInteger turn = new AtomicInteger();
    private final Properties properties = new Properties();

    /**
     * @param url              one JDBC address, or several with spaces between them: places of the same DBMS (nodes of the
     *                         middleware tier), which new connections take in turn
     * @param serverStatements whether statements are prepared once on the server, or sent and parsed as a whole each time
     */
    public Database(String url, String user, String password, boolean serverStatements) {
        urls = url.strip().split("\\s+");
        mysql = all("jdbc:mysql:");
        properties.setProperty("user", user);
        properties.setProperty("password", password);
        if (mysql) {
            // The driver's clean-up thread would outlive the application; we close our connections ourselves.
            System.setProperty("com.mysql.cj.disableAbandonedConnectionCleanup", "true");
            driver = driver("com.mysql.cj.jdbc.Driver");
            setUnlessInUrl(MYSQL_DEFAULTS);
            setUnlessInUrl(new String[][] {{"useServerPrepStmts", Boolean.toString(serverStatements)}});
        } else if (all("jdbc:postgresql:")) {
            driver = driver("org.postgresql.Driver");
            setUnlessInUrl(POSTGRESQL_DEFAULTS);
            // Without names each statement is parsed anew, as literal text would be. Literal text itself (preferQueryMode=simple)
            // writes LIMIT ('25'::int4), which ShardingSphere-Proxy 5.1.0 does not understand.
            setUnlessInUrl(new String[][] {{"prepareThreshold", serverStatements ? "1" : "0"}});
        } else {
            throw new IllegalArgumentException("jdbc_url " + url
                    + ": unknown DBMS, or not the same everywhere; allowed: jdbc:mysql://HOST:PORT/SCHEMA, jdbc:postgresql://HOST:PORT/DATABASE");
        }
    }

    private boolean all(String prefix) {
        return Stream.of(urls).allMatch(url -> url.startsWith(prefix));
    }

    private static Driver driver(String name) {
        try {
            return (Driver) Class.forName(name).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("the driver " + name + " is missing", e);
        }
    }

    private void setUnlessInUrl(String[][] options) {
        for (String[] option : options) {
            if (!urls[0].contains(option[0] + '=')) {
                properties.setProperty(option[0], option[1]);
            }
        }
    }

    /** The one difference between the dialects, as far as RUBBoS' statements go: PostgreSQL gets {@code "date"} for the column. */
    String translate(String sql) {
        return mysql ? sql : translated.computeIfAbsent(sql, text -> DATE.matcher(text).replaceAll("\"date\""));
    }

    /** A new connection in autocommit mode. */
    public Connection open() throws SQLException {
        return driver.connect(urls[Math.floorMod(turn.getAndIncrement(), urls.length)], properties);
    }

    /** Of the driver's own archive, as it was loaded. */
    public String driverVersion() {
        return driver.getClass().getPackage().getImplementationVersion();
    }

    /** How many places connections lead to. */
    int places() {
        return urls.length;
    }

    static boolean isClosed(Connection connection) {
        try {
            return connection.isClosed();
        } catch (SQLException e) {
            return true;
        }
    }

    static void closeQuietly(Connection connection) {
        try {
            connection.close();
        } catch (SQLException ignored) {
            // It is given up anyway.
        }
    }

    /** For a pool that opens connections itself. */
    DataSource source() {
        return new OpeningSource(this);
    }
}
