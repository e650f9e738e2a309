package io.ntier.shardingsphere;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.shardingsphere.sharding.spi.KeyGenerateAlgorithm;

/**
 * Key generator type NTIER_NEXT: the next id of a table, given by the proxy, so that a row has the same id on every replica
 * whatever the order in which concurrent inserts reach them. (C-JDBC let one write after the other through instead.)
 *
 * <p>Properties: {@code table}; {@code proxy} (1, 2, ...) of {@code proxies}: each of several proxies gives ids of its own.
 */
public final class NextId implements KeyGenerateAlgorithm {
    private Properties props = new Properties();
    private String table;
    private int proxy;
    private int proxies;
    private volatile AtomicLong last;

    @Override
    public String getType() {
        return "NTIER_NEXT";
    }

    @Override
    public Properties getProps() {
        return props;
    }

    @Override
    public void setProps(final Properties props) {
        this.props = props;
    }

    @Override
    public void init() {
        table = props.getProperty("table", "");
        proxy = Integer.parseInt(props.getProperty("proxy", "1"));
        proxies = Integer.parseInt(props.getProperty("proxies", "1"));
        if (!table.matches("[a-z_]+") || proxy < 1 || proxy > proxies) {
            throw new IllegalArgumentException("NTIER_NEXT: allowed are a table's name, and 1 <= proxy <= proxies; got " + props);
        }
    }

    /** At most INT's range, which is what the tables have. */
    @Override
    public Comparable<?> generateKey() {
        if (last == null) {
            synchronized (this) {
                if (last == null) {
                    long largest = largest();
                    last = new AtomicLong(largest - Math.floorMod(largest - proxy, proxies)); // the next is beyond largest, and ours
                }
            }
        }
        return Math.toIntExact(last.addAndGet(proxies));
    }

    /** Over all replicas: one that was written to alone, earlier, may be ahead. */
    private long largest() {
        long largest = 0;
        for (Replica replica : Replicas.all()) {
            try (Connection connection = replica.connect(); Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("SELECT MAX(id) FROM " + table)) {
                row.next();
                largest = Math.max(largest, row.getLong(1));
            } catch (SQLException e) {
                throw new IllegalStateException(replica.name() + ": no id for a row of " + table + ": " + e.getMessage(), e);
            }
        }
        return largest;
    }
}
