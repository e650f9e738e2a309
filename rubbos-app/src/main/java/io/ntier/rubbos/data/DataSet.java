package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Writes one file per table. All dates are UTC. */
final class DataSet {
    private static final int DAY_S = 86_400;
    private static final int RATING_LOW = -1;
    private static final int RATING_HIGH = 5;
    /** A comment follows its story within three days, if the reference time allows. */
    private static final int COMMENTS_SPAN_S = 3 * DAY_S;
    private static final DateTimeFormatter SQL_TIME = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss").withZone(ZoneOffset.UTC);

    private final Profile profile;
    private final long seed;
    private final long referenceTime;
    private final Path folder;
    private final List<String> dictionary;
    private final List<String> categories = Categories.names();
    private final Texts texts;
    private final Map<String, TableFile> written = new LinkedHashMap<>();
    private int storyId;
    private int depthSum;
    private int depthMax;

    /**
     * @param dictionary    words that titles, subjects and bodies are made of
     * @param referenceTime epoch seconds of the youngest story's end of day: "now" for the data
     */
    DataSet(Profile profile, List<String> dictionary, long seed, long referenceTime, Path folder) {
        this.profile = profile;
        this.dictionary = dictionary;
        this.seed = seed;
        this.referenceTime = referenceTime;
        this.folder = folder;
        texts = new Texts(dictionary, profile.textMaxChars());
    }

    void write() throws IOException {
        Files.createDirectories(folder);
        Files.write(folder.resolve("dictionary.txt"), dictionary);
        try (TableFile table = open("categories")) {
            for (int id = 0; id < categories.size(); id++) {
                table.field(id).field(categories.get(id)).endRow();
            }
        }
        try (TableFile table = open("users")) {
            writeUsers(table);
        }
        writeStories("old_stories", "old_comments", profile.days(), profile.newDays());
        writeStories("stories", "comments", profile.newDays(), 0);
        try (TableFile table = open("submissions")) {
            writeDay(table, null, "submission", 1, 1);
        }
        open("moderator_log").close();
        DataSummary.write(folder, profile, seed, referenceTime, written, (double) depthSum / storyId, depthMax);
    }

    private TableFile open(String table) throws IOException {
        TableFile file = new TableFile(folder.resolve(table + ".tsv"));
        written.put(table, file);
        return file;
    }

    /** User 0, user1..userN, author1..authorM; names and passwords as the RUBBoS client expects them. */
    private void writeUsers(TableFile table) throws IOException {
        Draws draws = new Draws(seed, "users", 0);
        String joined = time(referenceTime - (long) profile.days() * DAY_S);
        table.field(0).field("Anonymous").field("Coward").field("Anonymous Coward").field("").field("").field(0).field(0)
                .field(joined).endRow();
        for (int n = 1; n <= profile.users(); n++) {
            writeUser(table, n, "user", n, 0, draws);
        }
        for (int n = 1; n <= profile.authors(); n++) {
            writeUser(table, profile.users() + n, "author", n, 1, draws);
        }
    }

    private void writeUser(TableFile table, int id, String kind, int n, int access, Draws draws) throws IOException {
        String surname = access == 0 ? "User" + n : "Author" + n;
        long joined = referenceTime - draws.below(profile.days() * DAY_S);
        table.field(id).field("Great" + n).field(surname).field(kind + n).field("password" + n)
                .field("Great" + n + "." + surname + "@rubbos.com")
                .field(draws.between(RATING_LOW, RATING_HIGH)).field(access).field(time(joined)).endRow();
    }

    /** Stories of fromDays..toDays days before the reference time, oldest first, with their comments. */
    private void writeStories(String storyTable, String commentTable, int fromDays, int toDays) throws IOException {
        try (TableFile stories = open(storyTable); TableFile comments = open(commentTable)) {
            for (int day = fromDays; day > toDays; day--) {
                writeDay(stories, comments, "day", day, storyId + 1);
            }
        }
    }

    /** @param comments null for submissions, which nobody can comment on and which do not count as stories */
    private void writeDay(TableFile stories, TableFile comments, String stream, int day, int firstId) throws IOException {
        Draws draws = new Draws(seed, stream, day);
        int[] seconds = new int[profile.storiesPerDay().draw(draws)];
        for (int i = 0; i < seconds.length; i++) {
            seconds[i] = draws.below(DAY_S);
        }
        Arrays.sort(seconds);
        for (int i = 0; i < seconds.length; i++) {
            long published = referenceTime - (long) day * DAY_S + seconds[i];
            stories.field(firstId + i);
            texts.subject(draws, stories);
            texts.body(draws, profile.textMaxChars(), stories);
            stories.field(time(published)).field(draws.between(1, profile.users())).field(draws.below(categories.size())).endRow();
            if (comments != null) {
                storyId = firstId + i;
                boolean fresh = day <= profile.freshDays();
                writeComments(comments, published, fresh ? profile.commentsPerFreshStory() : profile.commentsPerStory());
            }
        }
    }

    private void writeComments(TableFile table, long published, Profile.Range number) throws IOException {
        Draws draws = new Draws(seed, "comments", storyId);
        int count = number.draw(draws);
        Discussion discussion = Discussion.draw(draws, count, profile.rootShare(), profile.replyWindow());
        depthSum += discussion.depth();
        depthMax = Math.max(depthMax, discussion.depth());
        int span = (int) Math.min(COMMENTS_SPAN_S, referenceTime - published);
        int[] seconds = new int[count];
        for (int i = 0; i < count; i++) {
            seconds[i] = draws.below(span + 1);
        }
        Arrays.sort(seconds);
        long firstId = table.rows() + 1;
        for (int i = 0; i < count; i++) {
            int parent = discussion.parents()[i];
            table.field(firstId + i).field(draws.between(1, profile.users())).field(storyId)
                    .field(parent < 0 ? 0 : firstId + parent).field(discussion.children()[i])
                    .field(draws.between(RATING_LOW, RATING_HIGH)).field(time(published + seconds[i]));
            texts.subject(draws, table);
            texts.body(draws, profile.textMaxChars(), table);
            table.endRow();
        }
    }

    private static String time(long epochSecond) {
        return SQL_TIME.format(Instant.ofEpochSecond(epochSecond));
    }
}
