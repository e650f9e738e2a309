package io.ntier.shardingsphere;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A proxy in a JVM of its own on a free port of 127.0.0.1, before the databases that NTIER_TEST_MYSQL names. */
final class Proxy implements AutoCloseable {
    static final String SCHEMA = "ntier_proxy_test";
    static final String USER = "tester";
    static final String PASSWORD = "only-in-tests";
    private static final long START_LIMIT_MS = 60_000;

    final int port;
    final Path status;
    final Path trace;
    private final Process process;

    Proxy(final Path folder, final List<String> databases, final String policy, final String tie)
            throws IOException, InterruptedException {
        this(folder, databases, policy, tie, false);
    }

    Proxy(final Path folder, final List<String> databases, final String policy, final String tie, final boolean writesToAll)
            throws IOException, InterruptedException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        status = folder.resolve("status.csv");
        trace = folder.resolve("trace.csv");
        Files.writeString(folder.resolve("server.yaml"), """
                rules:
                  - !AUTHORITY
                    users: ["%s@127.0.0.1:%s"]
                    provider: {type: ALL_PRIVILEGES_PERMITTED}
                props: {proxy-frontend-database-protocol-type: MySQL}
                """.formatted(USER, PASSWORD));
        Files.writeString(folder.resolve("config-rw.yaml"), configuration(databases, policy, tie, writesToAll));
        process = new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(), "-Xmx256m", "-D" + ProxyMain.TRACE + "=" + trace,
                "-cp", System.getProperty("java.class.path"), ProxyMain.class.getName(),
                "127.0.0.1", String.valueOf(port), folder.toString(), status.toString())
                .directory(folder.toFile()).redirectErrorStream(true).redirectOutput(folder.resolve("log").toFile()).start();
        awaitListening(folder.resolve("log"));
    }

    private static String configuration(
            final List<String> databases, final String policy, final String tie, final boolean writesToAll) {
        StringBuilder sources = new StringBuilder();
        StringBuilder groups = new StringBuilder();
        String all = IntStream.rangeClosed(1, databases.size()).mapToObj(i -> "db" + i).collect(Collectors.joining(","));
        for (int i = 1; i <= databases.size(); i++) {
            sources.append("""
                      db%d:
                        url: "%s&treatMysqlDatetimeAsTimestamp=true"
                        username: "%s"
                        password: "%s"
                        maxPoolSize: 20
                        minPoolSize: 2
                    """.formatted(i, url(databases.get(i - 1)), System.getenv("NTIER_TEST_MYSQL_USER"),
                    System.getenv("NTIER_TEST_MYSQL_PASSWORD")));
            if (i == 1 || writesToAll) {
                groups.append("""
                              replicas%d:
                                type: Static
                                props: {write-data-source-name: db%d, read-data-source-names: "%s"}
                                loadBalancerName: ntier
                        """.formatted(i, i, all));
            }
        }
        String sharding = """
                  - !SHARDING
                    broadcastTables: [marker, categories, users, stories, old_stories, comments, old_comments]
                    tables:
                      comments:
                        actualDataNodes: replicas${1..%d}.comments
                        keyGenerateStrategy: {column: id, keyGeneratorName: next_comments}
                    keyGenerators: {next_comments: {type: NTIER_NEXT, props: {table: comments}}}
                """.formatted(databases.size());
        return """
                schemaName: %s
                dataSources:
                %srules:
                %s  - !READWRITE_SPLITTING
                    dataSources:
                %s    loadBalancers:
                      ntier: {type: NTIER, props: {policy: %s, tie: %s}}
                """.formatted(SCHEMA, sources, writesToAll ? sharding : "", groups, policy, tie);
    }

    static String url(final String database) {
        return "jdbc:mysql://" + database + "/" + SCHEMA + "?sslMode=DISABLED&allowPublicKeyRetrieval=true";
    }

    private void awaitListening(final Path log) throws IOException, InterruptedException {
        long limit = System.currentTimeMillis() + START_LIMIT_MS;
        while (true) {
            try (Socket probe = new Socket("127.0.0.1", port)) {
                return;
            } catch (IOException e) {
                if (!process.isAlive() || System.currentTimeMillis() > limit) {
                    throw new IOException("the proxy did not start: " + Files.readString(log), e);
                }
                Thread.sleep(100);
            }
        }
    }

    boolean isAlive() {
        return process.isAlive();
    }

    Connection open(final String options) throws SQLException {
        return DriverManager.getConnection(url("127.0.0.1:" + port) + options, USER, PASSWORD);
    }

    /** Number of reads per marker (1 is the first database): {@code reads} times on one connection. */
    int[] split(final Connection connection, final int reads) throws SQLException {
        int[] count = new int[3];
        try (Statement statement = connection.createStatement()) {
            for (int i = 0; i < reads; i++) {
                try (ResultSet row = statement.executeQuery("SELECT node FROM marker")) {
                    row.next();
                    count[row.getInt(1)]++;
                }
            }
        }
        return count;
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(10, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }
}
