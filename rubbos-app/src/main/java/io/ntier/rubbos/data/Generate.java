package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Command line: writes a data set. Exit codes: 0 done, 1 could not write, 2 wrong call. */
public final class Generate {
    private static final String USAGE = """
            usage: java -jar rubbos-data.jar --profile %s --seed N --reference-time EPOCH_S [--dictionary FILE] --out DIR
                   java -jar rubbos-data.jar --dictionary-only [--dictionary FILE] --out DIR
            Writes one tab-separated file per table, dictionary.txt (search words) and data.json (rows and bytes) to DIR.
            Dates are relative to the reference time (epoch seconds; give the time of loading), or, in the first week of a
            month, to the end of the month before: users ask for the last week within the month. Same arguments, same bytes.
            --dictionary: texts are made of these words, one a line (what follows a blank is ignored), instead of our own:
            those that a client of RUBBoS searches for.
            """.formatted(String.join("|", Profile.names()));
    private static final List<String> OPTIONS = List.of("--profile", "--seed", "--reference-time", "--dictionary", "--out");
    private static final String DICTIONARY_ONLY = "--dictionary-only";
    private static final int DAYS_OF_A_WEEK = 7;
    /** Keeps all dates within four-digit years, far inside what DATETIME holds (1973..9999). */
    private static final long REFERENCE_TIME_MIN_S = 100_000_000L;
    private static final long REFERENCE_TIME_MAX_S = 253_402_300_799L;

    private Generate() {
    }

    public static void main(String[] args) {
        try {
            Map<String, String> options = parse(args);
            Path out = Path.of(required(options, "--out"));
            List<String> words = dictionary(options.get("--dictionary"));
            if (options.containsKey(DICTIONARY_ONLY)) {
                Files.createDirectories(out);
                Files.write(out.resolve("dictionary.txt"), words);
                return;
            }
            long start = System.nanoTime();
            Profile profile = Profile.named(required(options, "--profile"));
            long seed = number("--seed", required(options, "--seed"), Long.MIN_VALUE, Long.MAX_VALUE);
            long time = withAWeekBefore(
                    number("--reference-time", required(options, "--reference-time"), REFERENCE_TIME_MIN_S, REFERENCE_TIME_MAX_S));
            new DataSet(profile, words, seed, time, out).write();
            System.out.print(Files.readString(out.resolve("data.json")));
            System.err.printf("generated in %.1f s%n", (System.nanoTime() - start) / 1e9);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.err.print(USAGE);
            System.exit(2);
        } catch (IOException e) {
            System.err.println("cannot write: " + e);
            System.exit(1);
        }
    }

    /**
     * Users ask for stories of the last week within the month, as RUBBoS' do: in the first week of a month the data end
     * with the month before, or most of what they ask for would not be there.
     */
    static long withAWeekBefore(long epochS) {
        ZonedDateTime time = Instant.ofEpochSecond(epochS).atZone(ZoneOffset.UTC);
        return time.getDayOfMonth() > DAYS_OF_A_WEEK
                ? epochS
                : time.withDayOfMonth(1).truncatedTo(ChronoUnit.DAYS).minusSeconds(1).toEpochSecond();
    }

    private static List<String> dictionary(String file) {
        try {
            return file == null ? Words.dictionary() : Words.read(Path.of(file));
        } catch (IOException e) {
            throw new IllegalArgumentException("--dictionary " + file + ": cannot be read (" + e + ")", e);
        }
    }

    static Map<String, String> parse(String[] args) {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals(DICTIONARY_ONLY)) {
                options.put(args[i], "");
            } else if (!OPTIONS.contains(args[i])) {
                throw new IllegalArgumentException("unknown option " + args[i]);
            } else if (++i == args.length) {
                throw new IllegalArgumentException(args[i - 1] + " needs a value");
            } else {
                options.put(args[i - 1], args[i]);
            }
        }
        return options;
    }

    private static String required(Map<String, String> options, String name) {
        String value = options.get(name);
        if (value == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return value;
    }

    static long number(String name, String value, long low, long high) {
        try {
            long number = Long.parseLong(value);
            if (number >= low && number <= high) {
                return number;
            }
        } catch (NumberFormatException ignored) {
            // the same answer as for a number out of range
        }
        throw new IllegalArgumentException(name + " " + value + ": not a whole number in " + low + ".." + high);
    }
}
