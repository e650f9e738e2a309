package io.ntier.shardingsphere;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.LoggerFactory;

/** Appends one line per replica and second to a CSV file, until the process ends. */
final class StatusWriter {
    /**
     * t_s: UTC epoch; pending: statements sent to the replica and not done; awaiting: those of them that wait for a
     * connection; pool_size: most connections of the pool; executed_total, chosen_total: statements done, reads sent here by
     * the policy, since the start.
     */
    static final String HEADER = "t_s,replica,pending,awaiting,pool_size,executed_total,chosen_total\n";

    private static final long APART_NS = 500_000_000;

    private final Path file;
    private long lastNs = System.nanoTime() - APART_NS;

    StatusWriter(final Path file) {
        this.file = file;
    }

    /** Starts writing at full seconds. Each second opens the file anew, so that another program may replace it. */
    static void start(final Path file) throws IOException {
        StatusWriter writer = new StatusWriter(file);
        if (Files.notExists(file) || Files.size(file) == 0) {
            writer.append(HEADER);
        }
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "status-writer");
            thread.setDaemon(true);
            return thread;
        });
        long untilFullSecondMs = 1000 - System.currentTimeMillis() % 1000;
        timer.scheduleAtFixedRate(writer::write, untilFullSecondMs, 1000, TimeUnit.MILLISECONDS);
    }

    /** A beat that makes up for a late one comes right behind it, and is left out: nothing happened between the two. */
    void write() {
        long nowNs = System.nanoTime();
        if (nowNs - lastNs < APART_NS) {
            return;
        }
        lastNs = nowNs;
        long nowMs = System.currentTimeMillis();
        StringBuilder lines = new StringBuilder();
        Replicas.all().forEach(replica -> lines.append(replica.statusLine(nowMs)));
        try {
            append(lines.toString());
        } catch (IOException e) {
            LoggerFactory.getLogger(StatusWriter.class).error("cannot write {}", file, e);
        }
    }

    private void append(final String text) throws IOException {
        Files.writeString(file, text, US_ASCII, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
