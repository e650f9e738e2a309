package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Pages have the links, and send the statements, that those of Elba's servlets (2008) had and sent on the same data. What they did is
 * recorded in elba.txt as {@link Statements} describes it. Only MySQL tells its statements; of PostgreSQL the number is compared.
 */
@EnabledIfEnvironmentVariable(named = TestDatabase.URL_VARIABLE, matches = TestDatabase.URLS)
class ElbaTest {
    private static final Path RECORDED = Path.of("src/test/resources/elba.txt");
    private static final Instant REFERENCE_TIME = Instant.parse("2026-01-01T12:00:00Z");
    private static TestDatabase database;
    private static TestServer server;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        database = new TestDatabase(folder, REFERENCE_TIME.getEpochSecond());
        List<String> settings = new ArrayList<>(database.settings());
        settings.add("pool_size=1");
        server = new TestServer(0, settings.toArray(String[]::new));
        if (database.isMysql()) {
            database.execute("SET GLOBAL log_output = 'TABLE'");
            database.execute("TRUNCATE TABLE mysql.general_log");
            database.execute("SET GLOBAL general_log = ON");
        }
    }

    @AfterAll
    static void stop() throws Exception {
        if (database.isMysql()) {
            database.execute("SET GLOBAL general_log = OFF");
        }
        server.close();
        database.close();
    }

    /** Blocks of the file: a request, then, indented, its statements and its links. */
    static Stream<Arguments> recorded() throws IOException {
        return Stream.of(Files.readString(RECORDED).split("\n(?=\\S)")).filter(block -> !block.startsWith("#")).map(block -> {
            List<String> lines = block.lines().map(String::strip).toList();
            return Arguments.of(lines.get(0), lines.subList(1, lines.size()));
        });
    }

    /** In the order of the file: what is written by one is read by those behind it. */
    @ParameterizedTest(name = "{0}")
    @MethodSource("recorded")
    void pageIsElbas(String request, List<String> expected) throws Exception {
        HttpResponse<String> response = server.get(request);
        assertEquals(200, response.statusCode(), response.body());
        String links = Statements.links(response.body());
        if (database.isMysql()) {
            List<String> seen = new ArrayList<>(sentStatements());
            seen.add(links);
            assertEquals(String.join("\n", expected), String.join("\n", seen));
        } else {
            assertEquals(expected.get(expected.size() - 1), links);
            assertEquals(expected.size() - 1, Integer.parseInt(response.body().replaceAll("(?s).* statements=(\\d+) .*", "$1")));
        }
    }

    private static List<String> sentStatements() throws Exception {
        List<String> sent = database.texts("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log"
                + " WHERE command_type IN ('Query', 'Execute') AND thread_id <> CONNECTION_ID()");
        database.execute("TRUNCATE TABLE mysql.general_log");
        return sent.stream().map(Statements::describe).toList();
    }
}
