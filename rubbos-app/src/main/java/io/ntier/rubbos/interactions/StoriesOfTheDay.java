package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.db.Story;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.List;

/** Home page: the ten newest stories. */
public final class StoriesOfTheDay implements Interaction {
    static final String NEWEST_STORIES = """
            SELECT stories.id, stories.title, stories.body, stories.date, stories.category, users.nickname FROM stories, users \
            WHERE stories.writer = users.id ORDER BY stories.date DESC LIMIT 10""";

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        List<Story> stories = db.list(NEWEST_STORIES, row ->
                new Story(row.getLong(1), row.getString(2), row.getString(3), Db.date(row, 4), row.getString(6)));
        page.html("<h2>Stories of the day</h2>\n");
        if (stories.isEmpty()) {
            StoryHtml.none(page, "no story");
        }
        stories.forEach(story -> StoryHtml.teaser(page, story));
    }
}
