package io.ntier.jmeter;

import java.util.SplittableRandom;

/**
 * Random streams: one per (seed, user, purpose), so that a user draws the same whatever the others do and however the
 * users are split over client nodes, and so that a page with more links does not shift the user's transitions or
 * thinks.
 */
final class Streams {
    /** What a stream is used for. */
    enum Purpose {
        CHOICES,
        THINKS,
        PARAMETERS,
        CHECKS,
        ROLE,
        SITUATION,
        TRACE
    }

    private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

    private Streams() {}

    static SplittableRandom of(long seed, int user, Purpose purpose) {
        long hash = mix(seed + GOLDEN_GAMMA);
        hash = mix(hash ^ (user + 1L) * GOLDEN_GAMMA);
        return new SplittableRandom(mix(hash ^ (purpose.ordinal() + 1L) * GOLDEN_GAMMA));
    }

    /** Finalizer of the 64-bit mix function by Stafford (variant 13), as in SplitMix64 (Steele, Lea, Flood 2014). */
    private static long mix(long value) {
        long z = (value ^ (value >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
