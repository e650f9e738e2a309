package io.ntier.rubbos.data;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** Makes titles and bodies of dictionary words, as the RUBBoS client does for the texts it posts. The buffer is reused. */
final class Texts {
    static final int SUBJECT_MAX_CHARS = 100;
    static final int LONGEST_WORD = 32;
    /** Text after a word: the client's six marks with probability 0.1 each, else a blank. */
    private static final String[] SUFFIXES = {", ", ". ", " ? ", " ! ", ": ", " ; ", " ", " ", " ", " "};
    private static final int LONGEST_SUFFIX = 3;

    private final byte[][] words;
    private final byte[][] suffixes;
    private final byte[] buffer;
    private int length;

    Texts(List<String> dictionary, int bodyMaxChars) {
        words = ascii(dictionary);
        suffixes = ascii(List.of(SUFFIXES));
        buffer = new byte[Math.max(bodyMaxChars, SUBJECT_MAX_CHARS) + LONGEST_WORD + LONGEST_SUFFIX];
    }

    private static byte[][] ascii(List<String> texts) {
        return texts.stream().map(t -> t.getBytes(StandardCharsets.US_ASCII)).toArray(byte[][]::new);
    }

    /** A title or subject: starts with a dictionary word (so that a search by prefix hits) and is cut at 100 characters. */
    void subject(Draws draws, TableFile table) {
        text(draws, draws.below(SUBJECT_MAX_CHARS), SUBJECT_MAX_CHARS, table);
    }

    /** A body of about 0..maxChars characters, at least one word. */
    void body(Draws draws, int maxChars, TableFile table) {
        text(draws, draws.below(maxChars + 1), maxChars, table);
    }

    private void text(Draws draws, int atLeast, int atMost, TableFile table) {
        length = 0;
        do {
            append(words[draws.below(words.length)]);
            append(suffixes[draws.below(suffixes.length)]);
        } while (length < atLeast);
        length = Math.min(length, atMost);
        while (buffer[length - 1] == ' ') {
            length--;
        }
        table.field(buffer, length);
    }

    private void append(byte[] part) {
        System.arraycopy(part, 0, buffer, length, part.length);
        length += part.length;
    }
}
