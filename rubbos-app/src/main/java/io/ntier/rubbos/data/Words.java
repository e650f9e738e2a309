package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The dictionary: 4,201 made-up lower-case words, the same for every profile and seed, so that the load generator's search
 * words fit all data. Number and lengths follow RUBBoS' dictionary (4,201 distinct words; mean length 6.9; 9.3 % longer
 * than ten characters, where the prefix indexes end); the words themselves are our own.
 */
final class Words {
    /** COUNT_BY_LENGTH[n] = words of n letters: RUBBoS' histogram (4,563 lines) scaled to its 4,201 distinct words. */
    private static final int[] COUNT_BY_LENGTH =
            {0, 5, 123, 133, 471, 611, 659, 634, 481, 386, 307, 178, 109, 63, 26, 12, 2, 0, 1};

    private static final String[] ONSETS = {"b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l",
        "m", "n", "p", "pl", "pr", "qu", "r", "s", "sh", "sp", "st", "t", "th", "tr", "v", "w"};
    private static final String[] VOWELS = {"a", "a", "e", "e", "e", "i", "i", "o", "o", "u", "ai", "ea", "ou"};
    private static final String[] CODAS = {"", "", "", "n", "r", "s", "l", "t", "nd", "ck", "m"};
    private static final String[] ENDINGS = {"ing", "ed", "er", "ly", "ation", "ment", "ness", "able", "ively", "ently"};

    private Words() {
    }

    /**
     * Words of a file, in its order and each once: the first of each line, as in RUBBoS' dictionary, where a number follows; blank
     * lines do not count.
     *
     * @throws IllegalArgumentException naming file and line, if a word is longer than {@link Texts#LONGEST_WORD}, not of printable
     *                                  ASCII characters, has a backslash or means something to clients, or if there is no word
     */
    static List<String> read(Path file) throws IOException {
        Set<String> words = new LinkedHashSet<>();
        int number = 0;
        for (String line : Files.readAllLines(file, StandardCharsets.ISO_8859_1)) {
            number++;
            String word = line.strip().split("\\s+", 2)[0];
            if (word.isEmpty()) {
                continue;
            }
            if (word.length() > Texts.LONGEST_WORD || word.chars().anyMatch(c -> c <= ' ' || c > '~' || c == '\\')) {
                throw new IllegalArgumentException("--dictionary " + file + " line " + number + ": not a word of at most "
                        + Texts.LONGEST_WORD + " ASCII characters, no backslash");
            }
            if (word.contains("ERROR") || word.contains("Sorry")) {
                throw new IllegalArgumentException("--dictionary " + file + " line " + number + ": RUBBoS' clients take a page with \""
                        + word + "\" for a failed or an empty one");
            }
            words.add(word);
        }
        if (words.isEmpty()) {
            throw new IllegalArgumentException("--dictionary " + file + ": has no word");
        }
        return List.copyOf(words);
    }

    /** Our own words, sorted. */
    static List<String> dictionary() {
        Draws draws = new Draws(1, "dictionary", 0);
        Set<String> seen = new HashSet<>();
        for (int length = 1; length < COUNT_BY_LENGTH.length; length++) {
            for (int made = 0; made < COUNT_BY_LENGTH[length]; ) {
                String word = word(draws, length);
                if (word.length() == length && seen.add(word)) {
                    made++;
                }
            }
        }
        List<String> words = new ArrayList<>(seen);
        Collections.sort(words);
        return words;
    }

    /** A word of at least {@code length} letters; the caller keeps it if it fits. */
    private static String word(Draws draws, int length) {
        if (length <= 2) {
            return letters(draws, length);
        }
        String ending = length > 6 && draws.unit() < 0.7 ? pick(draws, ENDINGS) : "";
        StringBuilder word = new StringBuilder(length + 4);
        if (draws.unit() < 0.2) {
            word.append(pick(draws, VOWELS)).append(pick(draws, CODAS));
        }
        while (word.length() + ending.length() < length) {
            word.append(pick(draws, ONSETS)).append(pick(draws, VOWELS)).append(pick(draws, CODAS));
        }
        return word.append(ending).toString();
    }

    private static String letters(Draws draws, int length) {
        StringBuilder word = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            word.append((char) ('a' + draws.below(26)));
        }
        return word.toString();
    }

    private static String pick(Draws draws, String[] from) {
        return from[draws.below(from.length)];
    }
}
