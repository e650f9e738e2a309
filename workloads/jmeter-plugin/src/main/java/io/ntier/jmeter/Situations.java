package io.ntier.jmeter;

import java.io.IOException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;

/**
 * Where users stand in the middle of their sessions: state, history and what they remember of the last pages. A run
 * keeps a uniform sample of them; the users of a later run can start there, so that its mix is the long-run one from
 * the first second on. If all users start at home instead, as RUBBoS does, the mix needs some ten interactions per user
 * to settle: minutes, once replies take seconds.
 *
 * <p>File: CSV with the header {@code author,state,history,transitions,memory}; the history's states are URL-encoded and
 * separated by blanks, oldest first; the memory is {@code name=value&...}, URL-encoded.
 */
final class Situations {
    /**
     * @param author whether the user is an author
     * @param state name of the state to request
     * @param history names of the states to go back to, oldest first
     * @param transitions done in the session
     * @param memory parameters of the request, and what {@link Parameters} remembers
     */
    record Situation(boolean author, String state, List<String> history, int transitions, Map<String, String> memory) {}

    private static final String HEADER = "author,state,history,transitions,memory";
    private static final int FIELDS = 5;

    private final List<Situation> kept = new ArrayList<>();
    private final int most;
    private final SplittableRandom random;
    private long offered;

    /** @param most situations to keep of those offered; 0 keeps none */
    Situations(int most, long seed) {
        this.most = most;
        random = new SplittableRandom(seed);
    }

    boolean keeps() {
        return most > 0;
    }

    /** Keeps each situation offered with the same probability (reservoir sampling, Vitter 1985, algorithm R). */
    synchronized void offer(Situation situation) {
        offered++;
        if (kept.size() < most) {
            kept.add(situation);
            return;
        }
        long place = random.nextLong(offered);
        if (place < most) {
            kept.set((int) place, situation);
        }
    }

    /** A random situation of a user, or of an author; null if there is none. */
    Situation draw(boolean author, RandomGenerator user) {
        List<Situation> fitting =
                kept.stream().filter(situation -> situation.author() == author).toList();
        return fitting.isEmpty() ? null : fitting.get(user.nextInt(fitting.size()));
    }

    synchronized void write(Path file) throws IOException {
        List<String> lines = new ArrayList<>(List.of(HEADER));
        for (Situation situation : kept) {
            String memory = situation.memory().entrySet().stream()
                    .map(entry -> entry.getKey() + "=" + encoded(entry.getValue()))
                    .collect(Collectors.joining("&"));
            lines.add(String.join(
                    ",",
                    situation.author() ? "1" : "0",
                    situation.state(),
                    situation.history().stream().map(Situations::encoded).collect(Collectors.joining(" ")),
                    Integer.toString(situation.transitions()),
                    memory));
        }
        Files.write(file, lines);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    /** Reads a file; IllegalArgumentException names file and line of what is wrong. */
    static Situations read(Path file, Mix users, Mix authors) {
        Situations read = new Situations(0, 0);
        try {
            List<String> lines = Files.readAllLines(file);
            if (lines.isEmpty() || !lines.get(0).equals(HEADER)) {
                throw new IllegalArgumentException("situations '" + file + "': the header must be '" + HEADER + "'");
            }
            for (int i = 1; i < lines.size(); i++) {
                Situation situation = parse(lines.get(i), file + " line " + (i + 1));
                List<String> known = (situation.author() ? authors : users).names();
                if (!known.contains(situation.state()) || !known.containsAll(situation.history())) {
                    throw new IllegalArgumentException(
                            file + " line " + (i + 1) + ": has a state that the mix does not have");
                }
                read.kept.add(situation);
            }
        } catch (IOException e) {
            throw new IllegalArgumentException("situations '" + file + "' cannot be read: " + e, e);
        }
        return read;
    }

    private static Situation parse(String line, String where) {
        String[] cells = line.split(",", -1);
        if (cells.length != FIELDS || !cells[3].matches("\\d{1,9}")) {
            throw new IllegalArgumentException(where + ": '" + line + "' is not of the form " + HEADER);
        }
        Map<String, String> memory = new LinkedHashMap<>();
        for (String pair : words(cells[4], "&")) {
            int at = pair.indexOf('=');
            if (at < 1) {
                throw new IllegalArgumentException(where + ": '" + pair + "' is not of the form name=value");
            }
            memory.put(pair.substring(0, at), decoded(pair.substring(at + 1)));
        }
        List<String> history = words(cells[2], " ").stream().map(Situations::decoded).toList();
        return new Situation(cells[0].equals("1"), cells[1], history, Integer.parseInt(cells[3]), memory);
    }

    private static List<String> words(String text, String separator) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split(separator));
    }
}
