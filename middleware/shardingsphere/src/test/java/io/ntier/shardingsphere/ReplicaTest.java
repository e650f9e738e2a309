package io.ntier.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Locale;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReplicaTest {
    /** A database whose connections break with the first statement. */
    private static DataSource dying() {
        Connection connection = (Connection) Proxy.newProxyInstance(ReplicaTest.class.getClassLoader(),
                new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    switch (method.getName()) {
                        case "createStatement":
                            throw new SQLException("the server has gone away", "08S01");
                        case "isValid":
                        case "getAutoCommit":
                            return true;
                        case "getNetworkTimeout":
                        case "getTransactionIsolation":
                            return 0;
                        default:
                            return method.getReturnType() == boolean.class ? Boolean.FALSE : null;
                    }
                });
        return (DataSource) Proxy.newProxyInstance(ReplicaTest.class.getClassLoader(), new Class<?>[] {DataSource.class},
                (proxy, method, arguments) -> method.getName().equals("getConnection") ? connection
                        : method.getReturnType() == int.class ? 0 : null);
    }

    @Test
    void aStatementWhoseConnectionBreaksIsNotPendingForEver() throws SQLException {
        HikariConfig config = new HikariConfig();
        config.setDataSource(dying());
        config.setMaximumPoolSize(2);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            Replica replica = new Replica("db1", pool, null);
            Connection used = pool.getConnection();
            assertEquals(1, replica.pending());
            assertThrows(SQLException.class, used::createStatement);
            used.close();
            assertEquals(0, replica.pending());

            pool.getConnection().close();
            assertEquals(0, replica.pending());
        }
    }

    @Test
    void aBeatThatMakesUpForALateOneIsNoReading(@TempDir final Path folder) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setDataSource(dying());
        Path file = folder.resolve("status.csv");
        try (HikariDataSource pool = new HikariDataSource(config)) {
            Replicas.register(Map.of("db1", pool), null);
            StatusWriter writer = new StatusWriter(file);
            writer.write();
            writer.write();
        } finally {
            Replicas.register(Map.of(), null);
        }
        assertEquals(1, Files.readAllLines(file).size());
    }

    /** Such as Persian, Bengali and Marathi have. */
    @Test
    void aLocaleWithDigitsOfItsOwnChangesNoLine() {
        HikariConfig config = new HikariConfig();
        config.setDataSource(dying());
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("fa-IR"));
        try (HikariDataSource pool = new HikariDataSource(config)) {
            assertEquals("1700000000.042,db1,0,0,10,0,0", new Replica("db1", pool, null).statusLine(1_700_000_000_042L).strip());
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    void aUseThatAnotherThreadEndsIsInTheTrace(@TempDir final Path folder) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setDataSource(dying());
        config.setMaximumPoolSize(2);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            Trace trace = new Trace(folder.resolve("trace.csv"));
            Replica replica = new Replica("db1", pool, trace);
            replica.markChosen(new int[] {0});
            Connection used = pool.getConnection();
            Thread other = new Thread(() -> assertDoesNotThrow(used::close));
            other.start();
            other.join();
            trace.write();
        }
        String[] field = Files.readAllLines(folder.resolve("trace.csv")).get(1).split(",");
        assertEquals("db1,0", field[4] + "," + field[5]);
        assertTrue(Long.parseLong(field[1]) > 0 && Long.parseLong(field[2]) <= Long.parseLong(field[3]));
    }
}
