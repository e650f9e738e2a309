package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertFalse;

import io.ntier.rubbos.data.DataSets;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/**
 * The DBMS under test with profile tiny in a database rubbos_test, made anew. RUBBOS_TEST_JDBC_URL names it
 * (jdbc:mysql://HOST:PORT/?options or jdbc:postgresql://HOST:PORT/?options, without a database), RUBBOS_TEST_USER and
 * RUBBOS_TEST_PASSWORD an account that may do everything there.
 */
final class TestDatabase implements AutoCloseable {
    static final String URL_VARIABLE = "RUBBOS_TEST_JDBC_URL";
    static final String URLS = "jdbc:(mysql|postgresql):.*";
    private static final String NAME = "rubbos_test";
    private static final List<String> TABLES =
            List.of("categories", "users", "stories", "old_stories", "submissions", "comments", "old_comments");

    private final String url = System.getenv(URL_VARIABLE);
    private final String user = System.getenv("RUBBOS_TEST_USER");
    private final String password = System.getenv().getOrDefault("RUBBOS_TEST_PASSWORD", "");
    private final boolean mysql = url.startsWith("jdbc:mysql:");
    private final Connection admin;

    /** With data that end now. */
    TestDatabase(Path folder) throws IOException, SQLException {
        this(folder, System.currentTimeMillis() / 1000);
    }

    /** @param referenceTime epoch seconds at which the data end */
    TestDatabase(Path folder, long referenceTime) throws IOException, SQLException {
        DataSets.tiny(folder, referenceTime);
        if (mysql) {
            admin = DriverManager.getConnection(url + (url.contains("?") ? "&" : "?") + "allowLoadLocalInfile=true", user, password);
            loadMysql(folder);
        } else {
            try (Connection any = connect("postgres")) {
                execute(any, "DROP DATABASE IF EXISTS " + NAME + " WITH (FORCE)");
                execute(any, "CREATE DATABASE " + NAME);
            }
            admin = connect(NAME);
            loadPostgresql(folder);
        }
    }

    private Connection connect(String database) throws SQLException {
        return DriverManager.getConnection(urlOf(database), user, password);
    }

    private String urlOf(String database) {
        return url.replaceFirst("/(\\?|$)", "/" + database + "$1");
    }

    private void loadMysql(Path folder) throws IOException, SQLException {
        execute(admin, "SET GLOBAL local_infile = 1");
        run("mysql/1_tables.sql");
        execute(admin, "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'");
        for (String table : TABLES) {
            execute(admin, "LOAD DATA LOCAL INFILE '" + folder.resolve(table + ".tsv") + "' INTO TABLE " + table);
        }
        run("mysql/2_indexes.sql");
    }

    private void loadPostgresql(Path folder) throws IOException, SQLException {
        run("postgresql/1_tables.sql");
        for (String table : TABLES) {
            try (Reader rows = Files.newBufferedReader(folder.resolve(table + ".tsv"))) {
                admin.unwrap(org.postgresql.PGConnection.class).getCopyAPI().copyIn("COPY " + table + " FROM STDIN", rows);
            }
        }
        run("postgresql/2_indexes.sql");
    }

    private void run(String file) throws IOException, SQLException {
        String sql = Files.readString(Path.of("schema", file)).replaceAll("(?m)^--.*$", "")
                .replaceAll("(DATABASE|DATABASE IF EXISTS|USE) rubbos\\b", "$1 " + NAME);
        for (String one : sql.split(";")) {
            if (!one.isBlank()) {
                execute(admin, one);
            }
        }
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    boolean isMysql() {
        return mysql;
    }

    /** Settings of an application that uses this database. */
    List<String> settings() {
        return List.of("jdbc_url=" + urlOf(NAME), "user=" + user, "password=" + password);
    }

    /** Last column of the first row. */
    long number(String sql) throws SQLException {
        try (Statement statement = admin.createStatement(); ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getLong(row.getMetaData().getColumnCount());
        }
    }

    /** First column of all rows. */
    List<String> texts(String sql) throws SQLException {
        try (Statement statement = admin.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            List<String> texts = new ArrayList<>();
            while (rows.next()) {
                texts.add(rows.getString(1));
            }
            return texts;
        }
    }

    void execute(String sql) throws SQLException {
        execute(admin, sql);
    }

    String text(String sql) throws SQLException {
        try (Statement statement = admin.createStatement(); ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : null;
        }
    }

    LocalDateTime date(String sql) throws SQLException {
        try (Statement statement = admin.createStatement(); ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getObject(1, LocalDateTime.class);
        }
    }

    private String others(String column) {
        return mysql
                ? "SELECT " + column.formatted("id") + " FROM performance_schema.processlist WHERE db = '" + NAME
                        + "' AND id <> CONNECTION_ID()"
                : "SELECT " + column.formatted("pid") + " FROM pg_stat_activity WHERE datname = '" + NAME
                        + "' AND pid <> pg_backend_pid()";
    }

    /** Connections to the database beside the test's own. */
    long connections() throws SQLException {
        return number(others("COUNT(%s)"));
    }

    void killAllOthers() throws SQLException {
        List<Long> ids = new ArrayList<>();
        try (Statement statement = admin.createStatement(); ResultSet rows = statement.executeQuery(others("%s"))) {
            while (rows.next()) {
                ids.add(rows.getLong(1));
            }
        }
        assertFalse(ids.isEmpty());
        for (long id : ids) {
            execute(admin, mysql ? "KILL " + id : "SELECT pg_terminate_backend(" + id + ")");
        }
    }

    @Override
    public void close() throws SQLException {
        admin.close();
    }
}
