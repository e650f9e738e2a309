package io.ntier.shardingsphere;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.LoggerFactory;

/**
 * Writes one CSV line per use of a replica's connection: when the policy chose, what it saw, when the connection was taken and when
 * it was given back. From the last two alone a reader can rebuild how many statements were pending on each replica at every choice.
 *
 * <p>A line is written when the use has ended, by a thread of its own. If the queue or the file is full the line is dropped; its
 * number is then missing in the file.
 */
final class Trace {
    /**
     * number: of the record since the start, without gaps unless records were dropped; choice_ns: UTC epoch, 0 if the policy was not
     * asked (a write, the proxy's own question); begin_ns, end_ns: connection taken and given back, 0 if it never was taken; replica;
     * seen: pending statements of each replica in the policy's order as it saw them, with | between, empty where it did not look.
     */
    static final String HEADER = "number,choice_ns,begin_ns,end_ns,replica,seen\n";
    static final int NOT_SEEN = -1;
    static final int QUEUE = 65_536; // records between two writings; this proxy does 5,000 statements/s at most
    private static final long WRITE_EVERY_MS = 500;
    private static final long MAX_BYTES = 1L << 30; // ten million statements; /run and /var/log of a node are small

    private final Path file;
    private final long epochNs = System.currentTimeMillis() * 1_000_000 - System.nanoTime();
    private final BlockingQueue<Use> ended = new ArrayBlockingQueue<>(QUEUE);
    private final AtomicLong numbers = new AtomicLong();
    private final ThreadLocal<Use> chosen = new ThreadLocal<>();

    Trace(final Path file) {
        this.file = file;
    }

    /** One use of a connection. The thread that asked the policy goes on to take the connection. */
    static final class Use {
        final Thread thread = Thread.currentThread();
        private final String replica;
        private final int[] seen;
        private long number;
        private long choiceNs;
        private long beginNs;
        private long endNs;

        private Use(final String replica, final int[] seen) {
            this.replica = replica;
            this.seen = seen;
        }

        private void appendTo(final StringBuilder text) {
            text.append(number).append(',').append(choiceNs).append(',').append(beginNs).append(',').append(endNs)
                    .append(',').append(replica).append(',');
            for (int i = 0; i < seen.length; i++) {
                text.append(i > 0 ? "|" : "").append(seen[i] == NOT_SEEN ? "" : seen[i]);
            }
            text.append('\n');
        }
    }

    /** Begins to write. The file is opened anew each time, so that it may be removed: the next line is then preceded by the header. */
    void start() {
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "trace-writer");
            thread.setDaemon(true);
            return thread;
        });
        timer.scheduleWithFixedDelay(this::write, WRITE_EVERY_MS, WRITE_EVERY_MS, TimeUnit.MILLISECONDS);
    }

    /** The policy chose; {@code seen} is not changed any more. */
    void choose(final String replica, final int[] seen) {
        Use before = chosen.get();
        if (before != null) {
            enqueue(before); // its connection never came
        }
        Use use = new Use(replica, seen);
        use.choiceNs = nowNs();
        chosen.set(use);
    }

    /** A connection of the replica was taken by this thread. */
    Use begin(final String replica) {
        Use use = chosen.get();
        if (use != null && use.replica.equals(replica)) {
            chosen.remove();
        } else {
            use = new Use(replica, new int[0]);
        }
        use.beginNs = nowNs();
        return use;
    }

    void end(final Use use) {
        use.endNs = nowNs();
        enqueue(use);
    }

    private void enqueue(final Use use) {
        use.number = numbers.getAndIncrement();
        ended.offer(use);
    }

    private long nowNs() {
        return epochNs + System.nanoTime();
    }

    /** All that has ended since the last time. */
    void write() {
        List<Use> uses = new ArrayList<>(ended.size());
        ended.drainTo(uses);
        if (uses.isEmpty()) {
            return;
        }
        StringBuilder lines = new StringBuilder(uses.size() * 80);
        uses.forEach(use -> use.appendTo(lines));
        try (FileChannel out = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            if (out.size() < MAX_BYTES) {
                out.write(ByteBuffer.wrap(((out.size() == 0 ? HEADER : "") + lines).getBytes(US_ASCII)));
            }
        } catch (IOException e) {
            LoggerFactory.getLogger(Trace.class).error("cannot write {}", file, e);
        }
    }
}
