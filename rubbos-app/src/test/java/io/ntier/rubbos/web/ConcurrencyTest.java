package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Two hundred requests of each interaction that writes, at the same time and about the same row. */
@EnabledIfEnvironmentVariable(named = TestDatabase.URL_VARIABLE, matches = TestDatabase.URLS)
class ConcurrencyTest {
    private static final int REQUESTS = 200;
    private static final int CONNECTIONS = 50;
    private static final String AUTHOR = "nickname=author1&password=password1";
    private static final String USER = "nickname=user7&password=password7";
    private static TestDatabase database;
    private static TestServer server;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        database = new TestDatabase(folder);
        List<String> settings = new ArrayList<>(database.settings());
        settings.addAll(List.of("pool_mode=shared", "pool_size=" + CONNECTIONS));
        server = new TestServer(0, settings.toArray(String[]::new));
    }

    @AfterAll
    static void stop() throws Exception {
        server.close();
        database.close();
    }

    /** Pages that hold the text; the others must hold {@code otherwise}. All have status 200. */
    private static long pagesWith(String text, String otherwise, List<String> paths) {
        List<HttpResponse<String>> answers = server.getAtOnce(paths);
        for (HttpResponse<String> answer : answers) {
            assertEquals(200, answer.statusCode(), answer::body);
            assertTrue(answer.body().contains(text) || answer.body().contains(otherwise), answer::body);
        }
        return answers.stream().filter(answer -> answer.body().contains(text)).count();
    }

    private static List<String> timesOf(String path) {
        return Collections.nCopies(REQUESTS, path);
    }

    /** Changes go down, up, or both in turns; the writer's rating moves with the comment's. */
    @ParameterizedTest
    @CsvSource({"comments, -1, -1", "comments, 1, 1", "comments, -1, 1", "old_comments, 1, -1"})
    void ratingsStayWithinTheirLimits(String table, int even, int odd) throws Exception {
        long comment = database.number("SELECT id FROM %s WHERE rating = 4 AND writer > 0 ORDER BY id LIMIT 1".formatted(table));
        String commentRating = "SELECT rating FROM %s WHERE id = %d".formatted(table, comment);
        String writerRating = "SELECT rating FROM users WHERE id = (SELECT writer FROM %s WHERE id = %d)".formatted(table, comment);
        long apart = database.number(writerRating) - database.number(commentRating);
        long logged = database.number("SELECT COUNT(*) FROM moderator_log");
        String moderate = "StoreModeratorLog?comment_table=%s&commentId=%d&%s&rating=".formatted(table, comment, AUTHOR);
        List<String> paths = IntStream.range(0, REQUESTS).mapToObj(i -> moderate + (i % 2 == 0 ? even : odd)).toList();
        assertEquals(REQUESTS, pagesWith("has been stored", "nothing else", paths));

        long rating = database.number(commentRating);
        if (even == odd) {
            assertEquals(even < 0 ? -1 : 5, rating);
        }
        assertTrue(rating >= -1 && rating <= 5, "rating " + rating);
        assertEquals(apart, database.number(writerRating) - rating);
        assertEquals(logged + REQUESTS, database.number("SELECT COUNT(*) FROM moderator_log"));
    }

    @Test
    void aNicknameIsRegisteredOnce() throws Exception {
        String register = "RegisterUser?firstname=a&lastname=b&nickname=twice&email=c&password=d";
        assertEquals(1, pagesWith("Welcome to RUBBoS", "already in use", timesOf(register)));
        assertEquals(1, database.number("SELECT COUNT(*) FROM users WHERE nickname = 'twice'"));
    }

    @ParameterizedTest
    @CsvSource({"AcceptStory, AcceptStory", "RejectStory, RejectStory", "AcceptStory, RejectStory"})
    void aSubmissionIsDecidedOnce(String even, String odd) throws Exception {
        String title = even + " or " + odd;
        server.get("StoreStory?category=3&body=b&" + USER + "&title=" + title.replace(' ', '+'));
        long id = database.number("SELECT MAX(id) FROM submissions");
        List<String> paths = IntStream.range(0, REQUESTS).mapToObj(i -> (i % 2 == 0 ? even : odd) + "?storyId=" + id).toList();
        assertEquals(1, pagesWith("The story has been", "ERROR: Sorry", paths));
        assertEquals(0, database.number("SELECT COUNT(*) FROM submissions WHERE id = " + id));
        long published = database.number("SELECT COUNT(*) FROM stories WHERE title = '" + title + "'");
        assertTrue(even.equals(odd) ? published == (even.equals("AcceptStory") ? 1 : 0) : published <= 1, "published: " + published);
    }

    @ParameterizedTest
    @CsvSource({"comments", "old_comments"})
    void everyAnswerIsCounted(String table) throws Exception {
        String story = "SELECT story_id FROM " + table + " WHERE id = 5";
        String children = "SELECT childs FROM " + table + " WHERE id = 5";
        String answers = "SELECT COUNT(*) FROM " + table + " WHERE parent = 5";
        assertEquals(database.number(children), database.number(answers));
        long before = database.number(answers);
        assertEquals(REQUESTS, pagesWith("has been stored", "nothing else", timesOf("StoreComment?comment_table=" + table
                + "&storyId=" + database.number(story) + "&parent=5&subject=s&body=b&" + USER)));
        assertEquals(before + REQUESTS, database.number(answers));
        assertEquals(before + REQUESTS, database.number(children));
    }

    @ParameterizedTest
    @CsvSource({"submissions, " + USER, "stories, " + AUTHOR})
    void everyStoryIsStored(String table, String who) throws Exception {
        long before = database.number("SELECT COUNT(*) FROM " + table);
        assertEquals(REQUESTS, pagesWith("<h2>Your story has been", "nothing else", timesOf("StoreStory?category=3&title=t&body=b&" + who)));
        assertEquals(before + REQUESTS, database.number("SELECT COUNT(*) FROM " + table));
    }
}
