package io.ntier.jmeter;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * What the page of an interaction must show, so that an empty or wrong page does not pass for a good one. File: CSV
 * with the header {@code state,must_contain}; every line of a state must hold; {@code |} separates alternatives;
 * <code>${name}</code> stands for a parameter of the request.
 */
final class ContentChecks {
    static final ContentChecks NONE = new ContentChecks();

    private final Map<String, List<String[]>> rules = new HashMap<>();

    private ContentChecks() {}

    static ContentChecks read(Path file) {
        try {
            return parse(Files.readAllLines(file), file.toString());
        } catch (IOException e) {
            throw new IllegalArgumentException("content checks '" + file + "' cannot be read: " + e, e);
        }
    }

    static ContentChecks parse(List<String> lines, String source) {
        ContentChecks checks = new ContentChecks();
        boolean header = false;
        for (String line : lines) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            int comma = line.indexOf(',');
            if (!header && !line.equals("state,must_contain") || comma < 1 || comma == line.length() - 1) {
                throw new IllegalArgumentException(source + ": '" + line + "' is not of the form state,must_contain");
            }
            if (header) {
                checks.rules
                        .computeIfAbsent(line.substring(0, comma), state -> new ArrayList<>())
                        .add(alternatives(line, comma + 1, source));
            }
            header = true;
        }
        return checks;
    }

    /** An empty one would stand in every page, and one that cannot be filled in would end the user who meets it. */
    private static String[] alternatives(String line, int from, String source) {
        String[] alternatives = line.substring(from).split("\\|", -1);
        for (String one : alternatives) {
            if (one.isEmpty() || one.replaceAll("\\$\\{\\w+}", "").contains("${")) {
                throw new IllegalArgumentException(source + ": '" + line
                        + "': between | must stand what a page can contain, with parameters as ${name}");
            }
        }
        return alternatives;
    }

    /** True if there is a rule for the state. */
    boolean covers(String state) {
        return rules.containsKey(state);
    }

    /** What the page lacks, as text; null if it shows all it must. */
    String missing(String state, Page page, UnaryOperator<String> parameter) {
        for (String[] alternatives : rules.getOrDefault(state, List.of())) {
            boolean found = false;
            for (String alternative : alternatives) {
                found |= page.containsWhole(filled(alternative, parameter));
            }
            if (!found) {
                return filled(String.join("|", alternatives), parameter);
            }
        }
        return null;
    }

    private static String filled(String pattern, UnaryOperator<String> parameter) {
        String text = pattern;
        for (int at = text.indexOf("${"); at >= 0; at = text.indexOf("${")) {
            int end = text.indexOf('}', at);
            text = text.substring(0, at) + parameter.apply(text.substring(at + 2, end)) + text.substring(end + 1);
        }
        return text;
    }
}
