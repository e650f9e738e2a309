package io.ntier.shardingsphere;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * Checks a proxy that serves nobody else: reads on one connection and compares where they went with the policy.
 *
 * <p>Argument: a properties file with url, user, password, statement, policy, tie, status_file. Prints one JSON line; exit
 * code 1 with a message if the proxy does not answer or does not balance as it should.
 */
public final class ProxyCheck {
    private static final int READS = 200;
    /** Somebody else's statement in between moves a read: 1 of 202 on a busy machine. A wrong policy fails each time. */
    private static final int TRIES = 3;
    private static final long STATUS_LIMIT_MS = 5_000;

    private ProxyCheck() {
    }

    public static void main(final String[] args) throws IOException, InterruptedException {
        Properties wanted = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(args[0]))) {
            wanted.load(reader);
        }
        Path status = Path.of(wanted.getProperty("status_file"));
        for (int left = TRIES - 1; ; left--) {
            try {
                System.out.println("{\"reads\": " + READS + ", \"split\": " + json(check(wanted, status)) + "}");
                return;
            } catch (SQLException | IllegalStateException e) {
                System.err.println(wanted.getProperty("url") + ": " + e.getMessage());
                if (left == 0) {
                    System.exit(1);
                }
            }
        }
    }

    /** One round of reads: replica -> how many it got. */
    private static Map<String, Long> check(final Properties wanted, final Path status)
            throws IOException, InterruptedException, SQLException {
        Map<String, long[]> before = totalsAfter(status, System.currentTimeMillis());
        read(wanted);
        Map<String, long[]> after = totalsAfter(status, System.currentTimeMillis());
        Map<String, Long> split = new LinkedHashMap<>();
        int column = after.size() > 1 ? 1 : 0; // with one replica the policy is not asked
        after.forEach((name, totals) -> split.put(name, totals[column] - before.get(name)[column]));
        verify(wanted.getProperty("policy"), wanted.getProperty("tie"), List.copyOf(split.values()), split);
        return split;
    }

    private static void read(final Properties wanted) throws SQLException {
        try (Connection connection = DriverManager.getConnection(
                wanted.getProperty("url"), wanted.getProperty("user"), wanted.getProperty("password"));
                Statement statement = connection.createStatement()) {
            for (int i = 0; i < READS; i++) {
                try (ResultSet rows = statement.executeQuery(wanted.getProperty("statement"))) {
                    if (!rows.next()) {
                        throw new IllegalStateException("no row: " + wanted.getProperty("statement"));
                    }
                }
            }
        }
    }

    /** Replica -> {executed_total, chosen_total} of the first status lines written after {@code timeMs}. */
    private static Map<String, long[]> totalsAfter(final Path status, final long timeMs) throws IOException, InterruptedException {
        while (System.currentTimeMillis() < timeMs + STATUS_LIMIT_MS) {
            Map<String, long[]> totals = new LinkedHashMap<>();
            for (String line : Files.readAllLines(status)) {
                String[] field = line.split(",");
                if (!field[0].equals("t_s") && Double.parseDouble(field[0]) * 1000 > timeMs) {
                    totals.putIfAbsent(field[1], new long[] {Long.parseLong(field[5]), Long.parseLong(field[6])});
                }
            }
            if (!totals.isEmpty()) {
                return totals;
            }
            Thread.sleep(50);
        }
        throw new IllegalStateException("nothing was written to " + status + " for " + STATUS_LIMIT_MS + " ms");
    }

    private static void verify(final String policy, final String tie, final List<Long> reads, final Map<String, Long> split) {
        long most = reads.stream().max(Long::compare).orElseThrow();
        long least = reads.stream().min(Long::compare).orElseThrow();
        boolean right = switch (policy) {
            case "least_pending" -> tie.equals("first") ? reads.get(0) >= READS && reads.stream().skip(1).allMatch(n -> n == 0) : least > 0;
            case "round_robin" -> most - least <= 1;
            default -> least > 0;
        };
        long sum = reads.stream().mapToLong(Long::longValue).sum();
        if (!right || sum < READS) {
            throw new IllegalStateException(READS + " reads, policy " + policy + ", tie " + tie + ": they went to " + json(split));
        }
    }

    private static String json(final Map<String, Long> split) {
        StringBuilder text = new StringBuilder("{");
        split.forEach((name, reads) -> text.append(text.length() > 1 ? ", " : "").append('"').append(name).append("\": ").append(reads));
        return text.append('}').toString();
    }
}
