package io.ntier.jmeter;

/**
 * When users start and when all stops, in epoch ms. Users of all client nodes share one schedule: user k of this client
 * starts at (k / users) of the first half of the ramp-up, so that k clients interleave instead of adding steps.
 *
 * @param startMs begin of the ramp-up
 * @param rampUpMs length of the ramp-up; starts are spread over its first half
 * @param endMs end of the ramp-down: everything stops
 * @param users number of users of this client
 */
record Schedule(long startMs, long rampUpMs, long endMs, int users) {
    static Schedule of(long startMs, double rampUpS, double runS, double rampDownS, int users) {
        double[] phases = {rampUpS, runS, rampDownS};
        String[] names = {"ramp-up", "run", "ramp-down"};
        for (int i = 0; i < phases.length; i++) {
            if (!(phases[i] >= 0)) {
                throw new IllegalArgumentException(names[i] + " of " + phases[i] + " s: must be 0 or more");
            }
        }
        long rampUpMs = Math.round(1000 * rampUpS);
        return new Schedule(startMs, rampUpMs, startMs + rampUpMs + Math.round(1000 * (runS + rampDownS)), users);
    }

    /** The same phases from another start on. */
    Schedule at(long epochMs) {
        return new Schedule(epochMs, rampUpMs, endMs - startMs + epochMs, users);
    }

    /** Start of the user with this index (0..users-1), epoch ms. */
    long startOf(int index) {
        return startMs + rampUpMs / 2 * index / Math.max(1, users);
    }
}
