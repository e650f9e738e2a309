package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Comment;
import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.CommentTree;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.CommentHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** One comment and its answers, or (commentId 0) the whole discussion of a story. Answers are fetched even if not displayed. */
public final class ViewComment implements Interaction {
    static final Map<CommentTable, String> PARENT = Map.of(
            CommentTable.NEW, parent("comments"), CommentTable.OLD, parent("old_comments"));

    private static String parent(String table) {
        return "SELECT parent FROM %s WHERE id = ?".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        CommentTable table = params.commentTable();
        long story = params.id("storyId");
        long id = params.id("commentId");
        int filter = params.number("filter", CommentHtml.RATING_LOW, CommentHtml.RATING_HIGH, CommentHtml.FILTER_DEFAULT);
        int display = params.number("display", CommentHtml.DISPLAY_ROOTS, CommentHtml.DISPLAY_FULL, CommentHtml.DISPLAY_ROOTS);
        page.about(id);

        Long parent = id == 0 ? Long.valueOf(0) : db.first(PARENT.get(table), row -> row.getLong(1), id);
        if (parent == null) {
            StoryHtml.unknown(page, "comment");
            return;
        }
        CommentHtml html = new CommentHtml(page, table, story, filter, display);
        html.filterForm(id, Discussions.countByRating(db, table, story));
        List<Comment> comments = id == 0 ? CommentTree.under(db, table, story, 0) : CommentTree.of(db, table, story, parent, id);
        html.comments(comments);
    }
}
