package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.Sampler;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.JMeterVariables;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SituationsTest {
    private static final Mix MIX = Mix.parse(
            List.of("from,to,probability", "Home,List,1", "List,Item,0.5", "List,Back,0.5", "Item,Back,1"), "a mix");

    @TempDir
    Path folder;

    private static Situations.Situation at(boolean author, String state, int transitions) {
        return new Situations.Situation(author, state, List.of("Home", "List"), transitions, Map.of());
    }

    @Test
    void whatIsWrittenIsRead() throws IOException {
        Situations.Situation whole = new Situations.Situation(
                false, "Item", List.of("Home", "List"), 7, Map.of("search", "a%2Cb%0A&=", "last.word", "naïve, really"));
        Situations kept = new Situations(10, 1);
        kept.offer(whole);
        kept.offer(new Situations.Situation(true, "Home", List.of(), 0, Map.of()));
        kept.write(folder.resolve("situations.csv"));

        Situations read = Situations.read(folder.resolve("situations.csv"), MIX, MIX);
        assertEquals(whole, read.draw(false, new SplittableRandom(1)));
        assertEquals("Home", read.draw(true, new SplittableRandom(1)).state());
    }

    @Test
    void eachOfferIsKeptWithTheSameProbability() {
        int[] kept = new int[100];
        for (int seed = 0; seed < 2000; seed++) {
            Situations ten = new Situations(10, seed);
            IntStream.range(0, 100).forEach(i -> ten.offer(at(false, "List", i)));
            kept[ten.draw(false, new SplittableRandom(seed)).transitions()]++;
        }
        // 20 expected each; chi-squared with 99 degrees of freedom: 99.9 % quantile 148.2
        double chi2 = IntStream.of(kept).mapToDouble(n -> (n - 20.0) * (n - 20.0) / 20).sum();
        assertTrue(chi2 < 148.2, "chi-squared " + chi2);
    }

    @Test
    void withoutSituationsOfItsKindAUserStartsAtHome() {
        Situations kept = new Situations(1, 1);
        kept.offer(at(false, "List", 1));
        assertNull(kept.draw(true, new SplittableRandom(1)));
    }

    @Test
    void aWalkGoesOnWhereAnotherOneStood() {
        Walk first = new Walk(MIX, new SplittableRandom(3), 1000);
        for (int i = 0; i < 7; i++) {
            first.advance(Walk.Outcome.OK, state -> Walk.Request.READY);
        }
        Situations.Situation stood = first.situation(false, Map.of());
        Walk second = new Walk(MIX, new SplittableRandom(4), 1000);
        second.resume(stood);
        assertEquals(stood, second.situation(false, Map.of()));
    }

    @Test
    void aPageIsRememberedAcrossTheStart() {
        Words words = new Words(List.of("one"), "words");
        Parameters.Board board = new Parameters.Board(words, null, 10, 10, 20);
        Map<String, String> sent = new java.util.TreeMap<>();
        Parameters before = new Parameters(board, new SplittableRandom(1), false, sent::put);
        before.prepare("ViewStory", Page.of("<a href=\"x?storyId=42\">".getBytes()));
        Map<String, String> saved = before.save();
        assertEquals("42", saved.get("storyId"));

        Parameters after = new Parameters(board, new SplittableRandom(1), false, sent::put);
        after.restore(saved);
        sent.clear();
        assertEquals(Walk.Request.READY, after.prepare("ViewStory", Page.of("no link".getBytes())));
        assertEquals(Map.of("storyId", "42"), sent);
    }

    private SessionController visitor(Path out) throws IOException {
        SessionController controller = new SessionController();
        List<String> table = List.of("from,to,probability", "Home,Item,1", "Item,Home,1");
        controller.setMix(Files.write(folder.resolve("mix.csv"), table).toString());
        controller.setRemember("link, word");
        controller.setOut(out.toString());
        for (String state : List.of("Home", "Item")) {
            Sampler sampler = new HTTPSamplerProxy();
            sampler.setName(state);
            controller.addTestElement(sampler);
        }
        JMeterContextService.getContext().setVariables(new JMeterVariables());
        return controller;
    }

    @Test
    void withoutAPageReaderTheNamedVariablesAreRemembered() throws IOException {
        SessionController first = visitor(folder);
        first.setKeepSituations(100);
        first.testStarted();
        JMeterContext context = JMeterContextService.getContext();
        for (int i = 0; i < 40; i++) {
            first.next();
            context.getVariables().put("link", "Page, no. " + i);
            context.getVariables().put("other", "not asked for");
            SampleResult page = SampleResult.createTestSample(1);
            page.setSuccessful(true);
            context.setPreviousResult(page);
        }
        first.threadFinished();
        first.testEnded();

        SessionController second = visitor(folder.resolve("second"));
        second.setSituations(folder.resolve("situations.csv").toString());
        second.testStarted();
        second.next();
        JMeterVariables variables = JMeterContextService.getContext().getVariables();
        assertTrue(variables.get("link").matches("Page, no. [23]\\d"), variables.get("link"));
        assertNull(variables.get("other"));
        assertNull(variables.get("word"), "no page had one");
        second.testEnded();
    }

    @Test
    void aStateMayHaveAnyName() throws IOException {
        Mix shop = Mix.parse(
                List.of("from,to,probability", "Home,View item,1", "View item,Pay + go,1", "Pay + go,Back,1"), "a mix");
        Situations.Situation stood =
                new Situations.Situation(false, "Pay + go", List.of("Home", "View item"), 2, Map.of());
        Situations kept = new Situations(1, 1);
        kept.offer(stood);
        kept.write(folder.resolve("situations.csv"));
        Situations read = Situations.read(folder.resolve("situations.csv"), shop, shop);
        assertEquals(stood, read.draw(false, new SplittableRandom(1)));
    }

    /** It was reviewed before the data were kept, or another user who starts there takes it first: an error page. */
    @Test
    void noUserStartsWithAStoryThatAnotherOneReviews() throws IOException {
        Mix authors = Mix.parse(
                List.of(
                        "from,to,probability",
                        "StoriesOfTheDay,ReviewStories,0.8",
                        "StoriesOfTheDay,RegisterUser,0.2",
                        "ReviewStories,AcceptStory,0.5",
                        "ReviewStories,RejectStory,0.3",
                        "ReviewStories,EndOfSession,0.2",
                        "AcceptStory,Back,1",
                        "RejectStory,Back,1",
                        "RegisterUser,EndOfSession,1"),
                "a mix");
        Schedule schedule = Schedule.of(System.currentTimeMillis(), 0, 60, 0, 1);
        PageReader reader = new PageReader();
        reader.setDictionary(Files.write(folder.resolve("words.txt"), List.of("one")).toString());
        reader.setDatabaseUsers(10);
        reader.setDatabaseAuthors(10);
        reader.setStoriesPerPage(20);
        reader.setTries(1);
        reader.testStarted();
        try (Trial trial = new Trial(new Trial.Setup(
                authors, authors, 1, 1, 0, 0, 1000, new Situations(0, 0), 1000, 0, schedule, null, folder, false))) {
            User user = trial.newUser(0, () -> {});
            JMeterContext context = JMeterContextService.getContext();
            context.setVariables(new JMeterVariables());
            context.getVariables().putObject(User.VARIABLE, user);
            SampleResult page = SampleResult.createTestSample(1);
            page.setSuccessful(true);
            page.setResponseData("servlets.AcceptStory?storyId=7\" servlets.RejectStory?storyId=7\"", "UTF-8");
            context.setPreviousResult(page);
            for (int i = 0; i < 300; i++) {
                user.beginRequest();
                reader.process();
            }
        }
        Map<String, Long> states = Files.readAllLines(folder.resolve("situations.csv")).stream()
                .skip(1)
                .collect(Collectors.groupingBy(line -> line.split(",")[1], Collectors.counting()));
        assertEquals(Set.of("StoriesOfTheDay", "ReviewStories"), states.keySet());
        assertTrue(states.get("ReviewStories") > 50, states.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"0,List,Home", "0,Cart,,1,", "0,List,Cart,1,", "0,List,,x,", "0,List,,1,novalue"})
    void aWrongLineIsNamed(String line) throws IOException {
        Path file = folder.resolve("situations.csv");
        Files.write(file, List.of("author,state,history,transitions,memory", line));
        String message = assertThrows(IllegalArgumentException.class, () -> Situations.read(file, MIX, MIX))
                .getMessage();
        assertTrue(message.contains(file + " line 2"), message);
    }

    @Test
    void aFileWithoutTheHeaderIsRefused() throws IOException {
        Path file = Files.write(folder.resolve("empty.csv"), new byte[0]);
        assertThrows(IllegalArgumentException.class, () -> Situations.read(file, MIX, MIX));
    }
}
