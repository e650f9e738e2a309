package io.ntier.rubbos.data;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Properties of a generated data set (profile tiny). */
class DataTest {
    private static final long REFERENCE_TIME_S = 1_795_257_600L;
    private static final List<String> TABLES = List.of("categories", "users", "stories", "old_stories", "comments", "old_comments",
            "submissions", "moderator_log");
    @TempDir
    static Path folder;

    @BeforeAll
    static void generate() throws Exception {
        write(folder, 1);
    }

    private static void write(Path into, long seed) throws Exception {
        new DataSet(Profile.named("tiny"), Words.dictionary(), seed, REFERENCE_TIME_S, into).write();
    }

    private static List<String[]> rows(String table) throws Exception {
        return Files.readAllLines(folder.resolve(table + ".tsv")).stream().map(line -> line.split("\t", -1)).toList();
    }

    private static long seconds(String date) {
        return Instant.parse(date.replace(' ', 'T') + "Z").getEpochSecond();
    }

    @Test
    void sameSeedSameBytes(@TempDir Path again) throws Exception {
        write(again, 1);
        for (String table : TABLES) {
            assertArrayEquals(Files.readAllBytes(folder.resolve(table + ".tsv")), Files.readAllBytes(again.resolve(table + ".tsv")), table);
        }
    }

    /** Such as Persian, Bengali and Marathi have. */
    @Test
    void aLocaleWithDigitsOfItsOwnChangesNoByte(@TempDir Path again) throws Exception {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("fa-IR"));
        try {
            write(again, 1);
        } finally {
            Locale.setDefault(before);
        }
        for (String file : List.of("data.json", "stories.tsv", "users.tsv")) {
            assertEquals(-1, Files.mismatch(folder.resolve(file), again.resolve(file)), file);
        }
    }

    @Test
    void otherSeedOtherDataButSameDictionary(@TempDir Path other) throws Exception {
        write(other, 2);
        assertNotEquals(-1, Files.mismatch(folder.resolve("stories.tsv"), other.resolve("stories.tsv")));
        assertEquals(-1, Files.mismatch(folder.resolve("dictionary.txt"), other.resolve("dictionary.txt")));
    }

    @Test
    void dictionaryHasTheProfileOfRubbos() throws Exception {
        List<String> words = Files.readAllLines(folder.resolve("dictionary.txt"));
        assertEquals(4201, words.size());
        assertEquals(4201, new HashSet<>(words).size());
        assertTrue(words.stream().allMatch(word -> word.matches("[a-z]{1,18}")));
        assertEquals(6.9, words.stream().mapToInt(String::length).average().orElseThrow(), 0.05);
        double longShare = words.stream().filter(word -> word.length() > 10).count() / 4201.0;
        assertEquals(0.093, longShare, 0.003);
    }

    /** A file in the form of RUBBoS' dictionary: a number behind each word, a word twice, a blank last line. */
    @Test
    void textsAreMadeOfTheGivenDictionary(@TempDir Path own) throws Exception {
        List<String> words = Words.read(Files.writeString(own.resolve("words"), "alpha  12\nBeta 3\r\nit's\nalpha  1\n\n"));
        assertEquals(List.of("alpha", "Beta", "it's"), words);
        new DataSet(Profile.named("tiny"), words, 1, REFERENCE_TIME_S, own).write();
        assertEquals(words, Files.readAllLines(own.resolve("dictionary.txt")));
        for (String comment : Files.readAllLines(own.resolve("comments.tsv"))) {
            String subject = comment.split("\t", -1)[7];
            assertTrue(words.stream().anyMatch(subject::startsWith), subject);
        }
    }

    @Test
    void theLongestWordsThatAreAllowedFit(@TempDir Path own) throws Exception {
        String word = "a".repeat(Texts.LONGEST_WORD);
        List<String> words = Words.read(Files.writeString(own.resolve("words"), word + "\n" + word.substring(1) + "\n"));
        new DataSet(Profile.named("tiny"), words, 1, REFERENCE_TIME_S, own).write();
        assertTrue(Files.exists(own.resolve("data.json")));
    }

    @ParameterizedTest
    @CsvSource({"'a\nb\u00e9', line 2", "'\n\n', has no word", "abcdefghijklmnopqrstuvwxyzabcdefg, line 1",
        "'error\nsorry\nERROR 7', 'line 3: RUBBoS'' clients take a page with \"ERROR\"'", "'Sorry', 'line 1: RUBBoS'"})
    void aWrongDictionaryIsNamed(String lines, String message, @TempDir Path own) throws Exception {
        Path file = Files.writeString(own.resolve("words"), lines);
        String failure = assertThrows(IllegalArgumentException.class, () -> Words.read(file)).getMessage();
        assertTrue(failure.startsWith("--dictionary " + file) && failure.contains(message), failure);
    }

    @Test
    void usersAreThoseOfTheLoadGenerator() throws Exception {
        List<String[]> users = rows("users");
        assertEquals(551, users.size());
        assertEquals("Anonymous Coward", users.get(0)[3]);
        assertArrayEquals(new String[] {"7", "Great7", "User7", "user7", "password7", "Great7.User7@rubbos.com"},
                java.util.Arrays.copyOf(users.get(7), 6));
        assertEquals("0", users.get(7)[7]);
        assertEquals("author50", users.get(550)[3]);
        assertEquals("1", users.get(550)[7]);
    }

    @Test
    void storyIdsAreOneSequenceInTheOrderOfTheirDates() throws Exception {
        long id = 0;
        long last = 0;
        for (String table : List.of("old_stories", "stories")) {
            for (String[] story : rows(table)) {
                assertEquals(++id, Long.parseLong(story[0]));
                long published = seconds(story[3]);
                assertTrue(published >= last && published < REFERENCE_TIME_S, story[3]);
                last = published;
                assertEquals(table.equals("stories"), published >= REFERENCE_TIME_S - 30 * 86_400L, story[3]);
            }
        }
        assertTrue(id >= 240 && id <= 400, "stories: " + id);
    }

    @ParameterizedTest
    @CsvSource({"stories, comments", "old_stories, old_comments"})
    void commentsBelongToStoriesAndCountTheirChildren(String storyTable, String commentTable) throws Exception {
        Map<String, Long> published = new HashMap<>();
        rows(storyTable).forEach(story -> published.put(story[0], seconds(story[3])));
        Map<String, String> storyOf = new HashMap<>();
        Map<String, Integer> children = new HashMap<>();
        Map<String, Integer> perStory = new HashMap<>();
        long id = 0;
        for (String[] comment : rows(commentTable)) {
            assertEquals(++id, Long.parseLong(comment[0]));
            assertTrue(seconds(comment[6]) >= published.get(comment[2]) && seconds(comment[6]) <= REFERENCE_TIME_S);
            int rating = Integer.parseInt(comment[5]);
            assertTrue(rating >= -1 && rating <= 5);
            perStory.merge(comment[2], 1, Integer::sum);
            storyOf.put(comment[0], comment[2]);
            if (!comment[3].equals("0")) {
                assertEquals(comment[2], storyOf.get(comment[3]), "an answer is in its parent's story");
                children.merge(comment[3], 1, Integer::sum);
            }
        }
        for (String[] comment : rows(commentTable)) {
            assertEquals(children.getOrDefault(comment[0], 0), Integer.parseInt(comment[4]), "childs of " + comment[0]);
        }
        assertEquals(published.keySet(), perStory.keySet());
        assertTrue(perStory.values().stream().allMatch(n -> n >= 20 && n <= 50));
    }

    @Test
    void titlesAndSubjectsStartWithADictionaryWord() throws Exception {
        Set<String> words = new HashSet<>(Files.readAllLines(folder.resolve("dictionary.txt")));
        for (String[] story : rows("stories")) {
            checkTexts(words, story[1], story[2]);
        }
        for (String[] comment : rows("comments")) {
            checkTexts(words, comment[7], comment[8]);
        }
    }

    private static void checkTexts(Set<String> words, String title, String body) {
        assertTrue(words.contains(title.split("[^a-z]", 2)[0]), title);
        assertTrue(title.length() <= 100 && body.length() <= 1023 && !body.isEmpty());
        assertFalse((title + body).contains("\\"));
    }

    /** Else most of the days that users ask for lie after the last story. */
    @ParameterizedTest
    @CsvSource({"2026-12-01T00:00:00Z, 2026-11-30T23:59:59Z", "2026-12-07T23:59:59Z, 2026-11-30T23:59:59Z",
        "2026-12-08T00:00:00Z, 2026-12-08T00:00:00Z", "2026-11-28T09:30:00Z, 2026-11-28T09:30:00Z",
        "2027-01-03T12:00:00Z, 2026-12-31T23:59:59Z"})
    void theDataEndWithAWeekInTheirMonth(Instant now, Instant end) {
        assertEquals(end, Instant.ofEpochSecond(Generate.withAWeekBefore(now.getEpochSecond())));
    }

    @ParameterizedTest
    @CsvSource({"--profile huge, unknown", "--seed x, whole number", "--what 1, unknown option", "--out, needs a value",
        "--dictionary target/none, cannot be read"})
    void wrongOptionIsNamed(String arguments, String message) throws Exception {
        Process process = new ProcessBuilder((java.nio.file.Path.of(System.getProperty("java.home"), "bin", "java") + " -cp target/classes"
                + " io.ntier.rubbos.data.Generate --profile tiny --seed 1 --reference-time 1795257600 --out target/never "
                + arguments).split(" ")).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(2, process.waitFor());
        assertTrue(output.contains(message), output);
    }
}
