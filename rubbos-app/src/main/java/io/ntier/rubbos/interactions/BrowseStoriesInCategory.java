package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.db.Story;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.Paging;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.List;

/** The stories of one category, newest first. As in the original: never from old_stories, and with the writer's id, not name. */
public final class BrowseStoriesInCategory implements Interaction {
    static final String STORIES_OF_CATEGORY = """
            SELECT id, title, body, date, writer, category FROM stories WHERE category = ? \
            ORDER BY date DESC LIMIT ? OFFSET ?""";

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        long category = params.id("category");
        String name = params.text("categoryName");
        int size = params.storiesPerPage();
        Paging paging = new Paging("BrowseStoriesByCategory?category=" + category + "&categoryName=" + Paging.encode(name),
                params.page(), size);
        List<Story> stories = db.list(STORIES_OF_CATEGORY, row ->
                new Story(row.getLong(1), row.getString(2), row.getString(3), Db.date(row, 4), row.getString(5)),
                category, size, (long) size * paging.page());
        page.html("<h2>Stories in ").text(name).html("</h2>\n");
        if (stories.isEmpty()) {
            StoryHtml.none(page, "no story in this category", paging);
        } else {
            StoryHtml.lines(page, stories, paging);
        }
    }
}
