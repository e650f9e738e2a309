package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ContentChecksTest {
    private static final Map<String, String> REQUEST = Map.of("storyId", "12", "search", "word");

    @Test
    void everyRuleOfAStateMustHoldByOneOfItsAlternatives() {
        ContentChecks checks = ContentChecks.parse(
                List.of("state,must_contain", "# why", "V,storyId=${storyId}", "S,${search}|Sorry", "S,form"), "c.csv");
        assertNull(checks.missing("V", new Page("storyId=12&"), REQUEST::get));
        assertEquals("storyId=12", checks.missing("V", new Page("storyId=123&"), REQUEST::get));
        assertNull(checks.missing("S", new Page("form Sorry"), REQUEST::get));
        assertEquals("form", checks.missing("S", new Page("word"), REQUEST::get));
        assertEquals("word|Sorry", checks.missing("S", new Page("form"), REQUEST::get));
        assertFalse(checks.covers("X"));
    }

    @Test
    void aMalformedLineIsNamed() {
        assertThrows(IllegalArgumentException.class, () -> ContentChecks.parse(List.of("V,x"), "c.csv"), "no header");
        assertThrows(
                IllegalArgumentException.class, () -> ContentChecks.parse(List.of("state,must_contain", "V"), "c.csv"));
    }

    /** Nothing between two of them stands in every page; what is not closed has no value. */
    @ParameterizedTest
    @ValueSource(strings = {"V,|Sorry", "V,story||Sorry", "V,Sorry|", "V,|", "V,storyId=${storyId", "V,${}", "V,${a b}"})
    void aRuleThatNeverFailsOrCannotBeFilledInIsNamed(String line) {
        String message = assertThrows(
                        IllegalArgumentException.class,
                        () -> ContentChecks.parse(List.of("state,must_contain", line), "c.csv"))
                .getMessage();
        assertTrue(message.startsWith("c.csv: '" + line + "': between | must stand"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"browse_only", "browse_only_no_search", "read_write", "authors/read_write"})
    void theShippedRulesCoverEveryMixAndFailOnAnEmptyPage(String mix) {
        ContentChecks checks = ContentChecks.read(Path.of("../content_checks.csv"));
        for (String state : Mix.read(Path.of("../mixes/" + mix + ".csv")).names()) {
            assertEquals(true, checks.covers(state), state);
            assertEquals(false, checks.missing(state, Page.EMPTY, name -> "1") == null, state);
        }
    }
}
