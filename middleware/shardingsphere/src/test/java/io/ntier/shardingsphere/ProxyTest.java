package io.ntier.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The proxy before two real MySQL servers: NTIER_TEST_MYSQL=host:port,host:port, NTIER_TEST_MYSQL_USER and
 * NTIER_TEST_MYSQL_PASSWORD, an account that may create the schema ntier_proxy_test.
 */
@EnabledIfEnvironmentVariable(named = "NTIER_TEST_MYSQL", matches = ".+,.+")
class ProxyTest {
    private static final List<String> DATABASES = List.of(System.getenv().getOrDefault("NTIER_TEST_MYSQL", "").split(","));
    private static final String[] SLEEP_S = {"1.0", "0.1"}; // long beside what a cold proxy on a busy machine adds;

    @TempDir
    Path folder;

    private static void onBoth(final String... statements) throws SQLException {
        for (int i = 0; i < DATABASES.size(); i++) {
            String url = "jdbc:mysql://" + DATABASES.get(i) + "/?sslMode=DISABLED&allowPublicKeyRetrieval=true";
            try (Connection connection = DriverManager.getConnection(
                    url, System.getenv("NTIER_TEST_MYSQL_USER"), System.getenv("NTIER_TEST_MYSQL_PASSWORD"));
                    Statement statement = connection.createStatement()) {
                for (String sql : statements) {
                    statement.execute(sql.replace("$node", String.valueOf(i + 1)).replace("$sleep", SLEEP_S[i]));
                }
            }
        }
    }

    @BeforeAll
    static void createSchema() throws SQLException {
        onBoth("DROP DATABASE IF EXISTS " + Proxy.SCHEMA, "CREATE DATABASE " + Proxy.SCHEMA, "USE " + Proxy.SCHEMA,
                "CREATE TABLE marker (node INT NOT NULL PRIMARY KEY)", "INSERT INTO marker VALUES ($node)",
                "CREATE VIEW slow AS SELECT node, SLEEP($sleep) AS slept FROM marker");
        onBoth(RubbosStatements.schema(Proxy.SCHEMA));
    }

    @AfterAll
    static void dropSchema() throws SQLException {
        onBoth("DROP DATABASE IF EXISTS " + Proxy.SCHEMA);
    }

    @Test
    void sequentialReadsAllGoToTheFirstReplica() throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, "least_pending", "first"); Connection connection = proxy.open("")) {
            assertArrayEquals(new int[] {0, 200, 0}, proxy.split(connection, 200));
        }
    }

    @Test
    void aTieAtRandomUsesBothReplicas() throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, "least_pending", "random"); Connection connection = proxy.open("")) {
            assertEquals(100, proxy.split(connection, 200)[1], 36); // 5 standard errors of a fair coin
        }
    }

    @Test
    void roundRobinAlternates() throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, "round_robin", "first"); Connection connection = proxy.open("")) {
            assertArrayEquals(new int[] {0, 100, 100}, proxy.split(connection, 200));
        }
    }

    /** The first replica is ten times slower: 16 clients for 8 s. The ideal share of least_pending is 1/11. */
    @ParameterizedTest
    @ValueSource(strings = {"least_pending", "round_robin"})
    void theSlowReplicaGetsFewerReadsOnlyFromLeastPending(final String policy) throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, policy, "first")) {
            // A cold proxy is what takes time at first. Turns need no time.
            int[] cold = policy.equals("round_robin") ? new int[3] : loadSlowView(proxy, 16, 2);
            int[] count = loadSlowView(proxy, 16, 8);
            double share = (double) count[1] / (count[1] + count[2]);
            System.out.printf("%s: share of the slow replica %.3f%n", policy, share);
            if (policy.equals("round_robin")) {
                assertEquals(count[1], count[2], 1);
            } else {
                assertTrue(share > 0.01 && share < 0.3, "share of the slow replica: " + share); // turns give it half
            }
            Arrays.setAll(count, i -> cold[i] + count[i]);
            assertStatusAgrees(proxy, count);
        }
    }

    /** What the trace says of 8 clients, by begin and end of each statement alone: which policy is it? */
    @ParameterizedTest
    @CsvSource({"least_pending, first", "least_pending, random", "round_robin, first", "random, first"})
    void theTraceTellsThePolicies(final String policy, final String tie) throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, policy, tie)) {
            int[] cold = loadSlowView(proxy, 8, 2);
            int[] count = loadSlowView(proxy, 8, 6);
            TraceReader trace = wholeTrace(proxy, Arrays.stream(cold).sum() + Arrays.stream(count).sum());
            System.out.printf("%s %s: %s%n", policy, tie, trace);
            assertEquals(0, trace.lost, "numbers without a gap");
            assertEquals(0, trace.neverBegun);
            assertTrue(trace.choices > 50, trace.toString());
            if (policy.equals("least_pending")) {
                assertTrue(trace.least >= 0.9 * trace.choices, trace.toString());
                assertTrue(trace.sawIt >= 0.9 * trace.asked, "what the policy saw is what begin and end tell: " + trace);
            } else {
                assertTrue(trace.least < 0.8 * trace.choices, trace.toString());
                assertEquals(0, trace.asked, "this policy does not look");
            }
        }
    }

    /** Eight clients at the same time: the replicas get the inserts in different orders, and hold the same rows all the same. */
    @Test
    void everyReplicaGetsEveryWriteUnderTheSameId() throws Exception {
        int clients = 8;
        int inserts = 50;
        String insert = "INSERT INTO comments (writer, story_id, parent, childs, rating, date, subject, comment) VALUES (?, 9, ?, 0, 0, NOW(), ?, 'c')";
        try (Proxy proxy = new Proxy(folder, DATABASES, "least_pending", "first", true)) {
            ExecutorService executor = Executors.newFixedThreadPool(clients);
            List<Future<Void>> done = new ArrayList<>();
            for (int i = 0; i < clients; i++) {
                String client = "client " + i;
                done.add(executor.submit(() -> {
                    try (Connection connection = proxy.open(""); PreparedStatement write = connection.prepareStatement(insert);
                            PreparedStatement count = connection.prepareStatement("UPDATE comments SET childs = childs + 1 WHERE id = ?")) {
                        for (int k = 0; k < inserts; k++) {
                            write.setLong(1, 1);
                            write.setLong(2, 1);
                            write.setString(3, client + " row " + k);
                            assertEquals(1, write.executeUpdate());
                            count.setLong(1, 1);
                            assertEquals(1, count.executeUpdate());
                        }
                        return null;
                    }
                }));
            }
            for (Future<Void> each : done) {
                each.get();
            }
            executor.shutdown();
            try (Connection connection = proxy.open("")) {
                assertArrayEquals(new int[] {0, 200, 0}, proxy.split(connection, 200), "reads are still balanced by the policy");
            }
        }
        List<List<String>> rows = new ArrayList<>();
        for (String database : DATABASES) {
            try (Connection direct = DriverManager.getConnection(Proxy.url(database), System.getenv("NTIER_TEST_MYSQL_USER"),
                    System.getenv("NTIER_TEST_MYSQL_PASSWORD"))) {
                rows.add(new RubbosStatements.Case("SELECT id, writer, parent, childs, subject FROM comments ORDER BY id").run(direct));
            }
        }
        assertEquals(1 + 40 + clients * inserts, rows.get(0).size(), "column names, the rows before, the new ones");
        assertEquals(rows.get(0), rows.get(1));
        assertTrue(rows.get(0).get(1).startsWith("1|2|0|" + (1 + clients * inserts) + "|"), rows.get(0).get(1));
        onBoth("USE " + Proxy.SCHEMA, "DELETE FROM comments WHERE id > 40", "UPDATE comments SET childs = 1 WHERE id = 1");
    }

    private static int[] loadSlowView(final Proxy proxy, final int clients, final int seconds) throws Exception {
        ExecutorService executor = Executors.newFixedThreadPool(clients);
        CyclicBarrier loggedIn = new CyclicBarrier(clients); // a log-in asks a replica too, and would take a turn
        List<Future<int[]>> results = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            results.add(executor.submit(() -> {
                int[] count = new int[3];
                try (Connection connection = proxy.open(""); Statement statement = connection.createStatement()) {
                    loggedIn.await(60, TimeUnit.SECONDS);
                    for (long end = System.nanoTime() + seconds * 1_000_000_000L; System.nanoTime() < end;) {
                        try (var row = statement.executeQuery("SELECT node, slept FROM slow")) {
                            row.next();
                            count[row.getInt(1)]++;
                        }
                    }
                }
                return count;
            }));
        }
        int[] sum = new int[3];
        for (Future<int[]> result : results) {
            int[] count = result.get();
            Arrays.setAll(sum, i -> sum[i] + count[i]);
        }
        executor.shutdown();
        return sum;
    }

    /** The trace when these reads are in it, or as it is after half a minute. */
    private static TraceReader wholeTrace(final Proxy proxy, final int reads) throws Exception {
        long limitMs = System.currentTimeMillis() + 30_000;
        while (true) {
            Thread.sleep(1500); // it is written twice a second
            TraceReader trace = TraceReader.read(proxy.trace);
            if (trace.choices >= reads && trace.lost == 0 || System.currentTimeMillis() > limitMs) {
                return trace;
            }
        }
    }

    /** Replica -> fields of its newest line in the status file, once all are newer than the end of the load. */
    private static Map<String, String[]> newStatus(final Proxy proxy) throws Exception {
        double newerS = System.currentTimeMillis() / 1000.0 + 0.5;
        for (int tries = 0; tries < 150; tries++) { // a line is written each second
            Thread.sleep(200);
            Map<String, String[]> last = new TreeMap<>();
            for (String line : Files.readAllLines(proxy.status)) {
                String[] field = line.split(",");
                if (!field[0].equals("t_s") && Double.parseDouble(field[0]) > newerS) {
                    last.put(field[1], field);
                }
            }
            if (last.keySet().containsAll(List.of("db1", "db2"))) {
                return last;
            }
        }
        throw new AssertionError("no status line within 30 s");
    }

    /** The status file counts what the databases answered (and the few statements of 32 clients at log-in). */
    private static void assertStatusAgrees(final Proxy proxy, final int[] count) throws Exception {
        Map<String, String[]> last = newStatus(proxy);
        for (int node = 1; node <= 2; node++) {
            String[] field = last.get("db" + node);
            assertEquals("0,0,20", String.join(",", Arrays.copyOfRange(field, 2, 5)), "pending, awaiting, pool_size");
            assertEquals(count[node], Long.parseLong(field[5]), 32 * 3, "executed_total of db" + node);
            assertEquals(count[node], Long.parseLong(field[6]), 32 * 3, "chosen_total of db" + node);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void rubbosStatementsReturnTheDatabasesRows(final int replicas) throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES.subList(0, replicas), "round_robin", "first")) {
            for (String options : List.of("", "&useServerPrepStmts=true&cachePrepStmts=true")) {
                try (Connection viaProxy = proxy.open(options); Connection direct = DriverManager.getConnection(
                        Proxy.url(DATABASES.get(0)) + options,
                        System.getenv("NTIER_TEST_MYSQL_USER"), System.getenv("NTIER_TEST_MYSQL_PASSWORD"))) {
                    for (RubbosStatements.Case each : RubbosStatements.cases()) {
                        List<String> expected = each.run(direct);
                        assertTrue(expected.size() > 1, "a case without rows shows nothing: " + each);
                        assertEquals(expected, each.run(viaProxy), each.toString());
                        assertEquals(expected, each.runAsText(viaProxy), each.toString());
                    }
                }
            }
        }
    }

    @Test
    void onlyTheGivenAddressIsBound() throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, "least_pending", "first")) {
            List<InetAddress> others = NetworkInterface.networkInterfaces().flatMap(NetworkInterface::inetAddresses)
                    .filter(address -> !address.getHostAddress().equals("127.0.0.1")).toList();
            assertTrue(!others.isEmpty(), "this machine has no second address");
            for (InetAddress address : others) {
                assertThrows(IOException.class, () -> new Socket(address, proxy.port).close(), address.toString());
            }
        }
    }

    @Test
    void aWrongPasswordEndsTheConnection() throws Exception {
        try (Proxy proxy = new Proxy(folder, DATABASES, "least_pending", "first"); Socket socket = new Socket("127.0.0.1", proxy.port)) {
            DataInputStream in = new DataInputStream(socket.getInputStream());
            readPacket(in); // the server's greeting
            OutputStream out = socket.getOutputStream();
            out.write(RubbosStatements.packet(1, RubbosStatements.logIn(Proxy.USER, new byte[20], Proxy.SCHEMA)));
            out.write(RubbosStatements.packet(0, "\u0003SELECT node FROM marker".getBytes()));
            assertEquals(0xff, readPacket(in)[0] & 0xff, "an error packet");
            assertTrue(ended(in), "nothing but the end of the connection follows");
            assertTrue(proxy.isAlive());
        }
    }

    /** The proxy closes before it has read the statement: the end may come as a reset. */
    private static boolean ended(final DataInputStream in) throws IOException {
        try {
            return in.read() == -1;
        } catch (SocketException reset) {
            return true;
        }
    }

    private static byte[] readPacket(final DataInputStream in) throws IOException {
        int length = in.readUnsignedByte() | in.readUnsignedByte() << 8 | in.readUnsignedByte() << 16;
        in.readUnsignedByte(); // sequence number
        return in.readNBytes(length);
    }
}
