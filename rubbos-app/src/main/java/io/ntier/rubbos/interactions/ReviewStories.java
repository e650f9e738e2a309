package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.db.Story;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.ReviewHtml;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.List;

/** The ten newest submissions, each to be accepted or rejected. */
public final class ReviewStories implements Interaction {
    static final String SUBMISSIONS = """
            SELECT id, title, body, date, writer, category FROM submissions ORDER BY date DESC LIMIT 10""";

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        List<Story> submissions = db.list(SUBMISSIONS, row ->
                new Story(row.getLong(1), row.getString(2), row.getString(3), Db.date(row, 4), row.getString(5)));
        page.html("<h2>Stories to review</h2>\n");
        if (submissions.isEmpty()) {
            StoryHtml.none(page, "no story to review");
        }
        submissions.forEach(story -> ReviewHtml.submission(page, story));
    }
}
