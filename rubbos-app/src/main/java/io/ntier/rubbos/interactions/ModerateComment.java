package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.CommentHtml;
import io.ntier.rubbos.html.FormHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.time.LocalDateTime;
import java.util.Map;

/** One comment, and the form of its rating. */
public final class ModerateComment implements Interaction {
    static final Map<CommentTable, String> COMMENT = Map.of(
            CommentTable.NEW, comment("comments"), CommentTable.OLD, comment("old_comments"));
    static final String WRITER = "SELECT nickname FROM users WHERE id = ?";

    private record Moderated(long story, long writer, int rating, LocalDateTime date, String subject, String text) {
    }

    private static String comment(String table) {
        return "SELECT story_id, writer, rating, date, subject, comment FROM %s WHERE id = ?".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        CommentTable table = params.commentTable();
        long id = params.id("commentId");
        Moderated comment = db.first(COMMENT.get(table), row ->
                new Moderated(row.getLong(1), row.getLong(2), row.getInt(3), Db.date(row, 4), row.getString(5), row.getString(6)), id);
        if (comment == null) {
            StoryHtml.unknown(page, "comment");
            return;
        }
        page.about(id);
        String nickname = db.first(WRITER, row -> row.getString(1), comment.writer());
        CommentHtml.alone(page, table, comment.story(), id, comment.subject(), comment.rating(), nickname, comment.date(), comment.text());
        FormHtml.moderation(page, table, id);
    }
}
