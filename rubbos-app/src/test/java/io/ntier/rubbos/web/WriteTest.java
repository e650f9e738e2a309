package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URLEncoder;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The interactions of the read/write mix: what they write, and how many statements they take (RUBBoS' own). */
@EnabledIfEnvironmentVariable(named = TestDatabase.URL_VARIABLE, matches = TestDatabase.URLS)
class WriteTest {
    private static final String AUTHOR = "nickname=author1&password=password1";
    private static final String USER = "nickname=user7&password=password7";
    private static final String NOBODY = "nickname=user7&password=wrong";
    private static TestDatabase database;
    private static TestServer server;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        database = new TestDatabase(folder);
        List<String> settings = new ArrayList<>(database.settings());
        settings.addAll(List.of("pool_mode=per_servlet", "pool_size=2", "statements=client"));
        server = new TestServer(0, settings.toArray(String[]::new));
    }

    @AfterAll
    static void stop() throws Exception {
        server.close();
        database.close();
    }

    private static String page(String path, int statements) throws Exception {
        HttpResponse<String> response = server.get(path);
        assertEquals(200, response.statusCode(), path);
        assertTrue(response.body().contains(" statements=" + statements + " "), response.body());
        return response.body();
    }

    private static String query(Map<String, String> parameters) {
        return parameters.entrySet().stream()
                .map(entry -> entry.getKey() + '=' + URLEncoder.encode(entry.getValue(), StandardCharsets.UTF_8))
                .collect(Collectors.joining("&"));
    }

    /** Value of a hidden field, read as RUBBoS' client does. */
    private static String field(String page, String name) {
        Matcher matcher = Pattern.compile("name=" + name + " value=([^>]*)>").matcher(page);
        assertTrue(matcher.find(), page);
        return matcher.group(1);
    }

    @Test
    void aNewUserIsRegisteredOnce() throws Exception {
        String user = "RegisterUser?firstname=Great501&lastname=User501&nickname=user501&email=a%40b.com&password=password501";
        String welcome = page(user, 3);
        assertTrue(welcome.contains("user501"));
        assertEquals(1, database.number("SELECT COUNT(*) FROM users WHERE nickname = 'user501' AND rating = 0 AND access = 0"));
        assertTrue(database.number("SELECT id FROM users WHERE nickname = 'user501'") > 550, "an id of its own");

        String again = page(user, 1);
        assertFalse(again.contains("ERROR"));
        assertEquals(1, database.number("SELECT COUNT(*) FROM users WHERE nickname = 'user501'"));
    }

    @ParameterizedTest
    @CsvSource({"comments, 0", "comments, 5", "old_comments, 0", "old_comments, 5"})
    void aCommentFromItsFormToTheTable(String table, long parent) throws Exception {
        long story = database.number("SELECT story_id FROM " + table + " WHERE id = 5");
        String form = page("PostComment?comment_table=" + table + "&storyId=" + story + "&parent=" + parent, 0);
        long comments = database.number("SELECT COUNT(*) FROM " + table);
        long children = database.number("SELECT childs FROM " + table + " WHERE id = 5");
        String text = "It's 100 % \"quoted\" <b>& more</b> \\ über 漢\nnew line";
        String stored = page("StoreComment?" + query(Map.of("comment_table", field(form, "comment_table"), "storyId",
                field(form, "storyId"), "parent", field(form, "parent"), "nickname", "user7", "password", "password7",
                "subject", "a subject", "body", text)), 3);
        assertFalse(stored.contains("<b>&"), "escaped");
        assertEquals(comments + 1, database.number("SELECT COUNT(*) FROM " + table));
        String newest = " FROM " + table + " WHERE id = (SELECT MAX(id) FROM " + table + ")";
        assertEquals(text, database.text("SELECT comment" + newest));
        assertEquals(database.number("SELECT id FROM users WHERE nickname = 'user7'"), database.number("SELECT writer" + newest));
        assertEquals(parent, database.number("SELECT parent" + newest));
        assertEquals(children + (parent == 5 ? 1 : 0), database.number("SELECT childs FROM " + table + " WHERE id = 5"));
        assertTrue(page("ViewComment?comment_table=" + table + "&storyId=" + story + "&commentId="
                + database.number("SELECT id" + newest) + "&filter=0&display=0", 3).contains("&lt;b&gt;&amp; more"));
    }

    /** RUBBoS' own client sends one subject in thirty that is longer than the column. */
    @ParameterizedTest
    @CsvSource({"x, 0, 100", "\uD83D\uDE00, 1, 99"})
    void aLongSubjectIsCut(String letter, int offset, int kept) throws Exception {
        String subject = "y".repeat(offset) + letter.repeat(120);
        page("StoreComment?" + query(Map.of("comment_table", "comments", "storyId", "1", "parent", "0", "body", "b", "nickname", "user7",
                "password", "password7", "subject", subject)), 3);
        String stored = database.text("SELECT subject FROM comments WHERE id = (SELECT MAX(id) FROM comments)");
        assertEquals(subject.substring(0, kept), stored);
    }

    @Test
    void aWrongPasswordMakesTheCommentNobodys() throws Exception {
        page("StoreComment?comment_table=comments&storyId=1&parent=0&subject=s&body=b&" + NOBODY, 3);
        assertEquals(0, database.number("SELECT writer FROM comments WHERE id = (SELECT MAX(id) FROM comments)"));
    }

    @Test
    void anAuthorModerates() throws Exception {
        long comment = database.number("SELECT id FROM comments WHERE rating = 1 ORDER BY id LIMIT 1");
        long writer = database.number("SELECT writer FROM comments WHERE id = " + comment);
        long rating = database.number("SELECT rating FROM users WHERE id = " + writer);
        String form = page("ModerateComment?comment_table=comments&commentId=" + comment, 2);
        String store = "StoreModeratorLog?comment_table=" + field(form, "comment_table") + "&commentId=" + field(form, "commentId");
        page(store + "&rating=1&" + AUTHOR, 7);
        assertEquals(2, database.number("SELECT rating FROM comments WHERE id = " + comment));
        assertEquals(rating + 1, database.number("SELECT rating FROM users WHERE id = " + writer));
        assertEquals(1, database.number("SELECT COUNT(*) FROM moderator_log WHERE rating = 1 AND comment_id = " + comment));

        page(store + "&rating=0&" + AUTHOR, 5);
        assertEquals(2, database.number("SELECT rating FROM comments WHERE id = " + comment));
        assertEquals(2, database.number("SELECT COUNT(*) FROM moderator_log WHERE comment_id = " + comment));
    }

    @Test
    void ratingsStayWithinTheirLimits() throws Exception {
        long worst = database.number("SELECT id FROM comments WHERE rating = -1 ORDER BY id LIMIT 1");
        page("StoreModeratorLog?comment_table=comments&commentId=" + worst + "&rating=-1&" + AUTHOR, 5);
        assertEquals(-1, database.number("SELECT rating FROM comments WHERE id = " + worst));
    }

    @ParameterizedTest
    @ValueSource(strings = {USER, NOBODY, "nickname=&password="})
    void whoIsNoAuthorMayNotModerate(String who) throws Exception {
        long logged = database.number("SELECT COUNT(*) FROM moderator_log");
        assertTrue(page("StoreModeratorLog?comment_table=comments&commentId=1&rating=1&" + who, 1).contains("Sorry"));
        assertEquals(logged, database.number("SELECT COUNT(*) FROM moderator_log"));
        assertTrue(page("Author?" + who, 1).contains("Sorry"));
    }

    /** The same on MySQL and on PostgreSQL: what looks alike is another name, and another password. */
    @ParameterizedTest
    @ValueSource(strings = {"nickname=Author1&password=password1", "nickname=author1&password=Password1",
        "nickname=%C3%A1uthor1&password=password1", "nickname=author1&password=p%C3%A0ssword1", "nickname=author1+&password=password1"})
    void logInMindsCaseAccentsAndBlanks(String who) throws Exception {
        assertTrue(page("Author?" + who, 1).contains("Sorry"));
        page("StoreComment?comment_table=comments&storyId=1&parent=0&subject=s&body=b&" + who, 3);
        assertEquals(0, database.number("SELECT writer FROM comments WHERE id = (SELECT MAX(id) FROM comments)"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"RegisterUser?firstname=a&lastname=b&nickname=head&email=c&password=d",
        "StoreComment?comment_table=comments&storyId=1&parent=0&subject=s&body=b&" + USER,
        "StoreModeratorLog?comment_table=comments&commentId=1&rating=0&" + AUTHOR,
        "StoreStory?category=3&title=t&body=b&" + USER, "StoreStory?category=3&title=t&body=b&" + AUTHOR,
        "AcceptStory?storyId=%d", "RejectStory?storyId=%d"})
    void headNeverWrites(String path) throws Exception {
        String all = "SELECT (SELECT COUNT(*) FROM users) + (SELECT COUNT(*) FROM comments) + (SELECT COUNT(*) FROM stories)"
                + " + (SELECT COUNT(*) FROM moderator_log) + 1000000 * (SELECT COUNT(*) FROM submissions)";
        page("StoreStory?category=3&title=head&body=b&" + USER, 2);
        long before = database.number(all);
        HttpResponse<String> response = server.head(path.formatted(database.number("SELECT MAX(id) FROM submissions")));
        assertEquals(405, response.statusCode());
        assertEquals("GET, POST", response.headers().firstValue("Allow").orElse(""));
        assertEquals(before, database.number(all));
    }

    @Test
    void headOfAPageIsGetWithoutIt() throws Exception {
        HttpResponse<String> response = server.head("ViewStory?storyId=1");
        assertEquals(200, response.statusCode());
        assertTrue(response.headers().firstValueAsLong("Content-Length").orElse(0) > 1000);
        assertEquals("", response.body());
    }

    @Test
    void aStoryIsSubmittedReviewedAndAccepted() throws Exception {
        String form = page("SubmitStory", 1);
        assertEquals(85, form.split("<OPTION value=\"", -1).length - 1);
        page("StoreStory?category=3&title=a+title&body=a+body&" + USER, 2);
        long id = database.number("SELECT MAX(id) FROM submissions");
        assertTrue(page("Author?" + AUTHOR, 1).contains("ReviewStories"));
        String review = page("ReviewStories", 1);
        assertTrue(review.contains("AcceptStory?storyId=" + id + "\"") && review.contains("RejectStory?storyId=" + id + "\""));

        long before = database.number("SELECT MAX(id) FROM stories");
        page("AcceptStory?storyId=" + id, 3);
        assertEquals("a title", database.text("SELECT title FROM stories WHERE id = " + (before + 1)));
        assertEquals(0, database.number("SELECT COUNT(*) FROM submissions WHERE id = " + id));
        assertTrue(page("AcceptStory?storyId=" + id, 1).contains("ERROR"));
    }

    @Test
    void aStoryIsRejected() throws Exception {
        page("StoreStory?category=3&title=bad&body=bad&" + NOBODY, 2);
        long id = database.number("SELECT MAX(id) FROM submissions");
        page("RejectStory?storyId=" + id, 2);
        assertEquals(0, database.number("SELECT COUNT(*) FROM submissions WHERE id = " + id));
        assertTrue(page("RejectStory?storyId=" + id, 1).contains("ERROR"));
    }

    @Test
    void anAuthorPublishesAtOnce() throws Exception {
        page("StoreStory?category=3&title=by+an+author&body=b&" + AUTHOR, 2);
        assertEquals(1, database.number("SELECT COUNT(*) FROM stories WHERE title = 'by an author'"));
        assertTrue(page("StoriesOfTheDay", 1).contains("by an author"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"RegisterUser?firstname=a", "StoreComment?comment_table=comments&storyId=1&parent=0&subject=s",
        "StoreComment?comment_table=users&storyId=1&parent=0&subject=s&body=b", "StoreStory?category=x&title=t&body=b",
        "StoreComment?comment_table=comments&storyId=2147483648&parent=0&subject=s&body=b",
        "StoreModeratorLog?comment_table=comments&commentId=1&rating=2"})
    void whatIsMissingOrWrongIs400AndWritesNothing(String path) throws Exception {
        HttpResponse<String> response = server.get(path);
        assertEquals(400, response.statusCode());
        assertTrue(response.body().contains("ERROR: parameter "), response.body());
        assertTrue(response.body().contains(" statements=0 "));
    }

    @Test
    void aWriteIsNotDoneTwiceWhenTheConnectionBreaks() throws Exception {
        page("StoriesOfTheDay", 1);
        database.killAllOthers();
        long comments = database.number("SELECT COUNT(*) FROM comments");
        page("StoreComment?comment_table=comments&storyId=1&parent=0&subject=s&body=b&" + USER, 3);
        assertEquals(comments + 1, database.number("SELECT COUNT(*) FROM comments"));
    }
}
