package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.db.Story;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.Paging;
import io.ntier.rubbos.html.SearchHtml;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.List;

/** A search that lists stories: in stories and, if that page is empty, the same page of old_stories. */
abstract class StorySearch implements Interaction {
    /** The original ignores nbOfStories here. Kept: it is the LIMIT 25 of the paper's query. */
    static final int HITS_PER_PAGE = 25;

    private final int type;
    private final String sql;
    private final String oldSql;

    /** @param condition on the story s and users */
    StorySearch(int type, String condition) {
        this.type = type;
        sql = sql("stories", condition);
        oldSql = sql("old_stories", condition);
    }

    private static String sql(String table, String condition) {
        return """
                SELECT s.id, s.title, s.date, users.nickname FROM %s s, users \
                WHERE %s AND s.writer = users.id ORDER BY s.date DESC LIMIT ? OFFSET ?""".formatted(table, condition);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        String words = params.text("search");
        Paging paging = new Paging("Search?search=" + Paging.encode(words) + "&type=" + type, params.page(), params.storiesPerPage());
        SearchHtml.form(page, type, words);
        List<Story> stories = stories(db, sql, words, paging.page());
        if (stories.isEmpty()) {
            stories = stories(db, oldSql, words, paging.page());
        }
        if (stories.isEmpty()) {
            StoryHtml.none(page, "no such story", paging);
        } else {
            StoryHtml.lines(page, stories, paging);
        }
    }

    private static List<Story> stories(Db db, String sql, String words, int page) throws SQLException {
        return db.list(sql, row -> new Story(row.getLong(1), row.getString(2), null, Db.date(row, 3), row.getString(4)),
                Db.startsWith(words), HITS_PER_PAGE, (long) HITS_PER_PAGE * page);
    }
}
