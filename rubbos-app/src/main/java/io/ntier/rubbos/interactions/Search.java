package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.SearchHtml;
import io.ntier.rubbos.web.Params;

/** The search form alone. */
public final class Search implements Interaction {
    @Override
    public void answer(Params params, Db db, Page page) {
        SearchHtml.form(page, 0, "");
    }
}
