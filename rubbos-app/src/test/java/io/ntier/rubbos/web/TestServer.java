package io.ntier.rubbos.web;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.catalina.Context;
import org.apache.catalina.startup.ContextConfig;
import org.apache.catalina.startup.Tomcat;

/** The application in an embedded Tomcat on a free port of the loopback address. */
final class TestServer implements AutoCloseable {
    private final Tomcat tomcat = new Tomcat();
    private final HttpClient client = HttpClient.newHttpClient();
    private final String base;

    /** @param settings lines of the configuration file */
    TestServer(int port, String... settings) throws Exception {
        Path folder = Files.createTempDirectory("rubbos-test");
        System.setProperty("rubbos.config", Files.write(folder.resolve("rubbos.properties"), Stream.of(settings).toList()).toString());
        tomcat.setBaseDir(folder.toString());
        tomcat.setPort(port);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("/rubbos", new File("src/main/webapp").getAbsolutePath());
        context.addLifecycleListener(new ContextConfig());
        context.setParentClassLoader(TestServer.class.getClassLoader());
        tomcat.start();
        base = "http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/rubbos";
    }

    /** @param servlet its name, with the query string if there is one; or a path that starts with / */
    HttpResponse<String> get(String servlet) throws Exception {
        URI uri = URI.create(base + (servlet.startsWith("/") ? servlet : Routes.PREFIX + servlet));
        return client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
    }

    /** Answers to requests that are all on their way at the same time, each on a connection of its own. */
    List<HttpResponse<String>> getAtOnce(List<String> servlets) {
        HttpClient many = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        List<CompletableFuture<HttpResponse<String>>> answers = servlets.stream()
                .map(servlet -> HttpRequest.newBuilder(URI.create(base + Routes.PREFIX + servlet)).build())
                .map(request -> many.sendAsync(request, HttpResponse.BodyHandlers.ofString())).toList();
        return answers.stream().map(CompletableFuture::join).toList();
    }

    HttpResponse<String> head(String servlet) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + Routes.PREFIX + servlet))
                .method("HEAD", HttpRequest.BodyPublishers.noBody()).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    HttpResponse<String> post(String servlet, String form) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + Routes.PREFIX + servlet))
                .header("Content-Type", "application/x-www-form-urlencoded")
                .POST(HttpRequest.BodyPublishers.ofString(form)).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    int port() {
        return tomcat.getConnector().getLocalPort();
    }

    @Override
    public void close() throws Exception {
        tomcat.stop();
        tomcat.destroy();
    }

    /** For trying by hand: arguments are lines of the configuration file. */
    public static void main(String[] settings) throws Exception {
        TestServer server = new TestServer(18080, settings);
        System.out.println(server.base + Stream.of(settings).collect(Collectors.joining(" ", " with ", "")));
        server.tomcat.getServer().await();
    }
}
