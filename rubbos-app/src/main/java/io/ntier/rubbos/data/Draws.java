package io.ntier.rubbos.data;

/**
 * A stream of random draws (SplitMix64; Steele, Lea and Flood, OOPSLA 2014). Own code rather than a library class, so that
 * the data do not change with the JDK. Each row group has its own stream, so that one table does not depend on another's size.
 */
final class Draws {
    private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

    private long state;

    /** @param stream what the draws are for; the same seed and stream give the same draws. */
    Draws(long seed, String stream, long index) {
        state = mix(seed) ^ mix(stream.hashCode() * 31L + 1) ^ mix(~index);
    }

    private static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    private long next() {
        state += GOLDEN_GAMMA;
        return mix(state);
    }

    /** Uniform in 0..bound-1; bound below 2^31 (bias below 2^-33). */
    int below(int bound) {
        return (int) (((next() >>> 32) * bound) >>> 32);
    }

    /** Uniform in low..high, both included. */
    int between(int low, int high) {
        return low + below(high - low + 1);
    }

    /** Uniform in [0, 1). */
    double unit() {
        return (next() >>> 11) * 0x1.0p-53;
    }
}
