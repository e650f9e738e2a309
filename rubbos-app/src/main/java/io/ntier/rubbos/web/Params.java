package io.ntier.rubbos.web;

import io.ntier.rubbos.db.CommentTable;
import java.util.function.UnaryOperator;

/** The parameters of one request under RUBBoS' names. Every getter answers a valid value or throws {@link BadRequestException}. */
public final class Params {
    public static final int DEFAULT_STORIES_PER_PAGE = 25;
    /** INTEGER of PostgreSQL's schema; MySQL's INT UNSIGNED holds twice as many. */
    private static final long ID_MAX = Integer.MAX_VALUE;
    private static final int PAGE_MAX = 1_000_000;
    private static final int STORIES_PER_PAGE_MAX = 100;
    /** Longest title, subject or name in the schema: a longer one cannot match. */
    public static final int TEXT_MAX_CHARS = 100;
    /** A body in the schema has 65,535 bytes, a character at most 4. */
    public static final int BODY_MAX_CHARS = 16_000;
    private static final int SHOWN_VALUE_MAX_CHARS = 40;

    private final UnaryOperator<String> values;

    /** @param values name -> first value, or null if missing */
    public Params(UnaryOperator<String> values) {
        this.values = values;
    }

    public boolean has(String name) {
        String value = values.apply(name);
        return value != null && !value.isEmpty();
    }

    /** Identifier of a story, comment, category ...: required. */
    public long id(String name) {
        return number(name, 0, ID_MAX);
    }

    /** Required whole number in low..high. */
    public int number(String name, int low, int high) {
        return (int) number(name, (long) low, high);
    }

    public int number(String name, int low, int high, int absent) {
        return has(name) ? number(name, low, high) : absent;
    }

    /** Page of a list, from 0. */
    public int page() {
        return number("page", 0, PAGE_MAX, 0);
    }

    public int storiesPerPage() {
        return number("nbOfStories", 1, STORIES_PER_PAGE_MAX, DEFAULT_STORIES_PER_PAGE);
    }

    public CommentTable commentTable() {
        String value = values.apply("comment_table");
        for (CommentTable table : CommentTable.values()) {
            if (table.sqlName().equals(value)) {
                return table;
            }
        }
        throw bad("comment_table", value, "comments or old_comments");
    }

    /** Text of at most 100 characters without control characters; empty if missing. */
    public String text(String name) {
        String value = values.apply(name);
        if (value == null) {
            return "";
        }
        if (value.length() > TEXT_MAX_CHARS || value.chars().anyMatch(Character::isISOControl)) {
            throw bad(name, value, "at most " + TEXT_MAX_CHARS + " characters, no control characters");
        }
        return value;
    }

    /** Text of 1 to {@code maxChars} characters, without control characters other than line ends and tabs. */
    public String required(String name, int maxChars) {
        String value = values.apply(name);
        if (value == null || value.isEmpty() || value.length() > maxChars || value.chars().anyMatch(Params::isForbidden)) {
            throw bad(name, value, "1 to " + maxChars + " characters, no control characters");
        }
        return value;
    }

    /**
     * Subject or title: at most 100 characters are kept. RUBBoS' client adds words until it has as many as it drew (up to 99), so
     * one in thirty of its subjects is longer than the column; MySQL cut them then.
     */
    public String headline(String name) {
        String value = required(name, BODY_MAX_CHARS);
        if (value.length() <= TEXT_MAX_CHARS) {
            return value;
        }
        boolean splits = Character.isHighSurrogate(value.charAt(TEXT_MAX_CHARS - 1));
        return value.substring(0, splits ? TEXT_MAX_CHARS - 1 : TEXT_MAX_CHARS);
    }

    private static boolean isForbidden(int character) {
        return Character.isISOControl(character) && "\t\r\n".indexOf(character) < 0;
    }

    private long number(String name, long low, long high) {
        String value = values.apply(name);
        try {
            long number = Long.parseLong(value);
            if (number >= low && number <= high) {
                return number;
            }
        } catch (NumberFormatException ignored) {
            // the same answer as for a number out of range
        }
        throw bad(name, value, "a whole number in " + low + ".." + high);
    }

    private static BadRequestException bad(String name, String value, String allowed) {
        String shown = value == null ? "is missing"
                : value.length() <= SHOWN_VALUE_MAX_CHARS ? "is \"" + value + '"'
                : "is \"" + value.substring(0, SHOWN_VALUE_MAX_CHARS) + "...\"";
        return new BadRequestException("parameter " + name + ' ' + shown + "; allowed: " + allowed);
    }
}
