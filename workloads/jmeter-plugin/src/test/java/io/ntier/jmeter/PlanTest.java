package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.beans.Introspector;
import java.beans.PropertyDescriptor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy;
import org.apache.jmeter.testbeans.gui.GenericTestBeanCustomizer;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jorphan.collections.HashTree;
import org.apache.jorphan.collections.SearchByClass;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The plan and the example, loaded by JMeter's own loader. */
class PlanTest {
    private static final String PLAN = "../rubbos.jmx";
    private static final Pattern PROPERTY = Pattern.compile("\\$\\{__P\\((ntier\\.\\w+),([^)]*)\\)}");
    private static final int INTERACTIONS = 24;

    @BeforeAll
    static void jmeter() throws IOException {
        JMeterHome.prepare();
    }

    private static <T> Map<String, T> elements(String plan, Class<T> type) throws IOException {
        HashTree tree = JMeterHome.load(plan);
        SearchByClass<T> search = new SearchByClass<>(type);
        tree.traverse(search);
        Map<String, T> byName = new TreeMap<>();
        search.getSearchResults().forEach(element -> byName.put(((TestElement) element).getName(), element));
        return byName;
    }

    @Test
    void thePlanHasOneSamplerForEachInteraction() throws IOException {
        Set<String> samplers = elements(PLAN, HTTPSamplerProxy.class).keySet();
        assertEquals(INTERACTIONS, samplers.size());
        Set<String> states = new TreeSet<>();
        for (String mix : List.of("browse_only", "browse_only_no_search", "read_write", "authors/read_write")) {
            states.addAll(Mix.read(Path.of("../mixes/" + mix + ".csv")).names());
        }
        assertEquals(samplers, states);
    }

    @Test
    void everyVariableOfARequestIsSetForIt() throws IOException {
        String servlets = "/rubbos/servlet/edu.rice.rubbos.servlets.";
        Page page = new Page(
                List.of("ViewComment", "ViewComment", "PostComment", "ModerateComment", "AcceptStory", "RejectStory")
                                .stream()
                                .map(name -> servlets + name
                                        + "?comment_table=comments&storyId=1&commentId=2&filter=0&display=1&parent=3\"")
                                .collect(Collectors.joining())
                        + "category=1&categoryName=a\" name=comment_table value=comments> name=storyId value=1>"
                        + " name=parent value=0> name=commentId value=2> <option value=\"1\">");
        StoryDates dates = new StoryDates(LocalDate.of(2026, 5, 20), YearMonth.of(2023, 5));
        Parameters.Board board = new Parameters.Board(new Words(List.of("word"), "test"), dates, 10, 10, 20);
        for (Map.Entry<String, HTTPSamplerProxy> sampler :
                elements(PLAN, HTTPSamplerProxy.class).entrySet()) {
            Map<String, String> set = new HashMap<>(Map.of("base", "/rubbos"));
            Parameters parameters = new Parameters(board, new SplittableRandom(1), false, set::put);
            assertEquals(Walk.Request.READY, parameters.prepare(sampler.getKey(), page), sampler.getKey());
            Set<String> used = Pattern.compile("\\$\\{(\\w+)}")
                    .matcher(sampler.getValue().getPath())
                    .results()
                    .map(match -> match.group(1))
                    .collect(Collectors.toSet());
            assertEquals(set.keySet(), used, sampler.getKey());
        }
    }

    @Test
    void theTableOfPropertiesInTheReadmeIsThatOfThePlan() throws IOException {
        Map<String, String> inPlan = PROPERTY.matcher(Files.readString(Path.of(PLAN)))
                .results()
                .collect(Collectors.toMap(
                        match -> match.group(1), match -> match.group(2), PlanTest::same, TreeMap::new));
        Map<String, String> inReadme = Pattern.compile("(?m)^\\| `(ntier\\.\\w+)` \\| (?:`([^`]*)`|) *\\|")
                .matcher(Files.readString(Path.of("../README.md"))
                        .split("## Properties of the plan")[1]
                        .split("\n## ")[0])
                .results()
                .collect(Collectors.toMap(match -> match.group(1), PlanTest::text, PlanTest::same, TreeMap::new));
        assertEquals(inPlan, inReadme);
    }

    private static String text(MatchResult match) {
        return match.group(2) == null ? "" : match.group(2);
    }

    private static String same(String one, String other) {
        assertEquals(one, other, "a property has one default");
        return one;
    }

    @ParameterizedTest
    @ValueSource(strings = {PLAN, "examples/shop.jmx", "../../systems/mediawiki/load/mediawiki.jmx"})
    void jmeterLoadsThePlanAndKnowsEveryFieldOfOurElements(String plan) throws Exception {
        for (Class<?> type : List.of(SessionController.class, ThinkTimer.class)) {
            assertEquals(1, elements(plan, type).size(), type.getName());
        }
        for (Class<? extends TestElement> type : List.of(SessionController.class, ThinkTimer.class, PageReader.class)) {
            Set<String> fields = new TreeSet<>();
            for (PropertyDescriptor field : Introspector.getBeanInfo(type).getPropertyDescriptors()) {
                if (!field.isHidden() && field.getValue(GenericTestBeanCustomizer.DEFAULT) != null) {
                    fields.add(field.getName());
                }
            }
            for (TestElement element : elements(plan, type).values()) {
                Set<String> set = new TreeSet<>();
                element.propertyIterator().forEachRemaining(property -> set.add(property.getName()));
                set.removeIf(name -> name.startsWith("TestElement."));
                assertEquals(fields, set, type.getName());
            }
        }
    }

    @Test
    void theExampleMixHasASamplerForEachState() throws IOException {
        assertTrue(
                Mix.read(Path.of("examples/shop.csv")).names().containsAll(List.of("Home", "List", "Item", "Order")));
    }
}
