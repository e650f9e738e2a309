package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/** Loads profile tiny into a schema of a test, with the statements of schema/mysql. */
public final class DataSets {
    private DataSets() {
    }

    public static void load(Connection admin, String schema, Path folder) throws IOException, SQLException {
        new DataSet(Profile.named("tiny"), 1, System.currentTimeMillis() / 1000, folder).write();
        try (Statement statement = admin.createStatement()) {
            statement.execute("SET GLOBAL local_infile = 1");
            run(statement, schema, "1_tables.sql");
            statement.execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'");
            for (String table : List.of("categories", "users", "stories", "old_stories", "submissions", "comments", "old_comments")) {
                statement.execute("LOAD DATA LOCAL INFILE '" + folder.resolve(table + ".tsv") + "' INTO TABLE " + table);
            }
            run(statement, schema, "2_indexes.sql");
        }
    }

    private static void run(Statement statement, String schema, String file) throws IOException, SQLException {
        String sql = Files.readString(Path.of("schema/mysql", file)).replaceAll("(?m)^--.*$", "")
                .replaceAll("(DATABASE|DATABASE IF EXISTS|USE) rubbos\\b", "$1 " + schema);
        for (String one : sql.split(";")) {
            if (!one.isBlank()) {
                statement.execute(one);
            }
        }
    }
}
