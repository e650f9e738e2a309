package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TracerTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
    private static final String PARENT = "00f067aa0ba902b7";
    private static final String SAMPLED = "00-" + TRACE + "-" + PARENT + "-01";

    @TempDir
    Path folder;

    private List<String[]> spans() throws IOException {
        List<String> lines = Files.readAllLines(folder.resolve("spans.csv"));
        assertEquals(Tracer.HEADER.strip(), lines.get(0));
        return lines.stream().skip(1).map(line -> line.split(",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")).toList();
    }

    @Test
    void aSampledRequestLeavesItsTimesAndEachStatementCarriesTheContextOn() throws IOException {
        try (Tracer tracer = new Tracer(folder.resolve("spans.csv"))) {
            Tracer.Request request = tracer.begin(SAMPLED);
            request.waited(System.nanoTime());
            String sql = request.begin("SELECT id,\n  \"date\" FROM stories");
            request.end();
            request.end(); // as after a statement that could not be prepared
            request.end("ViewStory");
            String comment = " /*traceparent='00-" + TRACE + "-";
            assertTrue(sql.startsWith("SELECT id,\n  \"date\" FROM stories" + comment) && sql.endsWith("-01'*/"), sql);
        }
        List<String[]> spans = spans();
        assertEquals(List.of("internal", "client", "server"), spans.stream().map(span -> span[3]).toList());
        String[] server = spans.get(2);
        assertEquals(PARENT, server[2]);
        assertEquals("\"ViewStory\"", server[4]);
        assertEquals("\"SELECT id, 'date' FROM stories\"", spans.get(1)[4]);
        for (String[] inner : spans.subList(0, 2)) {
            assertEquals(server[1], inner[2]);
            long begin = Long.parseLong(inner[5]);
            assertTrue(begin >= Long.parseLong(server[5]) - 1, "within a microsecond of the request's");
            assertTrue(begin + Long.parseLong(inner[6]) <= Long.parseLong(server[5]) + Long.parseLong(server[6]) + 1);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "00-" + TRACE + "-" + PARENT + "-00", "ff-" + TRACE + "-" + PARENT + "-01", SAMPLED + "'*/ DROP TABLE users",
        "00-00000000000000000000000000000000-" + PARENT + "-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + PARENT + "-01"})
    void othersAreNotFollowed(String header) {
        try (Tracer tracer = new Tracer(folder.resolve("spans.csv"))) {
            assertNull(tracer.begin(null));
            assertNull(tracer.begin(header));
            assertNotNull(tracer.begin(SAMPLED));
        }
    }

    @Test
    void theServersOwnRequestsAreFollowedByTheirHeader() throws Exception {
        Path file = folder.resolve("spans.csv");
        try (TestServer server = new TestServer(0, "jdbc_url=jdbc:mysql://127.0.0.1:1/rubbos", "user=u", "password=p", "pool_size=1",
                "trace_file=" + file)) {
            server.get("Search");
            HttpRequest followed = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + "/rubbos" + Routes.PREFIX + "Search"))
                    .header("traceparent", SAMPLED).build();
            assertEquals(200, HttpClient.newHttpClient().send(followed, HttpResponse.BodyHandlers.ofString()).statusCode());
        }
        assertEquals(1, spans().size());
        assertEquals(TRACE, spans().get(0)[0]);
    }

    @Test
    void withoutTheSettingThereIsNoFile() throws Exception {
        Path file = folder.resolve("spans.csv");
        new Tracer(file).close();
        assertFalse(Files.exists(file));
    }
}
