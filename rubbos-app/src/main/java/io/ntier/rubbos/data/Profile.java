package io.ntier.rubbos.data;

import java.util.List;

/**
 * How much data, and of what shape.
 *
 * @param users           regular users user1..userN (the load generator logs in as one of 500,000); user 0 comes on top
 * @param authors         author1..authorN, with access 1
 * @param days            age of the oldest story, days before the reference time
 * @param newDays         stories younger than this are in {@code stories}, the others in {@code old_stories} (one month)
 * @param storiesPerDay   inclusive range, uniform
 * @param commentsPerStory inclusive range, uniform
 * @param freshDays       the youngest stories, which have not been discussed for long, and
 * @param commentsPerFreshStory the comments that each of them has so far
 * @param rootShare       probability that a comment answers the story and not an earlier comment
 * @param replyWindow     an answer goes to one of this many comments before it. RUBBoS states neither; 0.2 and 5 make
 *                        threads 7.5 levels deep in the mean, and 1 story in 3 needs the "more than nine self-joins"
 *                        that the paper met
 * @param textMaxChars    longest body of a story or comment; lengths are uniform (the RUBBoS client's rule for new texts)
 */
record Profile(String name, int users, int authors, int days, int newDays, Range storiesPerDay, Range commentsPerStory,
               int freshDays, Range commentsPerFreshStory, double rootShare, int replyWindow, int textMaxChars) {

    /** Inclusive. */
    record Range(int low, int high) {
        int draw(Draws draws) {
            return draws.between(low, high);
        }
    }

    private static final Range USUAL = new Range(20, 50);

    /**
     * Users, authors, stories per day and comments per story of RUBBoS; {@code small} and {@code tiny} are cuts of it.
     * {@code expanded} has the numbers that an access log of RUBBoS' expanded data set shows: 6,000 old stories and 7,000 new
     * ones with 276 comments each, but 14 for the newest 950.
     */
    static final List<Profile> ALL = List.of(
            new Profile("tiny", 500, 50, 40, 30, new Range(6, 10), USUAL, 0, USUAL, 0.2, 5, 1023),
            new Profile("small", 500_000, 50, 180, 30, new Range(15, 25), USUAL, 0, USUAL, 0.2, 5, 1023),
            new Profile("standard", 500_000, 50, 1095, 30, new Range(15, 25), USUAL, 0, USUAL, 0.2, 5, 1023),
            new Profile("expanded", 500_000, 50, 648, 348, new Range(15, 25), new Range(25, 527), 47, new Range(5, 23), 0.2, 5, 1023));

    static List<String> names() {
        return ALL.stream().map(Profile::name).toList();
    }

    static Profile named(String name) {
        return ALL.stream().filter(p -> p.name.equals(name)).findFirst().orElseThrow(() -> new IllegalArgumentException(
                "--profile " + name + ": unknown; allowed: " + String.join(", ", names())));
    }
}
