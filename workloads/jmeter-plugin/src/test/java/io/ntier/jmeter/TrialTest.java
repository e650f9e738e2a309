package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What happens at the end of a trial to a user who waits for an answer. */
class TrialTest {
    private static final long LIMIT_MS = 20_000;

    @TempDir
    Path folder;

    private final AtomicInteger aborted = new AtomicInteger();

    private Trial trial(boolean endsAtOnce, long lastsMs) {
        Mix mix = MixTest.mix("Home,Home,0.5", "Home,EndOfSession,0.5");
        Schedule schedule = Schedule.of(System.currentTimeMillis(), 0, lastsMs / 1e3, 0, 1);
        return new Trial(new Trial.Setup(
                mix, mix, 0, 1, 0, 0, 1000, new Situations(0, 0), 0, 0, schedule, null, folder, endsAtOnce));
    }

    private static void await(BooleanSupplier what) throws InterruptedException {
        long until = System.currentTimeMillis() + LIMIT_MS;
        while (!what.getAsBoolean()) {
            assertTrue(System.currentTimeMillis() < until, "it does not come");
            Thread.sleep(10);
        }
    }

    @Test
    void whoNeedNotBeWaitedForIsCutOffWithoutAnAbortAndNotedOnce() throws Exception {
        try (Trial trial = trial(true, 200)) {
            trial.leaveCutOff();
            User user = trial.newUser(0, aborted::incrementAndGet);
            user.beginRequest();
            assertFalse(trial.isCutOff(0), "its time is not over");
            await(() -> trial.isCutOff(0) || aborted.get() > 0);
            assertEquals(0, aborted.get());
            assertFalse(user.endRequest(), "an answer that comes now does not count");
            assertFalse(trial.isCutOff(0), "it has its answer, and ends by itself");
        }
        List<String> lives = Files.readAllLines(folder.resolve("users.csv"));
        assertEquals(2, lives.size());
        assertTrue(lives.get(1).contains(",Home,"), lives.get(1));
    }

    @Test
    void whoIsWaitedForAfterAllIsAbortedAfterAWhile() throws Exception {
        try (Trial trial = trial(true, 0)) {
            trial.leaveCutOff();
            trial.newUser(0, aborted::incrementAndGet).beginRequest();
            await(() -> aborted.get() > 0);
        }
    }

    @ParameterizedTest
    @CsvSource({"true, false", "false, true", "false, false"})
    void whoIsWaitedForIsAborted(boolean endsAtOnce, boolean unawaited) throws Exception {
        try (Trial trial = trial(endsAtOnce, 0)) {
            if (unawaited) {
                trial.leaveCutOff();
            }
            User user = trial.newUser(0, aborted::incrementAndGet);
            user.beginRequest();
            await(() -> aborted.get() > 0);
            assertFalse(trial.isCutOff(0));
        }
    }
}
