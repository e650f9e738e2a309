package io.ntier.jmeter;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleListener;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What `run-jmeter` adds to a plan that has thread groups of its own: they start at the moment that the start file says,
 * progress.csv has a heartbeat each second, and after `ntier.total_s` JMeter ends. JMeter tells its listeners of the start one after the other before it
 * makes the first thread, so the listener that waits holds them all.
 *
 * <p>JMeter tells nobody when a sample begins: `started` and `in_flight` stay empty, which means unknown.
 */
public class StartGate extends AbstractTestElement implements TestStateListener, SampleListener {
    static final String HEADER = "t_s,users,started,completed,failed,in_flight,response_time_mean_ms";
    private static final long serialVersionUID = 1;
    private static final Logger LOG = LoggerFactory.getLogger(StartGate.class);
    private static final long BEAT_MS = 1000;
    private static final long LOOK_MS = 20;
    /** From the last sample that counts to the end of the JVM: its line is written meanwhile. */
    private static final long SETTLE_MS = 100;

    /** One in a JVM, since each thread of the plan works on a copy of this element. */
    private static final Beats BEATS = new Beats();

    /** Counts of the samples that the results file gets too. */
    private static final class Beats {
        private RecordFile file;
        private ScheduledExecutorService clock;
        private long completed;
        private long failed;
        private long elapsedMs;
        private long lastCompleted;
        private long lastElapsedMs;

        synchronized void start(Path out) {
            file = new RecordFile(out, HEADER);
            clock = Executors.newSingleThreadScheduledExecutor(task -> {
                Thread thread = new Thread(task, "ntier-clock");
                thread.setDaemon(true);
                thread.setPriority(Thread.MAX_PRIORITY);
                return thread;
            });
            long untilSecond = BEAT_MS - System.currentTimeMillis() % BEAT_MS;
            clock.scheduleAtFixedRate(this::beat, untilSecond, BEAT_MS, TimeUnit.MILLISECONDS);
            Runtime.getRuntime().addShutdownHook(new Thread(this::end, "ntier-close"));
            beat();
        }

        private volatile boolean over;

        /** After the end the thread waits for ever, and its sample does not get into the results either. */
        void sample(SampleResult result) {
            while (over) {
                LockSupport.park();
            }
            count(result);
        }

        private synchronized void count(SampleResult result) {
            completed++;
            failed += result.isSuccessful() ? 0 : 1;
            elapsedMs += result.getTime();
        }

        synchronized void beat() {
            long done = completed - lastCompleted;
            Object mean = done == 0 ? "nan" : (elapsedMs - lastElapsedMs) / done;
            lastCompleted = completed;
            lastElapsedMs = elapsedMs;
            int users = JMeterContextService.getNumberOfThreads();
            String now = String.format(Locale.ROOT, "%.3f", System.currentTimeMillis() / 1e3);
            try {
                file.append(now + "," + users + ",," + completed + "," + failed + ",," + mean + "\n");
                file.flush();
            } catch (UncheckedIOException e) {
                LOG.error("The heartbeat cannot be written: {}", e.toString());
            }
        }

        synchronized void endAt(long epochMs) {
            clock.schedule(this::finish, epochMs - System.currentTimeMillis(), TimeUnit.MILLISECONDS);
        }

        private void finish() {
            over = true;
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(SETTLE_MS));
            Runtime.getRuntime().exit(0);
        }

        /** The last line; called again it does nothing. */
        synchronized void end() {
            clock.shutdownNow();
            beat();
            try {
                file.close();
            } catch (IOException e) {
                LOG.error("The heartbeat cannot be written: {}", e.toString());
            }
        }
    }

    @Override
    public void testStarted() {
        BEATS.start(Path.of(JMeterUtils.getProperty("ntier.out"), "progress.csv"));
        try {
            long startMs = startMs();
            BEATS.endAt(startMs + Math.round(1000 * Double.parseDouble(JMeterUtils.getProperty("ntier.total_s"))));
            Thread.sleep(Math.max(0, startMs - System.currentTimeMillis()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static long startMs() throws InterruptedException {
        Path file = Path.of(JMeterUtils.getProperty("ntier.start_file"));
        while (true) {
            try {
                return Long.parseLong(Files.readString(file).strip());
            } catch (NoSuchFileException e) {
                Thread.sleep(LOOK_MS);
            } catch (IOException | NumberFormatException e) {
                throw SessionController.fail("start file '" + file + "' has no time in epoch ms: " + e);
            }
        }
    }

    @Override
    public void sampleOccurred(SampleEvent event) {
        BEATS.sample(event.getResult());
    }

    @Override
    public void sampleStarted(SampleEvent event) {
        // JMeter never calls it.
    }

    @Override
    public void sampleStopped(SampleEvent event) {
        // Neither.
    }

    @Override
    public void testEnded() {
        BEATS.end();
    }

    @Override
    public void testStarted(String host) {
        testStarted();
    }

    @Override
    public void testEnded(String host) {
        testEnded();
    }
}
