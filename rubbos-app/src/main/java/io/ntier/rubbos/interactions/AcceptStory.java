package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.time.LocalDateTime;

/**
 * Publishes a submission under the date of its submission. The submission goes first (the original removes it last): of two
 * authors who accept it at once, one removes it, and only that one publishes it.
 */
public final class AcceptStory implements Interaction {
    static final String SUBMISSION = "SELECT title, body, date, writer, category FROM submissions WHERE id = ?";
    static final String PUBLISH = "INSERT INTO stories (title, body, date, writer, category) VALUES (?, ?, ?, ?, ?)";
    static final String REMOVE = "DELETE FROM submissions WHERE id = ?";

    private record Submission(String title, String body, LocalDateTime date, long writer, long category) {
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        long id = params.id("storyId");
        Submission story = db.first(SUBMISSION, row -> new Submission(row.getString(1), row.getString(2), Db.date(row, 3),
                row.getLong(4), row.getLong(5)), id);
        if (story == null) {
            StoryHtml.unknown(page, "story to review");
            return;
        }
        if (db.update(REMOVE, id) == 0) {
            StoryHtml.unknown(page, "story to review");
            return;
        }
        db.update(PUBLISH, story.title(), story.body(), story.date(), story.writer(), story.category());
        page.about(id);
        page.row();
        page.html("<h2>The story has been published</h2>\n<p>").text(story.title()).html("</p>\n");
    }
}
