package io.ntier.rubbos.web;

import io.ntier.rubbos.db.ConnectionPool;
import io.ntier.rubbos.db.Database;
import io.ntier.rubbos.db.SharedPool;
import io.ntier.rubbos.db.StackPool;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Settings of the application, from the properties file that the system property {@code rubbos.config} or else the environment
 * variable {@code RUBBOS_CONFIG} names. README.md lists the keys.
 *
 * @param poolSize   per_servlet: connections of each servlet; shared: of all together
 * @param losesIndex how comments are searched, see {@link io.ntier.rubbos.interactions.SearchInComments}
 * @param statusFile null: no status is written
 * @param traceFile  null: no request is followed
 */
public record Config(String jdbcUrl, String user, String password, boolean serverStatements, boolean poolPerServlet, int poolSize,
                     boolean losesIndex, Path statusFile, Path traceFile) {
    private static final Set<String> KEYS = Set.of("jdbc_url", "user", "password", "password_file", "statements", "pool_mode",
            "pool_size", "comment_search", "status_file", "trace_file");
    private static final Logger LOG = Logger.getLogger(Config.class.getName());
    private static final int POOL_SIZE_MAX = 1000;

    /** @throws IllegalStateException with the reason, if there is no usable configuration */
    public static Config load() {
        String file = System.getProperty("rubbos.config", System.getenv("RUBBOS_CONFIG"));
        if (file == null) {
            throw new IllegalStateException("no configuration: set the system property rubbos.config or the variable RUBBOS_CONFIG"
                    + " to the path of a properties file");
        }
        try (Reader reader = Files.newBufferedReader(Path.of(file))) {
            Properties properties = new Properties();
            properties.load(reader);
            return parse(properties);
        } catch (IOException e) {
            throw new IllegalStateException("cannot read the configuration: " + e, e);
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(file + ": " + e.getMessage(), e);
        }
    }

    static Config parse(Properties properties) throws IOException {
        Set<String> unknown = new TreeSet<>(properties.stringPropertyNames());
        unknown.removeAll(KEYS);
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException("unknown " + unknown + "; allowed: " + new TreeSet<>(KEYS));
        }
        return new Config(required(properties, "jdbc_url"), required(properties, "user"), password(properties),
                choice(properties, "statements", "client", "server").equals("server"),
                choice(properties, "pool_mode", "per_servlet", "shared").equals("per_servlet"),
                poolSize(properties), choice(properties, "comment_search", "indexed", "mysql_5_0").equals("mysql_5_0"),
                file(properties, "status_file"), file(properties, "trace_file"));
    }

    private static String password(Properties properties) throws IOException {
        String file = properties.getProperty("password_file");
        return file == null ? required(properties, "password") : Files.readString(Path.of(file)).strip();
    }

    private static Path file(Properties properties, String key) {
        String name = properties.getProperty(key);
        return name == null ? null : Path.of(name);
    }

    private static String required(Properties properties, String key) {
        String value = properties.getProperty(key);
        if (value == null || value.isBlank()) {
            throw new IllegalArgumentException(key + " is missing");
        }
        return value.strip();
    }

    /** The first of the allowed values is the default. */
    private static String choice(Properties properties, String key, String... allowed) {
        String value = properties.getProperty(key, allowed[0]).strip();
        if (!List.of(allowed).contains(value)) {
            throw new IllegalArgumentException(key + " is " + value + "; allowed: " + String.join(", ", allowed));
        }
        return value;
    }

    private static int poolSize(Properties properties) {
        String value = required(properties, "pool_size");
        try {
            int size = Integer.parseInt(value);
            if (size >= 1 && size <= POOL_SIZE_MAX) {
                return size;
            }
        } catch (NumberFormatException ignored) {
            // the same answer as for a number out of range
        }
        throw new IllegalArgumentException("pool_size is " + value + "; allowed: a whole number in 1.." + POOL_SIZE_MAX);
    }

    /** Beside the status file: {@code jdbc_driver} with the version of the driver in use. */
    private void noteDriver(Database database) {
        if (statusFile != null) {
            try {
                Files.writeString(statusFile.resolveSibling("jdbc_driver"), database.driverVersion() + "\n");
            } catch (IOException e) {
                LOG.log(Level.WARNING, "cannot write beside the status file: {0}", e.toString());
            }
        }
    }

    /** One pool per servlet, or the same one for all. */
    List<ConnectionPool> openPools(int servlets) {
        Database database = new Database(jdbcUrl, user, password, serverStatements);
        noteDriver(database);
        List<ConnectionPool> pools = new ArrayList<>();
        for (int i = 0; i < servlets; i++) {
            if (poolPerServlet || i == 0) {
                pools.add(poolPerServlet ? new StackPool(database, poolSize) : new SharedPool(database, poolSize));
            } else {
                pools.add(pools.get(0));
            }
        }
        return pools;
    }
}
