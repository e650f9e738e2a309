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
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/**
 * Random requests to every route, writes included: always an answer, nothing from inside, nothing unescaped, and the data are
 * whole afterwards. RUBBOS_FUZZ_REQUESTS and RUBBOS_FUZZ_SEED make another or a longer run.
 */
@EnabledIfEnvironmentVariable(named = TestDatabase.URL_VARIABLE, matches = TestDatabase.URLS)
class FuzzTest {
    private static final List<String> SERVLETS = List.copyOf(Routes.all(false).keySet());
    private static final Map<String, List<String>> GOOD = Map.ofEntries(
            Map.entry("storyId", List.of("1", "40", "4000")), Map.entry("commentId", List.of("0", "1", "77")),
            Map.entry("parent", List.of("0", "5")), Map.entry("comment_table", List.of("comments", "old_comments")),
            Map.entry("filter", List.of("0", "-1", "5")), Map.entry("display", List.of("0", "1", "2")),
            Map.entry("category", List.of("0", "3")), Map.entry("categoryName", List.of("Linux")),
            Map.entry("page", List.of("0", "1")), Map.entry("nbOfStories", List.of("20")), Map.entry("type", List.of("0", "1", "2")),
            Map.entry("search", List.of("a", "user1")), Map.entry("day", List.of("1")), Map.entry("month", List.of("2")),
            Map.entry("year", List.of("2026")), Map.entry("nickname", List.of("author1", "user7")),
            Map.entry("password", List.of("password1", "password7")), Map.entry("firstname", List.of("Great1")),
            Map.entry("lastname", List.of("User1")), Map.entry("email", List.of("a@b.com")), Map.entry("rating", List.of("-1", "0", "1")),
            Map.entry("subject", List.of("a subject")), Map.entry("title", List.of("a title")), Map.entry("body", List.of("a body")));
    private static final List<String> NAMES = GOOD.keySet().stream().sorted().toList();
    private static final List<String> HOSTILE = List.of("", "'", "\\'", "' OR 1=1 -- ", "'; DELETE FROM users; -- ", "-1", "+1", " 1", "0x10",
            "2147483647", "2147483648", "4294967295", "9223372036854775808", "1e9", "\u0661", "<script>x()</script>", "\" onload=\"x()",
            "%", "_", "${jndi:ldap://x}", "{ts '2026-01-01'}", "?", "$1", "\u0000", "\uD83D\uDE00", "\uFEFF", "\u202E", "é", "x".repeat(21),
            "x".repeat(101), "漢".repeat(16_000), "x".repeat(70_000));

    private final Random random = new Random(Long.parseLong(System.getenv().getOrDefault("RUBBOS_FUZZ_SEED", "1")));

    private <T> T any(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    /** Percent-encoded: good, hostile, or any bytes. */
    private String value(String name) {
        return switch (random.nextInt(10)) {
            case 0, 1 -> encoded(any(HOSTILE));
            case 2 -> {
                StringBuilder bytes = new StringBuilder();
                for (int i = random.nextInt(12); i >= 0; i--) {
                    bytes.append("%%%02x".formatted(random.nextInt(256)));
                }
                yield bytes.toString();
            }
            default -> encoded(any(GOOD.get(name)));
        };
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private String query() {
        List<String> parts = new ArrayList<>();
        for (String name : NAMES) {
            for (int times = random.nextInt(20); times == 0 || times >= 3; times -= 20) { // rarely left out, rarely twice
                parts.add(name + '=' + value(name));
            }
        }
        return String.join("&", parts);
    }

    @Test
    void everyRequestIsAnswered(@TempDir Path folder) throws Exception {
        int requests = Integer.parseInt(System.getenv().getOrDefault("RUBBOS_FUZZ_REQUESTS", "2000"));
        try (TestDatabase database = new TestDatabase(folder)) {
            List<String> settings = new ArrayList<>(database.settings());
            settings.addAll(List.of("pool_mode=shared", "pool_size=2", "statements=client"));
            Map<Integer, Integer> statuses = new TreeMap<>();
            try (TestServer server = new TestServer(0, settings.toArray(String[]::new))) {
                for (int i = 0; i < requests; i++) {
                    String servlet = any(SERVLETS);
                    String query = query();
                    boolean post = query.length() > 6000 || random.nextInt(4) == 0;
                    HttpResponse<String> answer = post ? server.post(servlet, query) : server.get(servlet + '?' + query);
                    check(answer, (post ? "POST " : "GET ") + servlet + '?' + query);
                    statuses.merge(answer.statusCode(), 1, Integer::sum);
                }
            }
            System.out.println("fuzz: " + requests + " requests, statuses " + statuses);
            assertTrue(statuses.get(200) > requests / 20 && statuses.get(400) > requests / 20, statuses.toString());
            wholeStill(database);
        }
    }

    private static void check(HttpResponse<String> answer, String request) {
        int status = answer.statusCode();
        String shown = request.substring(0, Math.min(request.length(), 2000));
        assertTrue(status == 200 || status >= 400 && status < 500, () -> status + " for " + shown + "\n" + answer.body());
        for (String inside : List.of("Exception", "io.ntier", "java.", "SQL", "<script", "\" onload=")) {
            assertFalse(answer.body().contains(inside), () -> inside + " in the answer to " + shown);
        }
    }

    private static void wholeStill(TestDatabase database) throws Exception {
        assertEquals(50, database.number("SELECT COUNT(*) FROM users WHERE access <> 0"), "nobody became an author");
        assertEquals(551, database.number("SELECT COUNT(*) FROM users WHERE id <= 550"), "nobody is gone");
        assertEquals(0, database.number("SELECT COUNT(*) FROM comments WHERE rating < -1 OR rating > 5"));
    }
}
