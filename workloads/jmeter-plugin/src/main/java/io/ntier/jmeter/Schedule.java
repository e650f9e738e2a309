package io.ntier.jmeter;

/**
 * When users start and when they stop, in epoch ms. Users of all client nodes share one schedule: user k of this client
 * starts at (k / all) of the time for starts, so that k clients interleave instead of adding steps. That time is the
 * first half of the ramp-up, or, if some users leave during the ramp-up, the first half of their stay.
 *
 * @param startMs begin of the ramp-up
 * @param rampUpMs length of the ramp-up
 * @param endMs end of the ramp-down: everything stops
 * @param users number of users of this client, those who leave among them; these come last
 * @param leavers number of users of this client who leave during the ramp-up
 * @param leaveMs when they leave, from the begin of the ramp-up on
 */
record Schedule(long startMs, long rampUpMs, long endMs, int users, int leavers, long leaveMs) {
    static Schedule of(long startMs, double rampUpS, double runS, double rampDownS, int users) {
        double[] phases = {rampUpS, runS, rampDownS};
        String[] names = {"ramp-up", "run", "ramp-down"};
        for (int i = 0; i < phases.length; i++) {
            if (!(phases[i] >= 0)) {
                throw new IllegalArgumentException(names[i] + " of " + phases[i] + " s: must be 0 or more");
            }
        }
        long rampUpMs = Math.round(1000 * rampUpS);
        long endMs = startMs + rampUpMs + Math.round(1000 * (runS + rampDownS));
        return new Schedule(startMs, rampUpMs, endMs, users, 0, 0);
    }

    /** The same, but so many of the users leave so many seconds after the begin of the ramp-up. */
    Schedule leaving(int number, double afterS) {
        if (number < 0 || number > users) {
            throw new IllegalArgumentException(number + " of " + users + " users leave: must be 0 to " + users);
        }
        long afterMs = Math.round(1000 * afterS);
        if (number > 0 && !(afterMs > 0 && afterMs <= rampUpMs)) {
            throw new IllegalArgumentException("users leave after " + afterS + " s: must be above 0 and at most "
                    + rampUpMs / 1000.0 + " (the ramp-up)");
        }
        return new Schedule(startMs, rampUpMs, endMs, users, number, number > 0 ? afterMs : 0);
    }

    /** The same phases from another start on. */
    Schedule at(long epochMs) {
        return new Schedule(epochMs, rampUpMs, endMs - startMs + epochMs, users, leavers, leaveMs);
    }

    /** Number of users of this client who stay to the end. */
    int staying() {
        return users - leavers;
    }

    /** Whether the user with this index (0..users-1) leaves during the ramp-up. */
    boolean leaves(int index) {
        return index >= staying();
    }

    /** Start of the user with this index, epoch ms. */
    long startOf(int index) {
        return startMs + (leavers > 0 ? leaveMs : rampUpMs) / 2 * index / Math.max(1, users);
    }

    /** End of the user with this index, epoch ms. */
    long endOf(int index) {
        return leaves(index) ? startMs + leaveMs : endMs;
    }
}
