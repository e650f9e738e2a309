package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.html.Paging;
import io.ntier.rubbos.html.SearchHtml;
import io.ntier.rubbos.html.StoryHtml;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/**
 * Comments whose subject starts with the words, in comments and, if that page is empty, the same page of old_comments. The latter
 * is the biggest table: for words of more than ten characters, and for an offset above zero, the paper's MySQL 5.0 read all of it
 * (section 4). Today's uses the index in both cases; {@code losesIndex} makes it behave as then.
 */
public final class SearchInComments implements Interaction {
    public static final int TYPE = 1;

    static final Map<CommentTable, String> COMMENTS_BY_SUBJECT = Map.of(
            CommentTable.NEW, commentsBySubject("comments"), CommentTable.OLD, commentsBySubject("old_comments"));

    /** The same rows, but no index on the subject can be used for them. */
    static final Map<CommentTable, String> COMMENTS_BY_SUBJECT_UNINDEXED = Map.of(
            CommentTable.NEW, commentsBySubject("comments").replace("c.subject LIKE", "CONCAT(c.subject, '') LIKE"),
            CommentTable.OLD, commentsBySubject("old_comments").replace("c.subject LIKE", "CONCAT(c.subject, '') LIKE"));
    /** Longer words go beyond the index on subject(10). */
    private static final int PREFIX_CHARS = 10;

    private final boolean losesIndex;

    /** @param losesIndex whether long words and later pages are searched for without an index, as by MySQL 5.0 */
    public SearchInComments(boolean losesIndex) {
        this.losesIndex = losesIndex;
    }

    private static String commentsBySubject(String table) {
        return """
                SELECT c.id, c.story_id, c.subject, c.date, users.nickname FROM %s c, users \
                WHERE c.subject LIKE ? AND c.writer = users.id ORDER BY c.date DESC LIMIT ? OFFSET ?""".formatted(table);
    }

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        String words = params.text("search");
        Paging paging = new Paging("Search?search=" + Paging.encode(words) + "&type=" + TYPE, params.page(), params.storiesPerPage());
        SearchHtml.form(page, TYPE, words);
        CommentTable table = CommentTable.NEW;
        List<SearchHtml.Hit> hits = hits(db, table, words, paging.page());
        if (hits.isEmpty()) {
            table = CommentTable.OLD;
            hits = hits(db, table, words, paging.page());
        }
        if (hits.isEmpty()) {
            StoryHtml.none(page, "no such comment", paging);
        } else {
            SearchHtml.comments(page, table, hits, paging);
        }
    }

    private List<SearchHtml.Hit> hits(Db db, CommentTable table, String words, int page) throws SQLException {
        boolean unindexed = losesIndex && (words.length() > PREFIX_CHARS || page > 0);
        return db.list((unindexed ? COMMENTS_BY_SUBJECT_UNINDEXED : COMMENTS_BY_SUBJECT).get(table), row ->
                new SearchHtml.Hit(row.getLong(1), row.getLong(2), row.getString(3), Db.date(row, 4), row.getString(5)),
                Db.startsWith(words), StorySearch.HITS_PER_PAGE, (long) StorySearch.HITS_PER_PAGE * page);
    }
}
