package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import org.apache.catalina.Server;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Catalina;
import org.apache.tomcat.util.digester.Digester;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A Tomcat with the settings of the role {@code app}, without the application: what it answers by itself. */
class TomcatSettingsTest {
    private static final Path TEMPLATE = Path.of("../ansible/roles/app/templates/server.xml.j2");
    private static final Map<String, String> VALUES = Map.of("app_port", "0", "address", "127.0.0.1", "app_max_threads", "10",
            "app_accept_count", "10", "app_max_connections", "100", "inventory_hostname", "app1");
    private static Server server;
    private static int port;

    /** Reads a server.xml of any place; {@code load()} knows only the one that the JVM's first Tomcat was told of. */
    private static final class Reader extends Catalina {
        Server read(Path file, Path folder) throws Exception {
            Digester digester = createStartDigester();
            digester.push(this);
            digester.parse(file.toFile());
            getServer().setCatalinaHome(folder.toFile());
            getServer().setCatalinaBase(folder.toFile());
            return getServer();
        }
    }

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        String settings = Files.readString(TEMPLATE).replace("/opt/ntier/app/rubbos", folder.toString());
        for (Map.Entry<String, String> value : VALUES.entrySet()) {
            settings = settings.replace("{{ " + value.getKey() + " }}", value.getValue());
        }
        settings = settings.replaceAll("\\{\\{[^}]*app_min_spare_threads[^}]*}}", "10");
        server = new Reader().read(Files.writeString(folder.resolve("server.xml"), settings), folder);
        server.start();
        Connector connector = server.findServices()[0].findConnectors()[0];
        port = connector.getLocalPort();
    }

    @AfterAll
    static void stop() throws Exception {
        server.stop();
        server.destroy();
    }

    /** The whole answer to a request line, whose characters are sent as bytes. */
    private static String answer(String target) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            OutputStream out = socket.getOutputStream();
            out.write(("GET " + target + " HTTP/1.1\r\nHost: web1\r\nConnection: close\r\n\r\n").getBytes(StandardCharsets.ISO_8859_1));
            InputStream in = socket.getInputStream();
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/rubbos/servlet/x?a={", "/rubbos/servlet/x?a=\u00e9", "/rubbos/servlet/x\u0080", "/%zz", "/{"})
    void aRequestThatIsNoHttpIs400WithoutDetails(String target) throws IOException {
        String answer = answer(target);
        assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
        assertTrue(answer.contains("\r\nServer: Ntier\r\n"), answer);
        for (String inside : new String[] {"exception", "tomcat", "apache", "java", "coyote"}) {
            assertFalse(answer.toLowerCase(Locale.ROOT).contains(inside), answer);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/", "/elsewhere"})
    void whatIsElsewhereIs404WithoutDetails(String target) throws IOException {
        String answer = answer(target);
        assertEquals("HTTP/1.1 404 ", answer.substring(0, 13));
        assertFalse(answer.contains("Tomcat"), answer);
    }
}
