package io.ntier.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ChoiceTest {
    private static int choose(final String policy, final String tie, final int... pending) {
        return Choice.of(policy, tie).choose(pending.length, i -> pending[i]);
    }

    private static int[] shares(final Choice choice, final int reads, final int... pending) {
        int[] count = new int[pending.length];
        for (int i = 0; i < reads; i++) {
            count[choice.choose(pending.length, n -> pending[n])]++;
        }
        return count;
    }

    @Test
    void theReplicaWithTheLeastPendingStatementsIsChosen() {
        assertEquals(2, choose("least_pending", "first", 3, 2, 1, 4));
        assertEquals(2, choose("least_pending", "random", 3, 2, 1, 4));
    }

    @Test
    void aTieGoesToTheFirst() {
        assertEquals(0, choose("least_pending", "first", 0, 0, 0));
        assertEquals(1, choose("least_pending", "first", 5, 2, 2));
    }

    @Test
    void anIdleReplicaEndsTheScan() {
        List<Integer> asked = new ArrayList<>();
        int[] pending = {1, 0, 0, 0};
        assertEquals(1, Choice.of("least_pending", "first").choose(4, i -> {
            asked.add(i);
            return pending[i];
        }));
        assertEquals(List.of(0, 1), asked);
    }

    @Test
    void aTieAtRandomIsSpreadEvenlyOverThoseTied() {
        int[] count = shares(Choice.of("least_pending", "random"), 30_000, 7, 1, 9, 1, 1);
        assertEquals(0, count[0] + count[2]);
        for (int replica : new int[] {1, 3, 4}) {
            assertEquals(10_000, count[replica], 5 * Math.sqrt(30_000 * 2.0 / 9)); // 5 standard errors
        }
    }

    @Test
    void roundRobinStartsAtTheFirstAndIgnoresPending() {
        Choice choice = Choice.of("round_robin", "first");
        for (int i = 0; i < 9; i++) {
            assertEquals(i % 3, choice.choose(3, n -> n == 0 ? 100 : 0));
        }
    }

    @Test
    void randomIgnoresPending() {
        int[] count = shares(Choice.of("random", "first"), 30_000, 100, 0, 0);
        for (int n : count) {
            assertEquals(10_000, n, 5 * Math.sqrt(30_000 * 2.0 / 9));
        }
    }

    @ParameterizedTest
    @CsvSource({"least_pending, last, tie", "fastest, first, policy", "LEAST_PENDING, first, policy"})
    void unknownSettingsAreNamedWithWhatIsAllowed(final String policy, final String tie, final String named) {
        String message = assertThrows(IllegalArgumentException.class, () -> Choice.of(policy, tie)).getMessage();
        assertTrue(message.contains(named + ": unknown value '"), message);
        assertTrue(message.contains("allowed: "), message);
    }

    @Test
    void leastConnectionsIsRefusedWithTheNameOfTheSamePolicy() {
        String message = assertThrows(IllegalArgumentException.class, () -> Choice.of("least_connections", "first")).getMessage();
        assertTrue(message.endsWith("write least_pending"), message);
    }
}
