package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.file.Path;

/** Profile tiny as files, for tests that load it. */
public final class DataSets {
    private DataSets() {
    }

    /** One file per table in the folder, with seed 1 and dates relative to now. */
    public static void tiny(Path folder) throws IOException {
        new DataSet(Profile.named("tiny"), 1, System.currentTimeMillis() / 1000, folder).write();
    }
}
