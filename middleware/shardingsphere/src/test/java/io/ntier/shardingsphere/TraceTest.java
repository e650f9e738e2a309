package io.ntier.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceTest {
    @TempDir
    Path folder;

    private static List<String[]> records(final Path file) throws IOException {
        List<String> lines = Files.readAllLines(file);
        assertEquals(Trace.HEADER.strip(), lines.get(0));
        return lines.stream().skip(1).map(line -> line.split(",", -1)).toList();
    }

    @Test
    void aReadIsOneRecordWithItsTimesInOrder() throws IOException {
        Path file = folder.resolve("trace.csv");
        Trace trace = new Trace(file);
        long before = System.currentTimeMillis() * 1_000_000;
        trace.choose("db2", new int[] {3, 0, Trace.NOT_SEEN});
        trace.end(trace.begin("db2"));
        trace.write();
        String[] field = records(file).get(0);
        assertEquals("db2", field[4]);
        assertEquals("3|0|", field[5]);
        long choice = Long.parseLong(field[1]);
        assertTrue(Math.abs(choice - before) < 60_000_000_000L, "UTC epoch: " + choice);
        assertTrue(choice <= Long.parseLong(field[2]) && Long.parseLong(field[2]) <= Long.parseLong(field[3]));
    }

    @Test
    void aWriteToAnotherReplicaThanWasChosenHasNoChoice() throws IOException {
        Path file = folder.resolve("trace.csv");
        Trace trace = new Trace(file);
        trace.choose("db1", new int[] {0, Trace.NOT_SEEN});
        trace.end(trace.begin("db2"));
        trace.end(trace.begin("db1"));
        trace.write();
        assertEquals(List.of("db2", "db1"), records(file).stream().map(field -> field[4]).toList());
        assertEquals("0", records(file).get(0)[1]);
        assertTrue(!records(file).get(1)[1].equals("0"));
    }

    @Test
    void aChoiceWhoseConnectionNeverCameIsRecordedWithoutAUse() throws IOException {
        Path file = folder.resolve("trace.csv");
        Trace trace = new Trace(file);
        trace.choose("db1", new int[] {0, Trace.NOT_SEEN});
        trace.choose("db2", new int[] {1, 0});
        trace.end(trace.begin("db2"));
        trace.write();
        assertEquals(List.of("0", "0"), List.of(records(file).get(0)).subList(2, 4));
        assertEquals(2, records(file).size());
    }

    @Test
    void recordsThatTheQueueCannotTakeAreMissingByTheirNumbers() throws IOException {
        Path file = folder.resolve("trace.csv");
        Trace trace = new Trace(file);
        int lost = 7;
        for (int i = 0; i < Trace.QUEUE + lost; i++) {
            trace.end(trace.begin("db1"));
        }
        trace.write();
        trace.end(trace.begin("db1"));
        trace.write();
        List<String[]> records = records(file);
        assertEquals(Trace.QUEUE + 1, records.size());
        assertEquals(Trace.QUEUE + lost, Integer.parseInt(records.get(Trace.QUEUE)[0]), "the last number counts those lost");
    }

    @Test
    void aFileThatWasRemovedBeginsAgainWithTheHeader() throws IOException {
        Path file = folder.resolve("trace.csv");
        Trace trace = new Trace(file);
        for (int i = 0; i < 2; i++) {
            trace.end(trace.begin("db1"));
            trace.write();
            assertEquals(1, records(file).size());
            Files.delete(file);
        }
    }
}
