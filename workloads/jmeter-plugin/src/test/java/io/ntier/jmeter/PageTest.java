package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class PageTest {
    private final SplittableRandom random = new SplittableRandom(1);

    private Map<String, Integer> picks(Page page, String key, boolean skipFirst, int times) {
        Map<String, Integer> count = new HashMap<>();
        for (int i = 0; i < times; i++) {
            count.merge(page.valueAfter("", page.position(key, random, skipFirst)), 1, Integer::sum);
        }
        return count;
    }

    @Test
    void everyOccurrenceIsPickedEquallyOften() {
        Map<String, Integer> count =
                picks(new Page("<a href=\"V?id=1\"><a href=\"V?id=22&x\"><a href='V?id=3'>"), "id=", false, 30_000);
        assertEquals(3, count.size());
        count.values().forEach(n -> assertEquals(10_000, n, 400));
        assertTrue(count.containsKey("22"));
    }

    @Test
    void thePageSaysItsStatements() {
        String end = "<!-- ntier page=ViewStory id=7 rows=42 statements=44 -->\n</body>\n</html>\n";
        assertEquals(44, new Page("<p>It has statements=3</p>" + end).statements());
        assertEquals(0, new Page("<h1>503 Service Unavailable</h1>").statements());
        assertEquals(0, new Page("we made statements=, as they say").statements());
        assertEquals(0, Page.EMPTY.statements());
    }

    @Test
    void theFirstLinkIsSkippedInFavourOfTheSecond() {
        Map<String, Integer> count = picks(new Page("k=1 k=2 k=3 k=4 "), "k=", true, 40_000);
        assertFalse(count.containsKey("1"));
        assertEquals(20_000, count.get("2"), 600);
        assertEquals(10_000, count.get("4"), 500);
        assertEquals(-1, new Page("k=1 ").position("k=", random, true));
        assertEquals(-1, Page.EMPTY.position("k=", random, false));
    }

    @Test
    void nextAndPreviousPageAreAFairCoin() {
        assertEquals("0", new Page("no links").pageNumber(random));
        assertEquals("1", new Page("?a=b&page=1&n=20\"").pageNumber(random));
        Page both = new Page("?a=b&amp;page=4&amp;n=20\" ?homepage=9\" ?a=b&page=6\" ?a=b&page=8\"");
        int next = 0;
        for (int i = 0; i < 10_000; i++) {
            String number = both.pageNumber(random);
            assertTrue(number.equals("4") || number.equals("6"), number);
            next += number.equals("6") ? 1 : 0;
        }
        assertEquals(5000, next, 300);
    }

    @Test
    void fieldsAndOptionsAreReadQuotedOrNot() {
        assertEquals("12", new Page("<INPUT TYPE=hidden name=storyId value=12>").field("storyId"));
        assertEquals(
                "old_comments",
                new Page("<input type=\"hidden\" name=\"comment_table\" value=\"old_comments\">")
                        .field("comment_table"));
        assertNull(new Page("<input name=storyIds value=3>").field("storyId"));
        assertEquals("7", new Page("<OPTION value=\"7\">x").option(random));
        assertEquals("8", new Page("<option value=\"8\">x").option(random));
        assertNull(Page.EMPTY.option(random));
    }

    @Test
    void anEndingNumberIsMatchedWhole() {
        assertTrue(new Page("storyId=123 storyId=12\"").containsWhole("storyId=12"));
        assertFalse(new Page("storyId=123&").containsWhole("storyId=12"));
        assertTrue(new Page("storyId=12").containsWhole("storyId=12"));
    }
}
