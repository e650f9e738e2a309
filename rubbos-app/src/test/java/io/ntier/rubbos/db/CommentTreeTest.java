package io.ntier.rubbos.db;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class CommentTreeTest {
    @Test
    void levelZeroReadsOneTable() {
        assertEquals("SELECT t0.id, t0.parent, t0.childs, t0.rating, t0.date, t0.subject, t0.comment, users.nickname"
                + " FROM users, comments t0 WHERE t0.parent = ? AND t0.story_id = ? AND t0.writer = users.id",
                CommentTree.sql(CommentTable.NEW, false, 0));
    }

    @Test
    void levelTwoJoinsTheTableThreeTimes() {
        assertEquals("SELECT t2.id, t2.parent, t2.childs, t2.rating, t2.date, t2.subject, t2.comment, users.nickname"
                + " FROM users, old_comments t0, old_comments t1, old_comments t2"
                + " WHERE t0.parent = ? AND t0.id = ? AND t1.parent = t0.id AND t2.parent = t1.id"
                + " AND t2.story_id = ? AND t2.writer = users.id",
                CommentTree.sql(CommentTable.OLD, true, 2));
    }

    @Test
    void wildcardsOfTheUserStandForThemselves() {
        assertEquals("100\\% a\\_b\\\\%", Db.startsWith("100% a_b\\"));
    }
}
