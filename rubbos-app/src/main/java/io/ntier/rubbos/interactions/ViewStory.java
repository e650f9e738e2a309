package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.CommentTree;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.db.Story;
import io.ntier.rubbos.html.CommentHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** A story and its discussion: 3 statements and one per level of answers; one more if the story is an old one. */
public final class ViewStory implements Interaction {
    static final String STORY = story("stories");
    static final String OLD_STORY = story("old_stories");

    private static String story(String table) {
        return """
                SELECT s.id, s.title, s.body, s.date, users.nickname FROM %s s, users \
                WHERE s.id = ? AND s.writer = users.id""".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        long id = params.id("storyId");
        int filter = params.number("filter", CommentHtml.RATING_LOW, CommentHtml.RATING_HIGH, CommentHtml.FILTER_DEFAULT);
        CommentTable table = CommentTable.NEW;
        Story story = story(db, STORY, id);
        if (story == null) {
            table = CommentTable.OLD;
            story = story(db, OLD_STORY, id);
        }
        if (story == null) {
            StoryHtml.unknown(page, "story");
            return;
        }
        StoryHtml.full(page, story);
        CommentHtml html = new CommentHtml(page, table, id, filter, CommentHtml.DISPLAY_LINKS);
        html.postLink();
        html.filterForm(0, Discussions.countByRating(db, table, id));
        html.comments(CommentTree.under(db, table, id, 0));
    }

    private static Story story(Db db, String sql, long id) throws SQLException {
        return db.first(sql, row ->
                new Story(row.getLong(1), row.getString(2), row.getString(3), Db.date(row, 4), row.getString(5)), id);
    }
}
