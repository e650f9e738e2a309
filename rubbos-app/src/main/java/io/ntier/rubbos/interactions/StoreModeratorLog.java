package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.CommentHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.Map;

/**
 * An author's rating of a comment: it moves the comment's and its writer's rating, and is logged. Ratings of comments stay within
 * -1..5 whoever else rates at the same time: the UPDATE itself holds the limits, and the writer's rating follows it (in the original
 * it goes ahead, and only the SELECT before knows the limits).
 */
public final class StoreModeratorLog implements Interaction {
    static final Map<CommentTable, String> RATED = Map.of(
            CommentTable.NEW, rated("comments"), CommentTable.OLD, rated("old_comments"));
    static final String RATE_USER = "UPDATE users SET rating = rating + ? WHERE id = ?";
    static final Map<CommentTable, String> RATE_COMMENT = Map.of(
            CommentTable.NEW, rateComment("comments"), CommentTable.OLD, rateComment("old_comments"));
    static final Map<CommentTable, String> COMMENT_RATING = Map.of(
            CommentTable.NEW, commentRating("comments"), CommentTable.OLD, commentRating("old_comments"));
    static final String USER_RATING = "SELECT rating FROM users WHERE id = ?";
    static final String LOG = "INSERT INTO moderator_log (moderator_id, comment_id, rating, date) VALUES (?, ?, ?, NOW())";

    private record Rated(long writer, int rating) {
        boolean takes(int change) {
            return change != 0 && rating >= lowest(change) && rating <= highest(change);
        }
    }

    /** The lowest rating that may change by this much. */
    private static int lowest(int change) {
        return CommentHtml.RATING_LOW - Math.min(change, 0);
    }

    private static int highest(int change) {
        return CommentHtml.RATING_HIGH - Math.max(change, 0);
    }

    private static String rated(String table) {
        return "SELECT writer, rating FROM %s WHERE id = ?".formatted(table);
    }

    private static String rateComment(String table) {
        return "UPDATE %s SET rating = rating + ? WHERE id = ? AND rating BETWEEN ? AND ?".formatted(table);
    }

    private static String commentRating(String table) {
        return "SELECT rating FROM %s WHERE id = ?".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        CommentTable table = params.commentTable();
        long id = params.id("commentId");
        int change = params.number("rating", -1, 1);
        Account account = Account.of(params, db);
        if (account == null || !account.isAuthor()) {
            StoryHtml.refused(page, "only authors may moderate comments");
            return;
        }
        Rated comment = db.first(RATED.get(table), row -> new Rated(row.getLong(1), row.getInt(2)), id);
        if (comment == null) {
            StoryHtml.unknown(page, "comment");
            return;
        }
        page.about(id);
        if (comment.takes(change) && db.update(RATE_COMMENT.get(table), change, id, lowest(change), highest(change)) > 0) {
            db.update(RATE_USER, change, comment.writer());
        }
        Integer rating = db.first(COMMENT_RATING.get(table), row -> row.getInt(1), id);
        Integer userRating = db.first(USER_RATING, row -> row.getInt(1), comment.writer());
        db.update(LOG, account.id(), id, change);
        page.row();
        page.html("<h2>Your moderation has been stored</h2>\n<p>New rating of the comment: ").text(String.valueOf(rating))
                .html("<br>New rating of its writer: ").text(String.valueOf(userRating)).html("</p>\n");
    }
}
