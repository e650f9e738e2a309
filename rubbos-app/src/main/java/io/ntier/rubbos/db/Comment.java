package io.ntier.rubbos.db;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/** A comment with its answers. {@code children} is the number the table states, {@code answers} what was fetched. */
public record Comment(long id, long parent, int children, int rating, LocalDateTime date, String subject, String text, String nickname,
                      List<Comment> answers) {

    /** Columns as {@link CommentTree} selects them. */
    static Comment read(ResultSet row) throws SQLException {
        return new Comment(row.getLong(1), row.getLong(2), row.getInt(3), row.getInt(4), Db.date(row, 5), row.getString(6),
                row.getString(7), row.getString(8), new ArrayList<>());
    }
}
