package io.ntier.rubbos.db;

import java.sql.SQLException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Fetches a discussion level by level: one statement per level, that of level n joins the comment table n+1 times with itself
 * (RUBBoS since March 2005; the many self-joins are part of the load).
 */
public final class CommentTree {
    /** MySQL joins at most 61 tables: users and 60 times the comments. */
    private static final int LEVELS_MAX = 60;
    private static final Map<String, String> SQL = new ConcurrentHashMap<>();

    private CommentTree() {
    }

    /** Comments of a story that answer {@code parent} (0: the story itself), with everything below them. */
    public static List<Comment> under(Db db, CommentTable table, long story, long parent) throws SQLException {
        return fetch(db, table, false, parent, story);
    }

    /** One comment with everything below it, as a list of at most one. */
    public static List<Comment> of(Db db, CommentTable table, long story, long parent, long comment) throws SQLException {
        return fetch(db, table, true, parent, comment, story);
    }

    private static List<Comment> fetch(Db db, CommentTable table, boolean one, Object... values) throws SQLException {
        List<Comment> top = db.list(sql(table, one, 0), Comment::read, values);
        List<Comment> level = top;
        for (int depth = 1; depth < LEVELS_MAX && anyAnswered(level); depth++) {
            Map<Long, Comment> parents = new HashMap<>();
            level.forEach(comment -> parents.put(comment.id(), comment));
            level = db.list(sql(table, one, depth), Comment::read, values);
            for (Comment comment : level) {
                Comment parent = parents.get(comment.parent());
                if (parent != null) {
                    parent.answers().add(comment);
                }
            }
        }
        return top;
    }

    private static boolean anyAnswered(List<Comment> level) {
        for (Comment comment : level) {
            if (comment.children() > 0) {
                return true;
            }
        }
        return false;
    }

    /** Values to bind: parent, the comment (if {@code one}), story. Only the lowest level is restricted to the story. */
    static String sql(CommentTable table, boolean one, int depth) {
        return SQL.computeIfAbsent(table.sqlName() + one + depth, key -> build(table.sqlName(), one, depth));
    }

    private static String build(String table, boolean one, int depth) {
        String last = "t" + depth + '.';
        StringBuilder sql = new StringBuilder("SELECT ");
        String separator = "";
        for (String column : Arrays.asList("id", "parent", "childs", "rating", "date", "subject", "comment")) {
            sql.append(separator).append(last).append(column);
            separator = ", ";
        }
        sql.append(", users.nickname FROM users");
        for (int level = 0; level <= depth; level++) {
            sql.append(", ").append(table).append(" t").append(level);
        }
        sql.append(" WHERE t0.parent = ?").append(one ? " AND t0.id = ?" : "");
        for (int level = 1; level <= depth; level++) {
            sql.append(" AND t").append(level).append(".parent = t").append(level - 1).append(".id");
        }
        return sql.append(" AND ").append(last).append("story_id = ? AND ").append(last).append("writer = users.id").toString();
    }
}
