package io.ntier.jmeter;

import java.nio.charset.StandardCharsets;
import java.util.random.RandomGenerator;

/**
 * A page's text and the picks a user makes from its links. All look-ups are plain substring searches, as in the RUBBoS
 * client: cheap enough for pages of several 100 kB at thousands of users.
 */
final class Page {
    static final Page EMPTY = new Page("");
    private static final int NONE = -1;

    private final String text;

    Page(String text) {
        this.text = text;
    }

    /** ISO 8859-1 keeps one byte per character and copies fast; every string looked up is ASCII. */
    static Page of(byte[] body) {
        return new Page(new String(body, StandardCharsets.ISO_8859_1));
    }

    boolean contains(String part) {
        return text.contains(part);
    }

    /**
     * True if the page has the part, not followed by a further digit if it ends with one (storyId=12 is not
     * storyId=123).
     */
    boolean containsWhole(String part) {
        boolean number = !part.isEmpty() && Character.isDigit(part.charAt(part.length() - 1));
        for (int at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
            int end = at + part.length();
            if (!number || end == text.length() || !Character.isDigit(text.charAt(end))) {
                return true;
            }
        }
        return false;
    }

    /** Value after a uniformly picked occurrence of the key, or null. */
    String pick(String key, RandomGenerator random) {
        int at = position(key, random, false);
        return at == NONE ? null : value(at);
    }

    /**
     * Position behind a uniformly picked occurrence of the key, or -1.
     *
     * @param skipFirst the first occurrence does not count; if it is drawn, the second is taken (the original's rule)
     */
    int position(String key, RandomGenerator random, boolean skipFirst) {
        int count = 0;
        for (int at = text.indexOf(key); at >= 0; at = text.indexOf(key, at + key.length())) {
            count++;
        }
        if (count == 0 || skipFirst && count == 1) {
            return NONE;
        }
        int wanted = random.nextInt(count);
        if (skipFirst && wanted == 0) {
            wanted = 1;
        }
        int at = text.indexOf(key);
        for (int i = 0; i < wanted; i++) {
            at = text.indexOf(key, at + key.length());
        }
        return at + key.length();
    }

    /** Value of the first occurrence of the key at or behind the position, or null. */
    String valueAfter(String key, int position) {
        int at = text.indexOf(key, position);
        return at < 0 ? null : value(at + key.length());
    }

    /**
     * Page number of the next or previous link: the only one; a fair coin if there are two or more; 0 if there is none.
     * Links may be written with {@code &page=} or, escaped, with {@code &amp;page=}.
     */
    String pageNumber(RandomGenerator random) {
        int first = pageLink(0);
        if (first == NONE) {
            return "0";
        }
        int second = pageLink(first);
        return value(second == NONE || random.nextBoolean() ? first : second);
    }

    private int pageLink(int from) {
        String key = "page=";
        for (int at = text.indexOf(key, from); at >= 0; at = text.indexOf(key, at + key.length())) {
            if (at > 0 && (text.charAt(at - 1) == '&' || text.charAt(at - 1) == ';')) {
                return at + key.length();
            }
        }
        return NONE;
    }

    /** How many statements the page took, as the comment at its end says; 0 if it does not say. */
    int statements() {
        String key = " statements=";
        int from = text.lastIndexOf(key) + key.length();
        int end = from;
        while (end < text.length() && Character.isDigit(text.charAt(end))) {
            end++;
        }
        return from < key.length() || from == end ? 0 : Integer.parseInt(text, from, end, 10);
    }

    /** Value of a form's hidden field, quoted or not; null if there is none. */
    String field(String name) {
        for (String form : new String[] {"name=" + name + " ", "name=\"" + name + "\" "}) {
            int at = text.indexOf(form);
            if (at >= 0) {
                return attribute("value=", at + form.length());
            }
        }
        return null;
    }

    /** Value of a uniformly picked option of a form, or null. */
    String option(RandomGenerator random) {
        int at = position("<OPTION value=", random, false);
        if (at == NONE) {
            at = position("<option value=", random, false);
        }
        return at == NONE ? null : quoted(at);
    }

    private String attribute(String key, int from) {
        int at = text.indexOf(key, from);
        return at < 0 ? null : quoted(at + key.length());
    }

    private String quoted(int from) {
        boolean hasQuote = from < text.length() && text.charAt(from) == '"';
        return value(hasQuote ? from + 1 : from);
    }

    /** Text up to what ends a value in a link or tag. */
    private String value(int from) {
        int end = from;
        while (end < text.length() && "\"'?&<> \t\r\n".indexOf(text.charAt(end)) < 0) {
            end++;
        }
        return text.substring(from, end);
    }
}
