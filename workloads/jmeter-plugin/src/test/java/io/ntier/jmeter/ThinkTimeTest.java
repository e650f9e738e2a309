package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;

class ThinkTimeTest {
    private static final int DRAWS = 100_000;
    /** Kolmogorov-Smirnov, p = 0.001: c / sqrt(n) with c = 1.949 (conservative for the ties of whole ms). */
    private static final double CRITICAL = 1.949 / Math.sqrt(DRAWS);

    private static final ThinkTime TPC_W = new ThinkTime(7000, ThinkTime.CAP);

    /** P(T <= t) of TPC-W's think time: an atom of the cap's size at 0, then the exponential up to ten means. */
    private static double distribution(double t) {
        return Math.min(1, TPC_W.cap() + 1 - Math.exp(-t / TPC_W.meanMs()));
    }

    private static double ks(LongSupplier draw) {
        double[] draws = new double[DRAWS];
        Arrays.setAll(draws, i -> draw.getAsLong());
        Arrays.sort(draws);
        double distance = 0;
        for (int i = 0; i < DRAWS; i++) {
            if (i + 1 < DRAWS && draws[i + 1] == draws[i]) {
                continue; // whole ms: the step is complete at the last of equal draws, up to half a ms above
            }
            distance = Math.max(distance, Math.abs((i + 1.0) / DRAWS - distribution(draws[i] + 0.5)));
        }
        return distance;
    }

    @Test
    void drawsAreExponentialWithTheCapOfTpcW() {
        SplittableRandom random = Streams.of(1, 1, Streams.Purpose.THINKS);
        double distance = ks(() -> TPC_W.drawMs(random));
        assertTrue(distance < CRITICAL, "KS distance " + distance + " >= " + CRITICAL);
    }

    @Test
    void aNearlyConstantPoissonTimerFailsTheSameTest() {
        Random random =
                new Random(1); // JMeter's Poisson Random Timer: a Poisson number of ms, sd 84 ms at a mean of 7 s
        double distance = ks(() -> Math.round(7000 + Math.sqrt(7000) * random.nextGaussian()));
        assertTrue(distance > 100 * CRITICAL, "KS distance " + distance);
    }

    @Test
    void theMeanIsThatOfTheTruncatedExponential() {
        assertEquals(6996.5, TPC_W.expectedMs(), 0.1);
        SplittableRandom random = Streams.of(1, 2, Streams.Purpose.THINKS);
        double sum = 0;
        long longest = 0;
        for (int i = 0; i < 1_000_000; i++) {
            long drawn = TPC_W.drawMs(random);
            sum += drawn;
            longest = Math.max(longest, drawn);
        }
        assertEquals(TPC_W.expectedMs(), sum / 1e6, 4 * 7.0); // four standard errors: 7 s / sqrt(1e6) = 7 ms each
        assertTrue(longest <= 70_001, "no think of more than ten means: " + longest);
    }

    @Test
    void impossibleParametersAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new ThinkTime(-1, 0));
        assertThrows(IllegalArgumentException.class, () -> new ThinkTime(Double.NaN, 0));
        assertThrows(IllegalArgumentException.class, () -> new ThinkTime(7000, 1));
    }
}
