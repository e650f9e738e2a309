package io.ntier.jmeter;

import java.time.LocalDate;
import java.time.YearMonth;
import java.util.random.RandomGenerator;

/**
 * Days asked for by OlderStories (RUBBoS): 4 % any day of three years from the oldest story's year on, else one of the
 * last seven days: yesterday 20 %, the day seven days ago 26 %, those between 10 % each. The day is rolled back within
 * the month, as in the original: on the 3rd, seven days ago is the 27th of the same month. A day beyond the month's end
 * becomes its last one.
 *
 * @param today the day the data are dated to
 * @param oldest month of the oldest story
 */
record StoryDates(LocalDate today, YearMonth oldest) {
    LocalDate draw(RandomGenerator random) {
        int percent = random.nextInt(100);
        if (percent < 96) {
            return rolledBack(Math.max(1, Math.min(7, percent / 10)));
        }
        int day = random.nextInt(31) + 1;
        int month = random.nextInt(12) + 1;
        int year = Math.min(oldest.getYear() + random.nextInt(3), today.getYear());
        if (year == oldest.getYear()) {
            month = Math.max(month, oldest.getMonthValue());
        }
        YearMonth drawn = YearMonth.of(year, month);
        return drawn.atDay(Math.min(day, drawn.lengthOfMonth()));
    }

    private LocalDate rolledBack(int days) {
        int day = today.getDayOfMonth() - days;
        return today.withDayOfMonth(day >= 1 ? day : day + today.lengthOfMonth());
    }
}
