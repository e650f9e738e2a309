package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.LocalDate;
import java.time.YearMonth;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ParametersTest {
    private static final String SERVLETS = "/rubbos/servlet/edu.rice.rubbos.servlets.";
    private static final List<String> DICTIONARY =
            IntStream.range(0, 1000).mapToObj(i -> "word" + i + " 17").toList();

    private final Map<String, String> set = new HashMap<>();
    private final Parameters parameters = parameters(false);

    private Parameters parameters(boolean author) {
        StoryDates dates = new StoryDates(LocalDate.of(2026, 5, 20), YearMonth.of(2023, 5));
        Parameters.Board board = new Parameters.Board(new Words(DICTIONARY, "test"), dates, 500_000, 50, 20);
        return new Parameters(board, new SplittableRandom(1), author, set::put);
    }

    private Map<String, String> ready(String state, String page) {
        assertEquals(Walk.Request.READY, parameters.prepare(state, new Page(page)), state);
        return set;
    }

    @Test
    void aStoryIsPickedFromThePageElseTheLastOneElseTheUserGoesBack() {
        assertEquals(Walk.Request.GO_BACK, parameters.prepare("ViewStory", Page.EMPTY));
        assertEquals("5", ready("ViewStory", "ViewStory?storyId=5\">").get("storyId"));
        assertEquals("5", ready("ViewStory", "nothing here").get("storyId"));
    }

    @Test
    void aCategoryKeepsItsEncodedName() {
        assertEquals(Walk.Request.GO_BACK, parameters.prepare("BrowseStoriesInCategory", Page.EMPTY));
        String link = "<a href=\"" + SERVLETS
                + "BrowseStoriesByCategory?category=8&categoryName=Ask+us%21&page=1&nbOfStories=20\">";
        assertEquals(
                Map.of("category", "8", "categoryName", "Ask+us%21", "page", "1", "nbOfStories", "20"),
                ready("BrowseStoriesInCategory", link));
        assertEquals("8", ready("BrowseStoriesInCategory", "").get("category"));
    }

    @Test
    void aCommentLinkIsReadInOrderAndTheFirstOneSkipped() {
        String form = "<form action=\"" + SERVLETS + "ViewComment\"><input name=commentId value=0>";
        String link = "<a href=\"" + SERVLETS
                + "ViewComment?comment_table=old_comments&storyId=3&commentId=9&filter=0&display=1\">";
        assertEquals(Walk.Request.GO_BACK, parameters.prepare("ViewComment", new Page(form)));
        assertEquals(
                Walk.Request.GO_BACK,
                parameters.prepare("ViewComment", new Page(link)),
                "a single link is the first, and skipped");
        assertEquals(
                Map.of(
                        "comment_table",
                        "old_comments",
                        "storyId",
                        "3",
                        "commentId",
                        "9",
                        "filter",
                        "0",
                        "display",
                        "1"),
                ready("ViewComment", form + link));
    }

    @Test
    void withoutAPostCommentLinkTheUserGoesHomeAndWithoutTheOthersBack() {
        Page page = new Page("<p>nothing to answer</p>");
        assertEquals(Walk.Request.HOME, parameters.prepare("PostComment", page));
        assertEquals(Walk.Request.GO_BACK, parameters.prepare("ViewComment", page));
        assertEquals(Walk.Request.GO_BACK, parameters.prepare("ModerateComment", page));
        String half = "<a href=\"" + SERVLETS + "PostComment?comment_table=comments&storyId=3\">";
        assertEquals(Walk.Request.GO_BACK, parameters.prepare("PostComment", new Page(half)));
        assertEquals("7", ready("PostComment", half.replace("\">", "&parent=7\">")).get("parent"));
    }

    @Test
    void aStorySearchTakesANewWordEachTimeTheOthersKeepItWhilePaging() {
        String page = "x&page=1\"";
        String word = ready("SearchInStories", "").get("search");
        assertNotEquals(word, ready("SearchInStories", page).get("search"));
        assertEquals("1", set.get("page"));
        word = ready("SearchInComments", "").get("search");
        assertEquals(word, ready("SearchInComments", page).get("search"));
        ready("ViewStory", "storyId=1&");
        assertNotEquals(word, ready("SearchInComments", "").get("search"));
        word = ready("SearchInUsers", "").get("search");
        assertTrue(word.matches("user[1-9][0-9]*"), word);
        assertEquals(word, ready("SearchInUsers", page).get("search"));
    }

    @Test
    void wordsAreUniform() {
        Map<String, Integer> count = new HashMap<>();
        for (int i = 0; i < 100_000; i++) {
            count.merge(ready("SearchInStories", "").get("search"), 1, Integer::sum);
        }
        assertEquals(1000, count.size());
        count.values().forEach(n -> assertEquals(100, n, 50)); // five standard deviations
    }

    @Test
    void storedTextsAreEncodedAndBounded() {
        String form =
                "<input name=comment_table value=comments><input name=storyId value=4><input name=parent value=0>";
        Set<Boolean> blanks = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            ready("StoreComment", form);
            assertTrue(set.get("subject").matches("[A-Za-z0-9+%.*_-]{1,130}"), set.get("subject"));
            blanks.add(set.get("body").contains("+"));
        }
        assertTrue(blanks.contains(true));
        assertEquals("4", set.get("storyId"));
        assertTrue(set.get("nickname").matches("user\\d+")
                && set.get("password").equals("password" + set.get("nickname").substring(4)));
        assertEquals(Walk.Request.HOME, parameters.prepare("StoreComment", Page.EMPTY));
    }

    @Test
    void authorsLogInAsAuthorsAndANewSessionIsANewUser() {
        Parameters author = parameters(true);
        Set<String> names = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            assertEquals(Walk.Request.READY, author.prepare("AuthorTask", Page.EMPTY));
            assertTrue(set.get("nickname").matches("author([1-9]|[1-4][0-9]|50)"), set.get("nickname"));
            names.add(set.get("nickname"));
            author.newSession();
        }
        assertTrue(names.size() > 25, names.toString());
    }

    @Test
    void reviewWithoutSubmissionsLeadsHomeAndModerationRatesMinusOneOrZero() {
        assertEquals(Walk.Request.HOME, parameters.prepare("AcceptStory", Page.EMPTY));
        assertEquals(
                "6",
                ready("RejectStory", SERVLETS + "AcceptStory?storyId=5\" " + SERVLETS + "RejectStory?storyId=6\"")
                        .get("storyId"));
        Set<String> ratings = new HashSet<>();
        for (int i = 0; i < 50; i++) {
            ratings.add(
                    ready("StoreModerateLog", "<input name=comment_table value=comments><input name=commentId value=4>")
                            .get("rating"));
        }
        assertEquals(Set.of("-1", "0"), ratings);
    }
}
