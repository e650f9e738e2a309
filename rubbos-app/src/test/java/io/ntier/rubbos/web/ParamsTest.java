package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.ntier.rubbos.db.CommentTable;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ParamsTest {
    private static Params with(String name, String value) {
        Map<String, String> values = new HashMap<>();
        values.put(name, value);
        return new Params(values::get);
    }

    @Test
    void validValuesPass() {
        assertEquals(2_147_483_647L, with("storyId", "2147483647").id("storyId"));
        assertEquals(-1, with("filter", "-1").number("filter", -1, 5));
        assertEquals(CommentTable.OLD, with("comment_table", "old_comments").commentTable());
        assertEquals("O'Neil %", with("search", "O'Neil %").text("search"));
    }

    @Test
    void missingOptionalOnesHaveDefaults() {
        Params none = with("x", "");
        assertEquals(0, none.page());
        assertEquals(25, none.storiesPerPage());
        assertEquals("", none.text("search"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "-1", "4294967296", "99999999999999999999", "1.5", "0x10", "1 OR 1=1", "1;", "a", " 1", "1e3"})
    void idsAreUnsignedIntegers(String value) {
        assertThrows(BadRequestException.class, () -> with("storyId", value).id("storyId"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "users", "comments c, users", "comments;", "COMMENTS"})
    void onlyTwoTablesCanBeNamed(String value) {
        assertThrows(BadRequestException.class, () -> with("comment_table", value).commentTable());
    }

    @Test
    void textIsBounded() {
        assertThrows(BadRequestException.class, () -> with("search", "a".repeat(101)).text("search"));
        assertThrows(BadRequestException.class, () -> with("search", "a\u0000b").text("search"));
        assertThrows(BadRequestException.class, () -> with("nbOfStories", "101").storiesPerPage());
        assertThrows(BadRequestException.class, () -> with("page", "-1").page());
    }

    @Test
    void messageNamesParameterValueAndRange() {
        String message = assertThrows(BadRequestException.class, () -> with("page", "x".repeat(1000)).page()).getMessage();
        assertTrue(message.contains("page") && message.contains("0..1000000"), message);
        assertTrue(message.length() < 200, message);
    }
}
