package io.ntier.shardingsphere;

import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.shardingsphere.readwritesplitting.spi.ReplicaLoadBalanceAlgorithm;

/**
 * Load balancer type NTIER: the proxy asks it for each read outside a transaction. Properties: {@code policy}, {@code tie}
 * (see {@link Choice#of}). With one replica the proxy does not ask.
 */
public final class ReadBalance implements ReplicaLoadBalanceAlgorithm {
    private Properties props = new Properties();
    private Choice choice;

    @Override
    public String getType() {
        return "NTIER";
    }

    @Override
    public Properties getProps() {
        return props;
    }

    @Override
    public void setProps(final Properties props) {
        this.props = props;
        choice = Choice.of(props.getProperty("policy", "least_pending"), props.getProperty("tie", "first"));
    }

    @Override
    public String getDataSource(final String rule, final String writer, final List<String> readers) {
        int[] seen = new int[readers.size()];
        Arrays.fill(seen, Trace.NOT_SEEN);
        String name = readers.get(choice.choose(seen.length, i -> seen[i] = Replicas.get(readers.get(i)).pending()));
        Replicas.get(name).markChosen(seen);
        return name;
    }
}
