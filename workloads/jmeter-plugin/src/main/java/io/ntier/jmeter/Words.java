package io.ntier.jmeter;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * The dictionary: words drawn uniformly (as the client of the paper's experiments did), one per line up to the first
 * space.
 */
final class Words {
    private static final String[] PUNCTUATION = {", ", ". ", " ? ", " ! ", ": ", " ; "};

    private final String[] words;

    Words(List<String> lines, String source) {
        words = lines.stream()
                .map(line -> line.strip().split("\\s", 2)[0])
                .filter(word -> !word.isEmpty())
                .toArray(String[]::new);
        if (words.length == 0) {
            throw new IllegalArgumentException("dictionary '" + source + "' has no words (one per line)");
        }
    }

    static Words read(Path file) {
        try {
            return new Words(Files.readAllLines(file), file.toString());
        } catch (IOException e) {
            throw new IllegalArgumentException("dictionary '" + file + "' cannot be read: " + e, e);
        }
    }

    String word(RandomGenerator random) {
        return words[random.nextInt(words.length)];
    }

    /**
     * Words with punctuation (a tenth each of six marks, else a blank) until a uniform length below the limit is
     * reached.
     */
    String text(int limit, RandomGenerator random) {
        int length = random.nextInt(limit);
        StringBuilder text = new StringBuilder(length + 24);
        do {
            int mark = random.nextInt(10);
            text.append(word(random)).append(mark < PUNCTUATION.length ? PUNCTUATION[mark] : " ");
        } while (text.length() < length);
        text.setLength(Math.min(text.length(), limit));
        return text.toString().strip();
    }
}
