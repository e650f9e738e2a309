package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.IntFunction;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WalkTest {
    private static final IntFunction<Walk.Request> ALWAYS = state -> Walk.Request.READY;
    private static final double[] NO_DRAWS = {};

    /** Home leads to List, List to Item or back; Item and List keep the history, Form forgets it. */
    private static final Mix SITE = MixTest.mix(
            "Home,List,0.5",
            "Home,Form,0.4",
            "Home,EndOfSession,0.1",
            "List,Item,0.5",
            "List,Back,0.5",
            "Item,Form,0.3",
            "Item,Back,0.5",
            "Item,EndOfSession,0.2",
            "Form,Home,1");

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
        assertEquals(
                List.of("List<List", "Item<Item", "List<Back", "Home<Back"),
                visits(walk(TO_LIST, TO_ITEM, BACK, BACK), 4));
    }

    @Test
    void aStateWithoutBackForgetsTheHistory() {
        Walk walk = walk(TO_LIST, TO_ITEM, 0.1, 0.5, TO_LIST, BACK);
        assertEquals(
                List.of("List<List", "Item<Item", "Form<Form", "Home<Home", "List<List", "Home<Back"), visits(walk, 6));
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
        walk.advance(
                Walk.Outcome.SORRY, ALWAYS); // Item said Sorry; the draw says Back: it pops List, Sorry then pops Home
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

    /** Shares within 0.3 points of RUBBoS' own tables. */
    @ParameterizedTest
    @ValueSource(strings = {"browse_only", "browse_only_no_search", "read_write", "authors/read_write"})
    void walkingAShippedTableGivesTheMixOfRubbos(String table) throws IOException {
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
        Map<String, Double> expected = expected(table);
        double interactions = expected.remove("interactions_per_session");
        double backs = expected.remove("backs_per_session");
        assertEquals(interactions, (double) all / sessions, 0.02 * interactions);
        assertEquals(backs, (double) back / sessions, 0.05 * backs);
        assertEquals(0, walk.lost(), "in RUBBoS' tables the history is never empty");
        assertEquals(Set.copyOf(mix.names()), expected.keySet());
        for (Map.Entry<String, Double> share : expected.entrySet()) {
            double walked = 100.0 * count.getOrDefault(share.getKey(), 0) / all;
            assertEquals(share.getValue(), walked, 0.3, share.getKey());
        }
    }

    private static Map<String, Double> expected(String table) throws IOException {
        Map<String, Double> values = new HashMap<>();
        for (String line : Files.readAllLines(Path.of("src/test/resources/rubbos_mixes.csv"))) {
            String[] cells = line.split(",");
            if (cells[0].equals(table)) {
                values.put(cells[1], Double.parseDouble(cells[2]));
            }
        }
        return values;
    }
}
