package io.ntier.rubbos.db;

/** Comments of new stories and of old ones. The only table names that ever come from a request, hence an enumeration. */
public enum CommentTable {
    NEW("comments"), OLD("old_comments");

    private final String sqlName;

    CommentTable(String sqlName) {
        this.sqlName = sqlName;
    }

    public String sqlName() {
        return sqlName;
    }
}
