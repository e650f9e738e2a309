package io.ntier.shardingsphere;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;

/** Chooses the replica of one read: an index into the list of replicas. */
@FunctionalInterface
interface Choice {
    /**
     * Index of the chosen replica, 0..{@code replicas} - 1.
     *
     * @param replicas number of replicas, at least 1
     * @param pending number of pending statements of the replica with the given index
     */
    int choose(int replicas, IntUnaryOperator pending);

    /**
     * The choice with a name.
     *
     * @param policy least_pending, round_robin or random
     * @param tie for least_pending: first (C-JDBC) or random
     * @throws IllegalArgumentException naming the setting and its allowed values
     */
    static Choice of(final String policy, final String tie) {
        return switch (policy) {
            case "least_pending" -> switch (tie) {
                case "first" -> Choice::leastPendingFirst;
                case "random" -> Choice::leastPendingRandom;
                default -> throw unknown("tie", tie, "first, random");
            };
            case "round_robin" -> roundRobin();
            case "least_connections" -> throw new IllegalArgumentException("policy: least_connections is least_pending here: a replica's"
                    + " connections in use are its pending statements, each of which takes one; write least_pending");
            case "random" -> (replicas, pending) -> ThreadLocalRandom.current().nextInt(replicas);
            default -> throw unknown("policy", policy, "least_pending, round_robin, random");
        };
    }

    /** RAIDb1_LPRF of C-JDBC: in list order, strictly smaller wins, an idle replica ends the scan. */
    private static int leastPendingFirst(final int replicas, final IntUnaryOperator pending) {
        int best = 0;
        int least = Integer.MAX_VALUE;
        for (int i = 0; i < replicas && least > 0; i++) {
            int count = pending.applyAsInt(i);
            if (count < least) {
                least = count;
                best = i;
            }
        }
        return best;
    }

    /** The same, but every replica with the least number has the same chance. */
    private static int leastPendingRandom(final int replicas, final IntUnaryOperator pending) {
        int best = 0;
        int least = Integer.MAX_VALUE;
        int ties = 0;
        for (int i = 0; i < replicas; i++) {
            int count = pending.applyAsInt(i);
            if (count < least) {
                least = count;
                best = i;
                ties = 1;
            } else if (count == least && ThreadLocalRandom.current().nextInt(++ties) == 0) {
                best = i;
            }
        }
        return best;
    }

    private static Choice roundRobin() {
        AtomicInteger next = new AtomicInteger();
        return (replicas, pending) -> Integer.remainderUnsigned(next.getAndIncrement(), replicas);
    }

    private static IllegalArgumentException unknown(final String setting, final String value, final String allowed) {
        return new IllegalArgumentException(
                "load balancer NTIER, " + setting + ": unknown value '" + value + "' (allowed: " + allowed + ")");
    }
}
