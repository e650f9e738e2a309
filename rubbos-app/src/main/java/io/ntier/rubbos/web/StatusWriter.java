package io.ntier.rubbos.web;

import io.ntier.rubbos.db.ConnectionPool;
import java.io.IOException;
import java.lang.management.CompilationMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Appends a line per second to a CSV file: Tomcat's threads and connections, the connection pools (all summed; pool_waiting =
 * requests that wait for a connection), and the JVM's garbage collections and compilation (cumulative). t_s is UTC epoch seconds.
 */
final class StatusWriter {
    static final String HEADER =
            "t_s,busy_threads,max_threads,connections,pool_active,pool_waiting,pool_size,gc_count,gc_ms,jit_ms\n";
    private static final long APART_NS = 500_000_000;
    private static final Logger LOG = Logger.getLogger(StatusWriter.class.getName());

    private final Path file;
    private final Collection<ConnectionPool> pools;
    private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "rubbos-status");
        thread.setDaemon(true);
        return thread;
    });
    private long lastNs = System.nanoTime() - APART_NS;
    private boolean failed;

    StatusWriter(Path file, Collection<ConnectionPool> pools) {
        this.file = file;
        this.pools = pools;
    }

    void start() {
        timer.scheduleAtFixedRate(this::append, 0, 1, TimeUnit.SECONDS);
    }

    void stop() {
        timer.shutdownNow();
    }

    /**
     * Opens the file anew each time, so that it may be moved away; a failure is logged once and does not end the writing.
     * A beat that makes up for a late one comes right behind it, and is left out: nothing happened between the two.
     */
    void append() {
        long nowNs = System.nanoTime();
        if (nowNs - lastNs < APART_NS) {
            return;
        }
        lastNs = nowNs;
        try {
            String line = line();
            try (FileChannel status = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
                // Asked of the open file: one by this name may be removed at any moment.
                String text = status.size() == 0 ? HEADER + line : line;
                status.write(ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
            }
            failed = false;
        } catch (IOException | JMException | RuntimeException e) {
            if (!failed) {
                LOG.log(Level.WARNING, "cannot write the status to {0}: {1}", new Object[] {file, e.toString()});
            }
            failed = true;
        }
    }

    String line() throws JMException {
        long busy = 0;
        long max = 0;
        long connections = 0;
        Set<ObjectName> connectors = beans.queryNames(new ObjectName("*:type=ThreadPool,*"), null);
        for (ObjectName connector : connectors) {
            if (connector.getKeyProperty("subType") == null) {
                busy += number(connector, "currentThreadsBusy");
                max += number(connector, "maxThreads");
                connections += number(connector, "connectionCount");
            }
        }
        long active = pools.stream().mapToLong(ConnectionPool::active).sum();
        long waiting = pools.stream().mapToLong(ConnectionPool::waiting).sum();
        long size = pools.stream().mapToLong(ConnectionPool::size).sum();
        long gcCount = 0;
        long gcMs = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            gcCount += collector.getCollectionCount();
            gcMs += collector.getCollectionTime();
        }
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        return String.format(Locale.ROOT, "%.3f,%d,%d,%d,%d,%d,%d,%d,%d,%d%n", System.currentTimeMillis() / 1000.0, busy, max,
                connections, active, waiting, size, gcCount, gcMs, compiler.getTotalCompilationTime());
    }

    private long number(ObjectName bean, String attribute) throws JMException {
        return ((Number) beans.getAttribute(bean, attribute)).longValue();
    }
}
