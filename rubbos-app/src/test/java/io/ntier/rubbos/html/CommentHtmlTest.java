package io.ntier.rubbos.html;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.ntier.rubbos.db.Comment;
import io.ntier.rubbos.db.CommentTable;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The rules by which RUBBoS clients cut their next request out of a page. */
class CommentHtmlTest {
    private static Comment comment(long id, long parent, int rating, Comment... answers) {
        return new Comment(id, parent, answers.length, rating, LocalDateTime.of(2026, 1, 2, 3, 4, 5), "subject " + id, "text " + id, "user1",
                List.of(answers));
    }

    private static String page(int filter, int display, Comment... comments) {
        Page page = new Page("ViewComment");
        CommentHtml html = new CommentHtml(page, CommentTable.OLD, 9, filter, display);
        html.postLink();
        html.filterForm(0, Map.of(5, 3));
        html.comments(List.of(comments));
        return new String(page.end(0, 0));
    }

    @Test
    void firstViewCommentIsTheFormAndTheOthersHaveAllParametersInOrder() {
        String html = page(-1, 1, comment(11, 0, 0, comment(12, 11, 3)));
        List<String> found = Pattern.compile("servlets\\.ViewComment([^>]*)\"").matcher(html).results()
                .map(MatchResult::group).toList();
        assertEquals("servlets.ViewComment\" method=\"POST\"", found.get(0));
        assertEquals("servlets.ViewComment?comment_table=old_comments&storyId=9&commentId=11&filter=-1&display=1\"", found.get(1));
        assertEquals("servlets.ViewComment?comment_table=old_comments&storyId=9&commentId=0&filter=-1&display=1\"", found.get(2));
        assertEquals("servlets.ViewComment?comment_table=old_comments&storyId=9&commentId=12&filter=-1&display=1\"", found.get(3));
        assertEquals(4, found.size());
    }

    @ParameterizedTest
    @CsvSource({"0, 1", "3, 2", "-1, 0"})
    void linksToCommentsShowThemAsThePageDoes(int filter, int display) {
        String html = page(filter, display, comment(11, 0, 5, comment(12, 11, 5)));
        long links = Pattern.compile("ViewComment\\?").matcher(html).results().count();
        assertTrue(links >= 2);
        assertEquals(links, Pattern.compile("&filter=" + filter + "&display=" + display + "\"").matcher(html).results().count());
    }

    @Test
    void linksToWriteComments() {
        String html = page(-1, 0, comment(11, 0, 0));
        assertTrue(html.contains("PostComment?comment_table=old_comments&storyId=9&parent=0\""));
        assertTrue(html.contains("PostComment?comment_table=old_comments&storyId=9&parent=11\""));
        assertTrue(html.contains("posted by user1 on 2026-01-02 03:04:05<"));
        assertTrue(html.contains("ModerateComment?comment_table=old_comments&commentId=11\""));
    }

    @Test
    void formTellsTheCounts() {
        String html = page(5, 2);
        assertTrue(html.contains("<option value=\"5\" selected>5 (3 comments)"));
        assertTrue(html.contains("<option value=\"-1\">-1 (0 comments)"));
    }

    @Test
    void filterHidesByRating() {
        String html = page(3, 2, comment(11, 0, 2, comment(12, 11, 3)));
        assertFalse(html.contains("text 11"));
        assertTrue(html.contains("text 12"));
    }

    @Test
    void displayChoosesHowAnswersAreShown() {
        Comment tree = comment(11, 0, 0, comment(12, 11, 0, comment(13, 12, 0)));
        assertFalse(page(-1, 0, tree).contains("subject 12"));
        assertTrue(page(-1, 1, tree).contains("subject 13"));
        assertFalse(page(-1, 1, tree).contains("text 12"));
        assertTrue(page(-1, 2, tree).contains("text 13"));
    }

    @Test
    void textOfUsersIsEscaped() {
        Comment hostile = new Comment(1, 0, 0, 0, null, "<b>", "<script>", "\"x'", List.of());
        String html = page(-1, 2, hostile);
        assertFalse(html.contains("<script>"));
        assertTrue(html.contains("&lt;b&gt;"));
        assertTrue(html.contains("&quot;x&#39;"));
    }
}
