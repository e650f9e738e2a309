package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.ServerSocket;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The application starts without its database, and says so to those who need it. */
class NoDatabaseTest {
    private static TestServer server;
    private static Path folder;

    @BeforeAll
    static void start(@TempDir Path given) throws Exception {
        folder = given;
        int closedPort;
        try (ServerSocket socket = new ServerSocket(0)) {
            closedPort = socket.getLocalPort();
        }
        server = new TestServer(0, "jdbc_url=jdbc:mysql://127.0.0.1:" + closedPort + "/rubbos", "user=u", "password=p", "pool_size=1",
                "status_file=" + folder.resolve("status.csv"));
    }

    @AfterAll
    static void stop() throws Exception {
        server.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"StoriesOfTheDay", "ViewStory?storyId=1", "Search?type=1&search=a"})
    void pagesWithDataAre503WithoutDetails(String path) throws Exception {
        // More often than there are connections: a failed one gives its place back.
        for (int i = 0; i < 3; i++) {
            HttpResponse<String> response = server.get(path);
            assertEquals(503, response.statusCode());
            assertTrue(response.body().contains("ERROR: the database does not answer"), response.body());
            assertFalse(response.body().contains("127.0.0.1"), response.body());
        }
    }

    @Test
    void wrongParametersAndPagesWithoutDataNeedNone() throws Exception {
        assertEquals(200, server.get("Search").statusCode());
        assertEquals(400, server.get("ViewStory?storyId=x").statusCode());
        assertEquals(404, server.get("ViewStory2").statusCode());
    }

    @Test
    void theDriverInUseIsWrittenDown() throws Exception {
        String version = Files.readString(folder.resolve("jdbc_driver")).strip();
        assertTrue(version.matches("\\d+\\.\\d+\\.\\d+"), version);
    }

    @Test
    void unknownDbmsIsNamed() {
        Exception failure = assertThrows(IllegalArgumentException.class,
                () -> new Config("jdbc:oracle:x", "u", "p", false, true, 1, false, null, null).openPools(1));
        assertTrue(failure.getMessage().contains("jdbc:oracle:x") && failure.getMessage().contains("jdbc:mysql://"));
    }
}
