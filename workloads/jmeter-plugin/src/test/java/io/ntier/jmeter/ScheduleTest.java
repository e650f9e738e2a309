package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ScheduleTest {
    private static final long START = 1_000_000;
    private static final long RAMP_UP = 20_000;
    private static final long END = START + RAMP_UP + 45_000;

    private static Schedule of(int users) {
        return Schedule.of(START, 20, 40, 5, users);
    }

    @Test
    void allStayAndStartInTheFirstHalfOfTheRampUp() {
        Schedule usual = of(10);
        assertEquals(START, usual.startOf(0));
        assertEquals(START + RAMP_UP / 2 * 9 / 10, usual.startOf(9));
        assertEquals(10, IntStream.range(0, 10).filter(i -> usual.endOf(i) == END).count());
    }

    @Test
    void whoLeavesComesLastAndAllStartInTheFirstHalfOfTheStay() {
        Schedule schedule = of(40).leaving(30, 10);
        assertEquals(10, schedule.staying());
        assertEquals(END, schedule.endOf(9));
        assertEquals(START + 10_000, schedule.endOf(10));
        assertEquals(START + 10_000, schedule.endOf(39));
        assertEquals(START + 5_000 * 39 / 40, schedule.startOf(39));
    }

    @Test
    void anotherStartMovesAllOfIt() {
        Schedule moved = of(40).leaving(30, 10).at(START + 7);
        assertEquals(START + 7 + 10_000, moved.endOf(10));
        assertEquals(END + 7, moved.endOf(0));
        assertEquals(START + 7, moved.startOf(0));
    }

    @ParameterizedTest
    @CsvSource({"-1,10", "41,10", "30,0", "30,20.1", "30,NaN"})
    void moreThanThereAreOrLaterThanTheRampUpIsRefused(int leavers, double leaveS) {
        Schedule usual = of(40);
        assertThrows(IllegalArgumentException.class, () -> usual.leaving(leavers, leaveS));
    }
}
