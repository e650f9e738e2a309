package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** A new story: published at once if an author sends it, else left for review. */
public final class StoreStory implements Interaction {
    static final String SUBMISSION = newStory("submissions");
    static final String STORY = newStory("stories");

    private static String newStory(String table) {
        return "INSERT INTO %s (title, body, date, writer, category) VALUES (?, ?, NOW(), ?, ?)".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        long category = params.id("category");
        String title = params.headline("title");
        String body = params.required("body", Params.BODY_MAX_CHARS);
        Account account = Account.of(params, db);
        boolean author = account != null && account.isAuthor();
        db.update(author ? STORY : SUBMISSION, title, body, account == null ? 0L : account.id(), category);
        page.row();
        page.html(author ? "<h2>Your story has been published</h2>\n" : "<h2>Your story has been submitted for review</h2>\n")
                .html("<p><b>").text(title).html("</b></p>\n<p>").text(body).html("</p>\n");
    }
}
