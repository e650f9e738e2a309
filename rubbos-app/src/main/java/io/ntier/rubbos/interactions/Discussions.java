package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.Db;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;

/** What ViewStory and ViewComment have in common. */
final class Discussions {
    static final Map<CommentTable, String> COUNT_BY_RATING = Map.of(
            CommentTable.NEW, countByRating("comments"), CommentTable.OLD, countByRating("old_comments"));

    private Discussions() {
    }

    private static String countByRating(String table) {
        return "SELECT rating, COUNT(rating) FROM %s WHERE story_id = ? GROUP BY rating ORDER BY rating".formatted(table);
    }

    /** Comments of a story per rating. */
    static Map<Integer, Integer> countByRating(Db db, CommentTable table, long story) throws SQLException {
        Map<Integer, Integer> counts = new HashMap<>();
        db.list(COUNT_BY_RATING.get(table), row -> counts.put(row.getInt(1), row.getInt(2)), story);
        return counts;
    }
}
