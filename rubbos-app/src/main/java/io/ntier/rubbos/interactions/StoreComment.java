package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.Map;

/** A new comment, by the user whose password is right, or else by nobody (user 0). */
public final class StoreComment implements Interaction {
    static final String USER = "SELECT id FROM users WHERE nickname = ? AND password = ?";
    static final Map<CommentTable, String> NEW_COMMENT = Map.of(
            CommentTable.NEW, newComment("comments"), CommentTable.OLD, newComment("old_comments"));
    /** The original sends it for parent 0 as well, where it changes no row. Kept: it is a write for the middleware. */
    static final Map<CommentTable, String> ONE_MORE_CHILD = Map.of(
            CommentTable.NEW, oneMoreChild("comments"), CommentTable.OLD, oneMoreChild("old_comments"));

    private static String newComment(String table) {
        return """
                INSERT INTO %s (writer, story_id, parent, childs, rating, date, subject, comment) \
                VALUES (?, ?, ?, 0, 0, NOW(), ?, ?)""".formatted(table);
    }

    private static String oneMoreChild(String table) {
        return "UPDATE %s SET childs = childs + 1 WHERE id = ?".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        CommentTable table = params.commentTable();
        long story = params.id("storyId");
        long parent = params.id("parent");
        String subject = params.headline("subject");
        String body = params.required("body", Params.BODY_MAX_CHARS);
        Long user = db.first(USER, row -> row.getLong(1), params.text("nickname"), params.text("password"));
        db.update(NEW_COMMENT.get(table), user == null ? 0L : user, story, parent, subject, body);
        db.update(ONE_MORE_CHILD.get(table), parent);
        page.row();
        page.html("<h2>Your comment has been stored</h2>\n<p><b>").text(subject).html("</b></p>\n<p>").text(body).html("</p>\n");
    }
}
