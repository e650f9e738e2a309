package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.FormHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** The form of a new story. */
public final class SubmitStory implements Interaction {
    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        FormHtml.story(page, BrowseCategories.categories(db));
    }
}
