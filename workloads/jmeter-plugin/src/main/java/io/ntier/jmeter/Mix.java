package io.ntier.jmeter;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A mix: states and the probabilities to go from one to the next.
 *
 * <p>The file is CSV with the header {@code from,to,probability}; lines that start with {@code #} are comments. The
 * first {@code from} is the home state, where sessions start. {@code Back} and {@code EndOfSession} are targets only. A
 * draw u in [0, 1) scans the targets of a state in the order of the file and takes the first one with u &lt; cumulative
 * probability; if there is none (the sum is below 1), the user stays in the state. What lies beyond a sum of 1 is never
 * reached. So did the RUBBoS client, and some of its published columns do not sum to 1.
 */
final class Mix {
    static final String BACK = "Back";
    static final String END = "EndOfSession";
    static final int BACK_TARGET = -1;
    static final int END_TARGET = -2;
    /** A published RUBBoS column sums to 1.138; anything outside this range is a slip of the pen. */
    private static final double LOWEST_SUM = 0.9;

    private static final double HIGHEST_SUM = 1.2;

    private final String[] states;
    private final int[][] targets;
    private final double[][] cumulative;
    private final boolean[] canGoBack;

    private Mix(Map<String, Map<String, Double>> rows, String source) {
        states = rows.keySet().toArray(new String[0]);
        targets = new int[states.length][];
        cumulative = new double[states.length][];
        canGoBack = new boolean[states.length];
        Map<String, Integer> index = new HashMap<>();
        for (int i = 0; i < states.length; i++) {
            index.put(states[i], i);
        }
        index.put(BACK, BACK_TARGET);
        index.put(END, END_TARGET);
        for (int i = 0; i < states.length; i++) {
            fill(i, rows.get(states[i]), index, source);
        }
    }

    private void fill(int state, Map<String, Double> row, Map<String, Integer> index, String source) {
        targets[state] = new int[row.size()];
        cumulative[state] = new double[row.size()];
        double sum = 0;
        int k = 0;
        for (Map.Entry<String, Double> entry : row.entrySet()) {
            Integer target = index.get(entry.getKey());
            if (target == null) {
                throw new IllegalArgumentException(source + ": state '" + states[state] + "' leads to '"
                        + entry.getKey() + "', which has no row of its own (known: " + String.join(", ", states) + ", "
                        + BACK + ", " + END + ")");
            }
            sum += entry.getValue();
            targets[state][k] = target;
            cumulative[state][k++] = sum;
            canGoBack[state] |= target == BACK_TARGET && entry.getValue() > 0;
        }
        if (sum < LOWEST_SUM || sum > HIGHEST_SUM) {
            throw new IllegalArgumentException(String.format(
                    "%s: probabilities of state '%s' sum to %.4f (allowed: %.1f..%.1f)",
                    source, states[state], sum, LOWEST_SUM, HIGHEST_SUM));
        }
    }

    /** Reads a mix file; IllegalArgumentException names file, line and field of what is wrong. */
    static Mix read(Path file) {
        try {
            return parse(Files.readAllLines(file), file.toString());
        } catch (IOException e) {
            throw new IllegalArgumentException("mix file '" + file + "' cannot be read: " + e, e);
        }
    }

    static Mix parse(List<String> lines, String source) {
        Map<String, Map<String, Double>> rows = new LinkedHashMap<>();
        boolean header = false;
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i).strip();
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            String where = source + " line " + (i + 1);
            if (!header) {
                require(
                        line.equals("from,to,probability"),
                        where,
                        "the header must be 'from,to,probability', not '" + line + "'");
                header = true;
                continue;
            }
            String[] cells = line.split(",", -1);
            require(cells.length == 3, where, "needs the three fields from,to,probability, has '" + line + "'");
            boolean pseudo = cells[0].equals(BACK) || cells[0].equals(END) || cells[0].isBlank();
            require(!pseudo, where, "'" + cells[0] + "' is not allowed in 'from'");
            Map<String, Double> row = rows.computeIfAbsent(cells[0], name -> new LinkedHashMap<>());
            require(
                    row.put(cells[1], probability(cells[2], where)) == null,
                    where,
                    "'" + cells[0] + "' to '" + cells[1] + "' stands twice");
        }
        require(!rows.isEmpty(), source, "has no transitions");
        return new Mix(rows, source);
    }

    private static double probability(String text, String where) {
        try {
            double value = Double.parseDouble(text);
            require(value >= 0 && value <= 1, where, "probability '" + text + "' is not in 0..1");
            return value;
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(where + ": probability '" + text + "' is not a number in 0..1", e);
        }
    }

    private static void require(boolean condition, String where, String message) {
        if (!condition) {
            throw new IllegalArgumentException(where + ": " + message);
        }
    }

    /** Number of states; their indices are 0..size-1, home is 0. */
    int size() {
        return states.length;
    }

    String name(int state) {
        return states[state];
    }

    /** Index of the state with this name; -1 if there is none. */
    int indexOf(String name) {
        return names().indexOf(name);
    }

    List<String> names() {
        return new ArrayList<>(Arrays.asList(states));
    }

    /** True if the state has a Back probability; entering a state without one forgets the history. */
    boolean canGoBack(int state) {
        return canGoBack[state];
    }

    /** Target of the transition for a draw u in [0, 1): a state, {@link #BACK_TARGET} or {@link #END_TARGET}. */
    int target(int state, double u) {
        double[] sums = cumulative[state];
        for (int k = 0; k < sums.length; k++) {
            if (u < sums[k]) {
                return targets[state][k];
            }
        }
        return state;
    }
}
