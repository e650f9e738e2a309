package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

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

    @Test
    void theShippedRulesCoverTheBrowseOnlyMixAndFailOnAnEmptyPage() {
        ContentChecks checks = ContentChecks.read(Path.of("../content_checks.csv"));
        for (String state : Mix.read(Path.of("../mixes/browse_only.csv")).names()) {
            assertEquals(true, checks.covers(state), state);
            assertEquals(false, checks.missing(state, Page.EMPTY, name -> "1") == null, state);
        }
    }
}
