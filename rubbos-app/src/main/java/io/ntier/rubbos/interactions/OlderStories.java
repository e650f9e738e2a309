package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.db.Story;
import io.ntier.rubbos.html.FormHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.Paging;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.List;

/** The stories of one day, from old_stories if stories has none; without parameters only the form that asks for the day. */
public final class OlderStories implements Interaction {
    static final String STORIES_OF_DAY = storiesOfDay("stories");
    static final String OLD_STORIES_OF_DAY = storiesOfDay("old_stories");
    /** The original loses the first row of its result (it moves the cursor once too often). Kept: users meet the same links. */
    private static final int ROWS_LOST = 1;

    private static String storiesOfDay(String table) {
        return """
                SELECT s.id, s.title, s.date, users.nickname FROM %s s, users \
                WHERE s.date >= ? AND s.date <= ? AND s.writer = users.id \
                ORDER BY s.date DESC LIMIT ? OFFSET ?""".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        FormHtml.day(page);
        if (!params.has("day") && !params.has("month") && !params.has("year")) {
            return;
        }
        int day = params.number("day", 1, 31);
        int month = params.number("month", 1, 12);
        int year = params.number("year", 1970, 9999);
        int size = params.storiesPerPage();
        int pageNumber = params.page();
        Paging paging = new Paging("OlderStories?day=" + day + "&month=" + month + "&year=" + year, pageNumber, size);
        if (!YearMonth.of(year, month).isValidDay(day)) {
            StoryHtml.none(page, "no such day in this month", paging);
            return;
        }
        LocalDate date = LocalDate.of(year, month, day);
        List<Story> stories = stories(db, STORIES_OF_DAY, date, size, pageNumber);
        if (stories.isEmpty()) {
            stories = stories(db, OLD_STORIES_OF_DAY, date, size, pageNumber);
        }
        if (stories.isEmpty()) {
            StoryHtml.none(page, "no story of this day", paging);
        } else {
            StoryHtml.lines(page, stories.subList(ROWS_LOST, stories.size()), paging);
        }
    }

    /** A LocalDate as text has the digits of SQL, whatever the locale of the machine; a format has those of the locale. */
    private static List<Story> stories(Db db, String sql, LocalDate date, int size, int pageNumber) throws SQLException {
        return db.list(sql, row ->
                new Story(row.getLong(1), row.getString(2), null, Db.date(row, 3), row.getString(4)),
                date + " 00:00:00", date + " 23:59:59", size, (long) size * pageNumber);
    }
}
