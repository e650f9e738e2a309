package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.ReviewHtml;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** What an author may do after logging in. */
public final class AuthorTask implements Interaction {
    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        Account account = Account.of(params, db);
        if (account == null || !account.isAuthor()) {
            StoryHtml.refused(page, "only authors may review stories");
        } else {
            ReviewHtml.tasks(page);
        }
    }
}
