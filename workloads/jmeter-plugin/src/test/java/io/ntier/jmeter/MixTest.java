package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MixTest {
    static Mix mix(String... rows) {
        List<String> lines = new java.util.ArrayList<>(List.of("# a comment", "from,to,probability"));
        lines.addAll(List.of(rows));
        return Mix.parse(lines, "test.csv");
    }

    @Test
    void firstTargetWhoseCumulativeProbabilityExceedsTheDrawIsTaken() {
        Mix mix = mix("A,B,0.25", "A,EndOfSession,0.75", "B,Back,0.5", "B,A,0.5");
        assertEquals(List.of("A", "B"), mix.names());
        assertEquals(1, mix.target(0, 0));
        assertEquals(1, mix.target(0, 0.2499));
        assertEquals(Mix.END_TARGET, mix.target(0, 0.25));
        assertEquals(Mix.BACK_TARGET, mix.target(1, 0.49));
        assertTrue(mix.canGoBack(1) && !mix.canGoBack(0));
    }

    @Test
    void whatLacksToOneStaysAndWhatExceedsOneIsNeverReached() {
        Mix mix = mix("A,B,0.995", "B,A,0.95", "B,B,0.1", "B,EndOfSession,0.1");
        assertEquals(0, mix.target(0, 0.996));
        assertEquals(1, mix.target(1, 0.999999));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            quoteCharacter = '`',
            value = {
                "A,B,0.5,1; line 3: needs the three fields",
                "A,A,half; line 3: probability 'half' is not a number",
                "A,A,1.5; line 3: probability '1.5' is not in 0..1",
                "A,B,1; leads to 'B', which has no row",
                "A,A,0.5; sum to 0.5000 (allowed: 0.9..1.2)",
                "Back,A,1; 'Back' is not allowed in 'from'"
            })
    void aSlipIsNamedWithItsPlace(String row, String message) {
        String said =
                assertThrows(IllegalArgumentException.class, () -> mix(row)).getMessage();
        assertTrue(said.startsWith("test.csv") && said.contains(message.strip()), said);
    }

    @Test
    void aTransitionStandsOnce() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> mix("A,A,0.5", "A,A,0.5"))
                .getMessage()
                .contains("line 4"));
    }
}
