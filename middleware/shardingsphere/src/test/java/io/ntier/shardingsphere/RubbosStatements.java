package io.ntier.shardingsphere;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The forms of RUBBoS' browse statements (variant E) on a few rows, one discussion being twelve levels deep. */
final class RubbosStatements {
    private static final int LEVELS = 12;

    private RubbosStatements() {
    }

    /** A statement with its values; its text uses {@code ?}. */
    record Case(String sql, Object... values) {
        /** Column names, then the rows. */
        List<String> run(final Connection connection) throws SQLException {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                for (int i = 0; i < values.length; i++) {
                    statement.setObject(i + 1, values[i]);
                }
                return rows(statement.executeQuery());
            }
        }

        /** The same with the values in the text, as the original servlets sent it. */
        List<String> runAsText(final Connection connection) throws SQLException {
            String text = sql;
            for (Object value : values) {
                text = text.replaceFirst("\\?", value instanceof String ? "'" + value + "'" : value.toString());
            }
            try (Statement statement = connection.createStatement()) {
                return rows(statement.executeQuery(text));
            }
        }

        private static List<String> rows(final ResultSet result) throws SQLException {
            ResultSetMetaData columns = result.getMetaData();
            List<String> list = new ArrayList<>();
            StringBuilder names = new StringBuilder();
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                names.append(columns.getColumnLabel(i)).append('|');
            }
            list.add(names.toString());
            while (result.next()) {
                StringBuilder row = new StringBuilder();
                for (int i = 1; i <= columns.getColumnCount(); i++) {
                    boolean time = columns.getColumnType(i) == Types.TIMESTAMP;
                    row.append(time ? result.getTimestamp(i) : result.getString(i)).append('|');
                }
                list.add(row.toString());
            }
            return list;
        }

        @Override
        public String toString() {
            return sql + " " + Arrays.toString(values);
        }
    }

    static String[] schema(final String name) {
        List<String> sql = new ArrayList<>(List.of("USE " + name,
                "CREATE TABLE categories (id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(50))",
                "CREATE TABLE users (id INT UNSIGNED NOT NULL PRIMARY KEY, nickname VARCHAR(20) NOT NULL UNIQUE)",
                "INSERT INTO categories VALUES (0, 'Ask'), (1, 'O''Reilly & \"Sons\"'), (2, 'Zürich 中')",
                "INSERT INTO users VALUES (1, 'user1'), (2, 'user2'), (3, 'user30')"));
        for (String old : List.of("", "old_")) {
            sql.add("CREATE TABLE " + old + "stories (id INT UNSIGNED NOT NULL PRIMARY KEY, title VARCHAR(100), body TEXT, "
                    + "date DATETIME, writer INT UNSIGNED NOT NULL, category INT UNSIGNED NOT NULL, INDEX search (title(10)))");
            sql.add("CREATE TABLE " + old + "comments (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, writer INT UNSIGNED, "
                    + "story_id INT UNSIGNED NOT NULL, parent INT UNSIGNED, childs INT UNSIGNED, rating INT, date DATETIME, "
                    + "subject VARCHAR(100), comment TEXT, INDEX story (story_id), INDEX search (subject(10)))");
            for (int i = 1; i <= 30; i++) {
                sql.add("INSERT INTO %sstories VALUES (%d, 'independently %d', 'what''s new? 100%% %s', '2026-03-01 %02d:59:07', %d, %d)"
                        .formatted(old, i, i, "long ".repeat(i * 20), i % 24, 1 + i % 3, i % 3));
            }
            for (int i = 1; i <= 40; i++) { // 1..12 answer each other, the others answer the story
                int parent = i <= LEVELS ? i - 1 : 0;
                sql.add("INSERT INTO %scomments VALUES (%d, %d, 1, %d, %d, %d, '2026-03-02 00:%02d:00', 'independently %d', 'text')"
                        .formatted(old, i, 1 + i % 3, parent, i < LEVELS ? 1 : 0, i % 7 - 1, i, i));
            }
        }
        return sql.toArray(String[]::new);
    }

    static List<Case> cases() {
        List<Case> cases = new ArrayList<>(List.of(new Case("SELECT * FROM categories"),
                new Case("SELECT * FROM stories WHERE category = ? ORDER BY date DESC LIMIT ? OFFSET ?", 1, 5, 5)));
        for (String old : List.of("", "old_")) {
            String stories = old + "stories";
            String comments = old + "comments";
            String join = " FROM " + stories + ", users WHERE " + stories + ".writer = users.id";
            String columns = "SELECT " + stories + ".id, title, body, date, category, users.nickname";
            cases.add(new Case(columns + join + " ORDER BY date DESC LIMIT 10"));
            cases.add(new Case(columns + join + " AND " + stories + ".id = ?", 7));
            cases.add(new Case(columns + join + " AND date >= ? AND date <= ? ORDER BY date DESC LIMIT ? OFFSET ?",
                    "2026-3-1 0:0:0", "2026-3-1 23:59:59", 20, 5));
            cases.add(new Case(columns + join + " AND title LIKE ? ORDER BY date DESC, " + stories + ".id LIMIT 25 OFFSET 25", "independently%"));
            cases.add(new Case(columns + join + " AND nickname LIKE ? ORDER BY date DESC LIMIT 25 OFFSET 0", "user2%"));
            cases.add(new Case("SELECT " + comments + ".id, story_id, subject, date, nickname FROM " + comments + " JOIN users ON "
                    + comments + ".writer = users.id WHERE subject LIKE ? ORDER BY date DESC LIMIT 25 OFFSET 25", "independently%"));
            cases.add(new Case("SELECT rating, COUNT(rating) FROM " + comments + " WHERE story_id = ? GROUP BY rating ORDER BY rating", 1));
            cases.add(new Case("SELECT parent FROM " + comments + " WHERE id = ?", 3));
            for (int level = 0; level < LEVELS; level++) {
                cases.add(new Case(level(comments, level, ""), 0, 1));
                cases.add(new Case(level(comments, level, " AND t0.id = ?"), 0, 1, 1));
            }
        }
        return cases;
    }

    private static String level(final String table, final int level, final String one) {
        StringBuilder from = new StringBuilder();
        StringBuilder where = new StringBuilder(" WHERE t0.parent = ?").append(one);
        for (int k = 0; k <= level; k++) {
            from.append(", ").append(table).append(" t").append(k);
            where.append(k == 0 ? "" : " AND t" + k + ".parent = t" + (k - 1) + ".id");
        }
        return "SELECT t#.id, t#.parent, t#.childs, t#.rating, t#.date, t#.subject, t#.comment, users.nickname FROM users".replace("#", "" + level)
                + from + where + " AND t# .story_id = ? AND t# .writer = users.id".replace("# ", "" + level);
    }

    /** MySQL packet: length, sequence number, payload. */
    static byte[] packet(final int sequence, final byte[] payload) {
        return ByteBuffer.allocate(4 + payload.length).order(ByteOrder.LITTLE_ENDIAN)
                .putInt(payload.length | sequence << 24).put(payload).array();
    }

    /** HandshakeResponse41 with mysql_native_password. */
    static byte[] logIn(final String user, final byte[] scrambled, final String schema) {
        int flags = 1 | 8 | 512 | 32768 | 1 << 19; // LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(ByteBuffer.allocate(9).order(ByteOrder.LITTLE_ENDIAN).putInt(flags).putInt(1 << 24).put((byte) 45).array());
        out.writeBytes(new byte[23]);
        out.writeBytes((user + "\0").getBytes());
        out.write(scrambled.length);
        out.writeBytes(scrambled);
        out.writeBytes((schema + "\0mysql_native_password\0").getBytes());
        return out.toByteArray();
    }
}
