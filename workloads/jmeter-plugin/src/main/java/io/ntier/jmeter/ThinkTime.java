package io.ntier.jmeter;

import java.util.random.RandomGenerator;

/**
 * TPC-W think time as the RUBBoS client draws it: t = round(-mean ln r) ms, r uniform in [0, 1); r below the cap gives
 * 0 instead of a think of ten means or more (TPC-W's cap of 70 s becomes 0 in the original).
 */
record ThinkTime(double meanMs, double cap) {
    /** e^-10, rounded as in the original. */
    static final double CAP = 4.54e-5;

    ThinkTime {
        if (!(meanMs >= 0 && meanMs <= 3.6e6)) {
            throw new IllegalArgumentException("think time mean " + meanMs + " ms is not in 0..3600000");
        }
        if (!(cap >= 0 && cap < 1)) {
            throw new IllegalArgumentException("think time cap " + cap + " is not a probability in 0..1");
        }
    }

    /** A think time in whole ms. */
    long drawMs(RandomGenerator random) {
        double r = random.nextDouble();
        return r < cap || r == 0 ? 0 : Math.round(-meanMs * Math.log(r));
    }

    /** Mean of the draws in ms: mean (1 - cap + cap ln cap); 6996.5 for 7000. */
    double expectedMs() {
        return cap == 0 ? meanMs : meanMs * (1 - cap + cap * Math.log(cap));
    }
}
