package io.ntier.shardingsphere;

import com.zaxxer.hikari.HikariDataSource;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.sql.DataSource;

/** The replicas of this proxy process by name of the data source. Filled once, before the proxy accepts clients. */
final class Replicas {
    private static volatile Map<String, Replica> byName = Map.of();

    private Replicas() {
    }

    /** Starts to count the statements of each data source, and to write them down if {@code trace} is not null. */
    static void register(final Map<String, DataSource> dataSources, final Trace trace) {
        Map<String, Replica> replicas = new LinkedHashMap<>();
        dataSources.forEach((name, source) -> replicas.put(name, new Replica(name, (HikariDataSource) source, trace)));
        byName = replicas;
    }

    static Replica get(final String name) {
        return byName.get(name);
    }

    static Collection<Replica> all() {
        return byName.values();
    }
}
