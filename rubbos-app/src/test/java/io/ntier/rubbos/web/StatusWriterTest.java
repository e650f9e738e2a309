package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StatusWriterTest {
    @Test
    void aBeatThatMakesUpForALateOneIsNoReading(@TempDir Path folder) throws Exception {
        StatusWriter writer = new StatusWriter(folder.resolve("status.csv"), List.of());
        writer.append();
        writer.append();
        List<String> lines = Files.readAllLines(folder.resolve("status.csv"));
        assertEquals(2, lines.size());
        assertEquals(StatusWriter.HEADER.strip(), lines.get(0));
    }
}
