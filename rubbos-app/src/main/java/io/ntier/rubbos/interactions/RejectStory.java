package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** Deletes a submission. */
public final class RejectStory implements Interaction {
    static final String SUBMISSION = "SELECT id FROM submissions WHERE id = ?";

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        long id = params.id("storyId");
        if (db.first(SUBMISSION, row -> row.getLong(1), id) == null || db.update(AcceptStory.REMOVE, id) == 0) {
            StoryHtml.unknown(page, "story to review");
            return;
        }
        page.about(id);
        page.row();
        page.html("<h2>The story has been rejected</h2>\n");
    }
}
