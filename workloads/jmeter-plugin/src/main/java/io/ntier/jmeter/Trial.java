package io.ntier.jmeter;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What all users of one test run share: mixes, schedule, counters, the logs, the heartbeat and the stop at the end.
 * Logs (in the output directory): thinks.csv (one line per think), users.csv (one line per user, at its end),
 * progress.csv (each second), traces.csv (one line per interaction with a trace context, if any may have one). Times are epoch ms or s with a fraction.
 */
final class Trial implements Closeable {
    /**
     * @param users mix of ordinary users
     * @param authors mix of authors
     * @param authorShare probability that a user is an author, for life
     * @param seed of all draws
     * @param firstUser number of this client's first user
     * @param firstLeaver number of the first user of this client who leaves during the ramp-up
     * @param maxTransitions transitions after which a session ends in any case
     * @param situations where users start; one that keeps none of its own and is empty: at home
     * @param keepSituations how many situations of its users the trial writes, to situations.csv
     * @param traceEvery one interaction of so many carries a trace context; 0: none
     * @param schedule starts and end
     * @param startFile where the schedule's start will be found, epoch ms; null: the schedule's own counts
     * @param out directory of the logs; null: none are written
     * @param endsAtOnce whether the JVM ends as soon as the test does
     */
    record Setup(
            Mix users,
            Mix authors,
            double authorShare,
            long seed,
            int firstUser,
            int firstLeaver,
            int maxTransitions,
            Situations situations,
            int keepSituations,
            int traceEvery,
            Schedule schedule,
            Path startFile,
            Path out,
            boolean endsAtOnce) {}

    private static final Logger LOG = LoggerFactory.getLogger(Trial.class);
    private static final long BEAT_MS = 1000;
    /** A request may start just when the end strikes; the stop is repeated until nobody is left. */
    private static final long STOP_AGAIN_MS = 100;
    /** So long after the end requests are aborted after all: another thread group may wait for these users. */
    private static final long ABORT_AFTER_MS = 2_000;
    /** How often the start file is looked for: far less than what a caller needs to write it on several clients. */
    private static final long LOOK_MS = 20;
    /** A caller that died must not leave its JVM waiting for ever. */
    private static final long WAIT_AT_MOST_MS = 300_000;

    final Setup setup;
    final Counters counters = new Counters();
    final Situations kept;
    private final RecordFile thinks;
    private final RecordFile users;
    private final RecordFile progress;
    private final RecordFile traces;
    private final Map<Integer, User> running = new ConcurrentHashMap<>();
    private final Set<User> leavers = ConcurrentHashMap.newKeySet();
    private final CompletableFuture<Schedule> schedule = new CompletableFuture<>();
    private final ScheduledExecutorService clock;
    private volatile boolean unawaited;
    private final Thread atExit = new Thread(this::closeQuietly, "ntier-close");

    Trial(Setup setup) {
        this.setup = setup;
        kept = new Situations(setup.out() == null ? 0 : setup.keepSituations(), setup.seed());
        thinks = file("thinks.csv", "t_start_ms,user,state,drawn_ms,actual_ms");
        users = file(
                "users.csv",
                "user,t_start_ms,t_end_ms,pending_ms,pending_state,author,sessions,interactions,errors,lost");
        progress = file("progress.csv", Counters.HEADER);
        traces = setup.traceEvery() == 0 ? null : file("traces.csv", "t_start_ms,user,trace_id,span_id");
        clock = Executors.newScheduledThreadPool(2, task -> {
            Thread thread = new Thread(task, "ntier-clock");
            thread.setDaemon(true);
            thread.setPriority(Thread.MAX_PRIORITY);
            return thread;
        });
        long now = System.currentTimeMillis();
        clock.execute(this::beat); // at once: whoever waits for all clients to be ready need not wait for a full second
        clock.scheduleAtFixedRate(this::beat, BEAT_MS - now % BEAT_MS, BEAT_MS, TimeUnit.MILLISECONDS);
        if (setup.startFile() == null) {
            start(setup.schedule());
        } else {
            lookForStart(now + WAIT_AT_MOST_MS);
        }
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    private void lookForStart(long untilMs) {
        try {
            start(setup.schedule().at(Long.parseLong(Files.readString(setup.startFile()).strip())));
        } catch (NoSuchFileException e) {
            if (System.currentTimeMillis() < untilMs) {
                clock.schedule(() -> lookForStart(untilMs), LOOK_MS, TimeUnit.MILLISECONDS);
            } else {
                neverStart("did not come within " + WAIT_AT_MOST_MS / 1000 + " s");
            }
        } catch (IOException | NumberFormatException e) {
            neverStart("has no time in epoch ms: " + e);
        }
    }

    private void neverStart(String why) {
        schedule.completeExceptionally(SessionController.fail("start file '" + setup.startFile() + "' " + why));
    }

    private void start(Schedule known) {
        long leftMs = Math.max(0, known.endMs() - System.currentTimeMillis());
        clock.scheduleWithFixedDelay(this::stopUsers, leftMs, STOP_AGAIN_MS, TimeUnit.MILLISECONDS);
        if (known.leavers() > 0) {
            long stayMs = Math.max(0, known.startMs() + known.leaveMs() - System.currentTimeMillis());
            clock.scheduleWithFixedDelay(this::stopLeavers, stayMs, STOP_AGAIN_MS, TimeUnit.MILLISECONDS);
        }
        schedule.complete(known);
    }

    /** Waits until the start is known. */
    Schedule awaitSchedule() throws InterruptedException {
        try {
            return schedule.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    /** Users run only when it is known. */
    Schedule schedule() {
        return schedule.join();
    }

    private RecordFile file(String name, String header) {
        return setup.out() == null ? null : new RecordFile(setup.out().resolve(name), header);
    }

    /** Epoch time in microseconds. */
    static long nowUs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    /** Microseconds as ms with three decimals. */
    static String ms(long us) {
        String text = Long.toString(us);
        if (text.length() < 4) {
            text = "0000".substring(text.length()) + text;
        }
        int point = text.length() - 3;
        return text.substring(0, point) + "." + text.substring(point);
    }

    User newUser(int index, Runnable interrupt) {
        Schedule known = schedule();
        boolean leaves = known.leaves(index);
        int id = leaves ? setup.firstLeaver() + index - known.staying() : setup.firstUser() + index;
        SplittableRandom role = Streams.of(setup.seed(), id, Streams.Purpose.ROLE);
        User user = new User(this, index, id, role.nextDouble() < setup.authorShare(), known.endOf(index), interrupt);
        running.put(index, user);
        if (leaves) {
            leavers.add(user);
        }
        counters.users.incrementAndGet();
        return user;
    }

    void logThink(long startUs, int user, String state, long drawnMs, long actualUs) {
        if (thinks != null) {
            thinks.append(ms(startUs) + "," + user + "," + state + "," + drawnMs + "," + ms(actualUs) + "\n");
        }
    }

    void logTrace(long startMs, int user, TraceContext context) {
        if (traces != null) {
            traces.append(startMs + "," + user + "," + context.traceId() + "," + context.spanId() + "\n");
        }
    }

    void logUser(User user, String line) {
        leavers.remove(user);
        if (running.remove(user.index, user)) {
            counters.users.decrementAndGet();
            if (users != null) {
                users.append(line);
            }
        }
    }

    private void beat() {
        try {
            if (progress != null) {
                progress.append(counters.beat(nowUs() / 1e6));
                progress.flush();
                thinks.flush();
                users.flush();
                if (traces != null) {
                    traces.flush();
                }
            }
        } catch (UncheckedIOException e) {
            LOG.error("The logs cannot be written: {}", e.toString());
        }
    }

    /** Who runs the users says that it does not wait for those who are cut off. */
    void leaveCutOff() {
        unawaited = setup.endsAtOnce();
    }

    /**
     * To abort the requests of a thousand users takes a second of CPU. If nobody waits for them, and the JVM ends with
     * the test, its end cuts them all.
     */
    private void stopUsers() {
        boolean abort = !unawaited || System.currentTimeMillis() >= schedule().endMs() + ABORT_AFTER_MS;
        running.values().forEach(abort ? User::stop : User::cutOff);
    }

    /** Whether the trial is over for the user with this index while it waits for an answer, and nobody need wait for it. */
    boolean isCutOff(int index) {
        User user = running.get(index);
        return unawaited && user != null && user.isCutOff();
    }

    private void stopLeavers() {
        leavers.forEach(User::stop);
    }

    private void closeQuietly() {
        try {
            finish();
        } catch (IOException e) {
            LOG.error("The logs cannot be written: {}", e.toString());
        }
    }

    private synchronized void finish() throws IOException {
        clock.shutdownNow();
        running.values().forEach(User::end);
        if (progress != null) {
            progress.append(counters.beat(nowUs() / 1e6));
            thinks.close();
            users.close();
            progress.close();
        }
        if (traces != null) {
            traces.close();
        }
        if (kept.keeps()) {
            kept.write(setup.out().resolve("situations.csv"));
        }
    }

    @Override
    public void close() throws IOException {
        Runtime.getRuntime().removeShutdownHook(atExit);
        finish();
    }
}
