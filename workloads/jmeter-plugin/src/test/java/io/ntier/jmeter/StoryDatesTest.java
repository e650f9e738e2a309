package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.time.LocalDate;
import java.time.YearMonth;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class StoryDatesTest {
    private static final int DRAWS = 100_000;

    private static Map<LocalDate, Integer> draws(String today) {
        StoryDates dates = new StoryDates(LocalDate.parse(today), YearMonth.of(2023, 6));
        SplittableRandom random = new SplittableRandom(1);
        Map<LocalDate, Integer> count = new HashMap<>();
        for (int i = 0; i < DRAWS; i++) {
            count.merge(dates.draw(random), 1, Integer::sum);
        }
        return count;
    }

    @Test
    void theLastSevenDaysHaveTheWeightsOfRubbos() {
        Map<LocalDate, Integer> count = draws("2026-05-20");
        int[] percent = {0, 20, 10, 10, 10, 10, 10, 26};
        for (int back = 1; back <= 7; back++) {
            assertEquals(
                    percent[back] / 100.0,
                    (double) count.get(LocalDate.of(2026, 5, 20 - back)) / DRAWS,
                    0.005,
                    back + " days ago");
        }
        count.keySet().forEach(day -> assertFalse(day.isBefore(LocalDate.of(2023, 6, 1)), day.toString()));
        int anyDay = count.entrySet().stream()
                .filter(e -> e.getKey().getYear() < 2026)
                .mapToInt(Map.Entry::getValue)
                .sum();
        assertEquals(0.04, (double) anyDay / DRAWS, 0.003);
    }

    @Test
    void theDayIsRolledWithinTheMonth() {
        Map<LocalDate, Integer> count = draws("2026-05-03");
        assertEquals(0.26, (double) count.get(LocalDate.of(2026, 5, 27)) / DRAWS, 0.006, "seven days before the 3rd");
        assertEquals(0.20, (double) count.get(LocalDate.of(2026, 5, 2)) / DRAWS, 0.006);
    }
}
