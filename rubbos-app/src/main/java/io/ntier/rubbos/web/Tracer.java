package io.ntier.rubbos.web;

import io.ntier.rubbos.db.StatementTrace;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Follows requests that carry a sampled W3C trace context (header {@code traceparent}): their own time, the wait for a connection and
 * each statement go as spans into a CSV file, and each statement carries the context on in a comment of sqlcommenter's form. Others
 * cost the look for the header. Times are UTC epoch microseconds, of one monotonic clock within a request.
 */
final class Tracer implements AutoCloseable {
    static final String HEADER = "trace_id,span_id,parent_id,kind,name,start_us,duration_us\n";
    private static final Logger LOG = Logger.getLogger(Tracer.class.getName());
    private static final Pattern CONTEXT = Pattern.compile("00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})");
    /** A statement's text is cut here: its beginning says which one it is. */
    private static final int NAME_CHARS = 120;
    private static final long LAST_LINES_S = 5;

    private final Path file;
    private final ExecutorService writer = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "rubbos-trace");
        thread.setDaemon(true);
        return thread;
    });
    private boolean failed;

    Tracer(Path file) {
        this.file = file;
    }

    /** Null unless the header is a context that somebody sampled. */
    Request begin(String header) {
        if (header == null) {
            return null;
        }
        Matcher context = CONTEXT.matcher(header);
        boolean sampled = context.matches() && (Integer.parseInt(context.group(3), 16) & 1) == 1;
        return sampled ? new Request(context.group(1), context.group(2)) : null;
    }

    /** One request; used by its own thread. */
    final class Request implements StatementTrace {
        private final String traceId;
        private final String parentId;
        private final String spanId = newId();
        private final Instant epoch = Instant.now();
        private final long beginNs = System.nanoTime();
        private final StringBuilder lines = new StringBuilder();
        private long statementNs;
        private String statementId;
        private String statement;

        private Request(String traceId, String parentId) {
            this.traceId = traceId;
            this.parentId = parentId;
        }

        @Override
        public void waited(long fromNs) {
            line(newId(), spanId, "internal", "wait for a connection", fromNs, System.nanoTime());
        }

        @Override
        public String begin(String sql) {
            statementNs = System.nanoTime();
            statementId = newId();
            statement = sql;
            return sql + " /*traceparent='00-" + traceId + "-" + statementId + "-01'*/";
        }

        @Override
        public void end() {
            if (statement != null) {
                line(statementId, spanId, "client", statement, statementNs, System.nanoTime());
                statement = null;
            }
        }

        /** The answer was handed over; the lines are written by another thread. */
        void end(String interaction) {
            line(spanId, parentId, "server", interaction, beginNs, System.nanoTime());
            String text = lines.toString();
            writer.execute(() -> append(text));
        }

        private void line(String id, String parent, String kind, String name, long fromNs, long toNs) {
            long startUs = TimeUnit.SECONDS.toMicros(epoch.getEpochSecond()) + (epoch.getNano() + fromNs - beginNs) / 1000;
            lines.append(traceId).append(',').append(id).append(',').append(parent).append(',').append(kind).append(",\"")
                    .append(shortened(name)).append("\",").append(startUs).append(',').append((toNs - fromNs) / 1000).append('\n');
        }
    }

    private static String shortened(String name) {
        String line = name.replaceAll("\\s+", " ").replace('"', '\'').strip();
        return line.length() <= NAME_CHARS ? line : line.substring(0, NAME_CHARS);
    }

    private static String newId() {
        long id;
        do {
            id = ThreadLocalRandom.current().nextLong();
        } while (id == 0);
        return String.format("%016x", id);
    }

    /** Opens the file anew each time, so that it may be moved away; a failure is logged once. */
    private void append(String text) {
        try (FileChannel spans = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            spans.write(ByteBuffer.wrap((spans.size() == 0 ? HEADER + text : text).getBytes(StandardCharsets.UTF_8)));
            failed = false;
        } catch (IOException e) {
            if (!failed) {
                LOG.log(Level.WARNING, "cannot write spans to {0}: {1}", new Object[] {file, e.toString()});
            }
            failed = true;
        }
    }

    /** What ended before is in the file afterwards. */
    @Override
    public void close() {
        writer.shutdown();
        try {
            writer.awaitTermination(LAST_LINES_S, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
