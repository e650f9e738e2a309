package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntFunction;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WalkTest {
    private static final IntFunction<Walk.Request> ALWAYS = state -> Walk.Request.READY;
    private static final double[] NO_DRAWS = {};

    /** Home leads to List, List to Item or back; Item and List keep the history, Form forgets it. */
    private static final Mix SITE = MixTest.mix("Home,List,0.5", "Home,Form,0.4", "Home,EndOfSession,0.1",
            "List,Item,0.5", "List,Back,0.5", "Item,Form,0.3", "Item,Back,0.5", "Item,EndOfSession,0.2", "Form,Home,1");

    private static final double TO_LIST = 0.1;
    private static final double TO_FORM = 0.6;
    private static final double TO_ITEM = 0.1;
    private static final double BACK = 0.7;
    private static final double END = 0.95;

    private static Walk walk(double... draws) {
        int[] next = {0};
        RandomGenerator scripted = new RandomGenerator() {
            @Override
            public long nextLong() {
                throw new AssertionError("one double per transition");
            }

            @Override
            public double nextDouble() {
                return draws[next[0]++];
            }
        };
        return new Walk(SITE, scripted, 1000);
    }

    private static List<String> visits(Walk walk, int steps) {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < steps; i++) {
            walk.advance(Walk.Outcome.OK, ALWAYS);
            names.add(walk.stateName() + "<" + walk.thinkFor());
        }
        return names;
    }

    @Test
    void backReturnsThroughTheHistory() {
        assertEquals(List.of("List<List", "Item<Item", "List<Back", "Home<Back"), visits(walk(TO_LIST, TO_ITEM, BACK, BACK), 4));
    }

    @Test
    void aStateWithoutBackForgetsTheHistory() {
        Walk walk = walk(TO_LIST, TO_ITEM, 0.1, 0.5, TO_LIST, BACK);
        assertEquals(List.of("List<List", "Item<Item", "Form<Form", "Home<Home", "List<List", "Home<Back"), visits(walk, 6));
        assertEquals(0, walk.lost());
    }

    @Test
    void endOfSessionThinksOnceAndStartsAtHome() {
        Walk walk = walk(END, TO_LIST);
        assertTrue(walk.advance(Walk.Outcome.OK, ALWAYS));
        assertEquals("Home EndOfSession 2", walk.stateName() + " " + walk.thinkFor() + " " + walk.sessions());
        assertFalse(walk.advance(Walk.Outcome.OK, ALWAYS));
    }

    @Test
    void anErrorLeadsHomeWithoutThinkAndWithoutDraw() {
        Walk walk = walk(TO_LIST);
        walk.advance(Walk.Outcome.OK, ALWAYS);
        walk.advance(Walk.Outcome.ERROR, ALWAYS);
        assertEquals("Home", walk.stateName());
        assertNull(walk.thinkFor());
        assertNull(walk(NO_DRAWS).thinkFor(), "the first request of a user has no think either");
    }

    @Test
    void aSorryPageLeadsBackInsteadOfOn() {
        Walk walk = walk(TO_LIST, TO_ITEM, TO_FORM);
        visits(walk, 2);
        walk.advance(Walk.Outcome.SORRY, ALWAYS); // Item said Sorry; the draw says Back: it pops List, Sorry then pops Home
        assertEquals("Home<Back", walk.stateName() + "<" + walk.thinkFor());
    }

    @Test
    void aSorryPageIsAskedForAgainIfTheNextStateKeepsTheHistory() {
        Walk walk = walk(TO_LIST, TO_ITEM);
        visits(walk, 1);
        walk.advance(Walk.Outcome.SORRY, ALWAYS); // List said Sorry; Item is drawn, which pushes List, which Sorry pops
        assertEquals("List<Item", walk.stateName() + "<" + walk.thinkFor());
    }

    @Test
    void aSorryPageWithoutHistoryLeadsHome() {
        Walk walk = walk(TO_FORM, 0.5);
        visits(walk, 1);
        walk.advance(Walk.Outcome.SORRY, ALWAYS);
        assertEquals("Home<Home 1", walk.stateName() + "<" + walk.thinkFor() + " " + walk.lost());
    }

    @Test
    void aRequestThatThePageDoesNotAllowGoesBack() {
        Walk walk = walk(TO_LIST, TO_ITEM);
        visits(walk, 1);
        List<String> tried = new ArrayList<>();
        walk.advance(Walk.Outcome.OK, state -> {
            tried.add(SITE.name(state));
            return SITE.name(state).equals("Item") ? Walk.Request.GO_BACK : Walk.Request.READY;
        });
        assertEquals(List.of("Item", "List"), tried);
        assertEquals("List", walk.stateName());
    }

    @Test
    void aSessionEndsAfterTheLargestNumberOfTransitions() {
        Walk walk = new Walk(MixTest.mix("Home,Home,1"), new SplittableRandom(1), 3);
        List<Boolean> ended = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            ended.add(walk.advance(Walk.Outcome.OK, ALWAYS));
        }
        assertEquals(List.of(false, false, true, false, false, true), ended);
    }

    @Test
    void theSameSeedGivesTheSameFirstThousandChoices() {
        assertEquals(choices(1, 7), choices(1, 7));
        assertNotEquals(choices(1, 7), choices(2, 7));
        assertNotEquals(choices(1, 7), choices(1, 8));
    }

    private static List<String> choices(long seed, int user) {
        Mix mix = Mix.read(Path.of("../mixes/browse_only.csv"));
        Walk walk = new Walk(mix, Streams.of(seed, user, Streams.Purpose.CHOICES), 1000);
        List<String> names = visits(walk, 1000);
        assertEquals(1000, names.size());
        return names;
    }

    /** Shares of RUBBoS' own tables, from an independent walk (20,000 sessions) of the published matrices; columns: share in % within 0.3 points. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        browse_only | 11.73 | 2.62 | StoriesOfTheDay=22.1 Browse=3.7 BrowseCategories=1.7 BrowseStoriesInCategory=3.6 OlderStories=3.4 \
ViewStory=26.7 ViewComment=27.9 Search=3.7 SearchInStories=3.8 SearchInComments=2.9 SearchInUsers=0.65
        browse_only_no_search | 12.48 | 2.76 | StoriesOfTheDay=21.8 Browse=7.4 BrowseCategories=3.3 BrowseStoriesInCategory=6.9 OlderStories=6.7 \
ViewStory=27.7 ViewComment=26.2
        read_write | 13.92 | 0.81 | StoriesOfTheDay=17.4 Browse=5.7 BrowseCategories=2.6 BrowseStoriesInCategory=4.3 OlderStories=4.0 ViewStory=17.7 \
ViewComment=13.6 Search=4.2 SearchInStories=3.5 SearchInComments=2.2 SearchInUsers=0.57 PostComment=7.7 StoreComment=7.7 SubmitStory=3.3 \
StoreStory=2.8 Register=1.4 RegisterUser=1.4
        authors/read_write | 15.42 | 0.93 | StoriesOfTheDay=16.3 Browse=4.2 BrowseCategories=1.9 BrowseStoriesInCategory=3.1 OlderStories=3.0 ViewStory=14.8 \
ViewComment=6.9 Search=2.8 SearchInStories=2.3 SearchInComments=1.4 SearchInUsers=0.4 PostComment=2.2 StoreComment=2.2 SubmitStory=1.5 \
StoreStory=1.4 ModerateComment=5.5 StoreModerateLog=5.4 AuthorLogin=5.6 AuthorTask=5.5 ReviewStories=7.5 AcceptStory=3.7 RejectStory=2.2
        """)
    void walkingAShippedTableGivesTheMixOfRubbos(String table, double interactions, double backs, String shares) {
        Mix mix = Mix.read(Path.of("../mixes/" + table + ".csv"));
        int sessions = 60_000;
        Walk walk = new Walk(mix, Streams.of(1, 1, Streams.Purpose.CHOICES), 1000);
        Map<String, Integer> count = new HashMap<>();
        int all = 0;
        int back = 0;
        while (walk.sessions() <= sessions) {
            count.merge(walk.stateName(), 1, Integer::sum);
            all++;
            walk.advance(Walk.Outcome.OK, ALWAYS);
            back += Mix.BACK.equals(walk.thinkFor()) ? 1 : 0;
        }
        assertEquals(interactions, (double) all / sessions, 0.02 * interactions);
        assertEquals(backs, (double) back / sessions, 0.05 * backs);
        assertEquals(0, walk.lost(), "in RUBBoS' tables the history is never empty");
        String[] expected = shares.split("\\s+");
        assertEquals(mix.size(), expected.length, "all states have an expected share");
        for (String share : expected) {
            String[] parts = share.split("=");
            assertEquals(Double.parseDouble(parts[1]), 100.0 * count.getOrDefault(parts[0], 0) / all, 0.3, parts[0]);
        }
    }
}
