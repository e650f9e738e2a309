package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Set;
import java.util.TimeZone;
import org.apache.jorphan.util.JMeterStopTestNowException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PageReaderTest {
    @TempDir
    Path folder;

    private PageReader reader(int users, int authors, int stories, double share, int tries, long pauseMs)
            throws IOException {
        PageReader reader = new PageReader();
        reader.setDictionary(
                Files.write(folder.resolve("words.txt"), List.of("one")).toString());
        reader.setDatabaseUsers(users);
        reader.setDatabaseAuthors(authors);
        reader.setStoriesPerPage(stories);
        reader.setContentShare(share);
        reader.setTries(tries);
        reader.setRetryPauseMs(pauseMs);
        return reader;
    }

    /** Else each user would end at its first page, or a check of the content would silently not be made. */
    @ParameterizedTest
    @CsvSource({
        "0, 50, 20, 0.01, 5, 1000, registered users 0: must be 1 to 2146483647",
        "2147483647, 50, 20, 0.01, 5, 1000, registered users 2147483647: must be 1 to 2146483647",
        "10, -1, 20, 0.01, 5, 1000, authors -1: must be 1 to 2147483647",
        "10, 50, 101, 0.01, 5, 1000, stories per page 101: must be 1 to 100",
        "10, 50, 20, -0.01, 5, 1000, content share -0.01 is not in 0..1",
        "10, 50, 20, NaN, 5, 1000, content share NaN is not in 0..1",
        "10, 50, 20, 0.01, 0, 1000, '0 tries with pauses of 1000 ms: must be 1 or more tries, and 0 ms or more'",
        "10, 50, 20, 0.01, 5, -1, '5 tries with pauses of -1 ms: must be 1 or more tries, and 0 ms or more'"
    })
    void aValueThatCannotBeIsNamed(
            int users, int authors, int stories, double share, int tries, long pauseMs, String message)
            throws IOException {
        PageReader reader = reader(users, authors, stories, share, tries, pauseMs);
        assertEquals(
                message,
                assertThrows(JMeterStopTestNowException.class, reader::testStarted)
                        .getMessage());
    }

    @Test
    void theSmallestAndLargestValuesAreTaken() throws IOException {
        reader(1, 1, 1, 0, 1, 0).testStarted();
        reader(Integer.MAX_VALUE - 1_000_000, Integer.MAX_VALUE, 100, 1, 9, 1).testStarted();
    }

    /** The data's days are UTC: of these two places at least one has another day, at any time. */
    @ParameterizedTest
    @ValueSource(strings = {"GMT-12", "GMT+14"})
    void todayIsTheSameDayInEveryTimeZone(String place) {
        TimeZone before = TimeZone.getDefault();
        TimeZone.setDefault(TimeZone.getTimeZone(place));
        try {
            LocalDate first = LocalDate.now(ZoneOffset.UTC);
            LocalDate day = PageReader.day(" ");
            assertTrue(Set.of(first, first.plusDays(1)).contains(day) && !day.isAfter(LocalDate.now(ZoneOffset.UTC)));
        } finally {
            TimeZone.setDefault(before);
        }
    }
}
