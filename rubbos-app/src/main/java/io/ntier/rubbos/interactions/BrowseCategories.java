package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.FormHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;

/** All categories. */
public final class BrowseCategories implements Interaction {
    static final String CATEGORIES = "SELECT id, name FROM categories";

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        Map<Long, String> categories = categories(db);
        if (categories.isEmpty()) {
            StoryHtml.none(page, "no category");
        } else {
            FormHtml.categories(page, categories);
        }
    }

    /** id -> name, in the order of the database. */
    static Map<Long, String> categories(Db db) throws SQLException {
        Map<Long, String> categories = new LinkedHashMap<>();
        db.list(CATEGORIES, row -> categories.put(row.getLong(1), row.getString(2)));
        return categories;
    }
}
