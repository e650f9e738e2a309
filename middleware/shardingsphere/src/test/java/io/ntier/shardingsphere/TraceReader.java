package io.ntier.shardingsphere;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Counts pending statements by begin and end alone, and compares the choices of a trace of two replicas with them. */
final class TraceReader {
    final int choices;
    final int lost;
    int neverBegun;
    /** Choices of a replica than which none had fewer pending statements. */
    int least;
    /** Numbers that the policy read, and those of them that begin and end confirm. */
    int asked;
    int sawIt;
    private final int[] chosen = new int[2];

    private record Line(long number, long choiceNs, long beginNs, long endNs, int replica, String[] seen) {
        static Line of(final String text) {
            String[] field = text.split(",", -1);
            return new Line(Long.parseLong(field[0]), Long.parseLong(field[1]), Long.parseLong(field[2]), Long.parseLong(field[3]),
                    Integer.parseInt(field[4].substring(2)) - 1, field[5].split("\\|", -1));
        }
    }

    private TraceReader(final List<Line> lines) {
        List<Line> reads = lines.stream().filter(line -> line.choiceNs > 0).toList();
        choices = reads.size();
        lost = (int) (lines.stream().mapToLong(Line::number).max().orElseThrow() + 1 - lines.size());
        for (Line read : reads) {
            int[] pending = new int[2];
            for (Line other : lines) {
                if (other.beginNs > 0 && other.beginNs < read.choiceNs && read.choiceNs <= other.endNs) {
                    pending[other.replica]++;
                }
            }
            chosen[read.replica]++;
            neverBegun += read.beginNs == 0 ? 1 : 0;
            least += pending[read.replica] <= pending[1 - read.replica] ? 1 : 0;
            for (int i = 0; i < 2; i++) {
                if (!read.seen[i].isEmpty()) {
                    asked++;
                    sawIt += Integer.parseInt(read.seen[i]) == pending[i] ? 1 : 0;
                }
            }
        }
    }

    static TraceReader read(final Path file) throws IOException {
        List<Line> lines = new ArrayList<>();
        for (String line : Files.readAllLines(file).subList(1, Files.readAllLines(file).size())) {
            lines.add(Line.of(line));
        }
        return new TraceReader(lines);
    }

    @Override
    public String toString() {
        return "%d choices (%d, %d), %d of the least, %d of %d numbers seen confirmed, %d lost".formatted(
                choices, chosen[0], chosen[1], least, sawIt, asked, lost);
    }
}
