package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** data.json: what the folder holds. Written last, so a folder with it is complete. */
final class DataSummary {
    private DataSummary() {
    }

    static void write(Path folder, Profile profile, long seed, long referenceTime, Map<String, TableFile> tables,
                      double depthMean, int depthMax) throws IOException {
        String perTable = tables.entrySet().stream()
                .map(e -> "    \"" + e.getKey() + "\": {\"rows\": " + e.getValue().rows() + ", \"bytes\": " + e.getValue().bytes() + "}")
                .collect(Collectors.joining(",\n"));
        long rows = tables.values().stream().mapToLong(TableFile::rows).sum();
        long bytes = tables.values().stream().mapToLong(TableFile::bytes).sum();
        String json = String.format(Locale.ROOT, """
                {
                  "profile": "%s",
                  "seed": %d,
                  "reference_time_s": %d,
                  "users": %d,
                  "authors": %d,
                  "thread_depth_mean": %.3f,
                  "thread_depth_max": %d,
                  "rows": %d,
                  "bytes": %d,
                  "tables": {
                %s
                  }
                }
                """, profile.name(), seed, referenceTime, profile.users(), profile.authors(), depthMean, depthMax, rows, bytes, perTable);
        Files.writeString(folder.resolve("data.json"), json);
    }
}
