package io.ntier.rubbos.data;

import java.io.IOException;
import java.nio.file.Path;

/** Profile tiny as files, for tests that load it. */
public final class DataSets {
    private DataSets() {
    }

    /** One file per table in the folder, with seed 1 and dates relative to the given time (epoch seconds). */
    public static void tiny(Path folder, long referenceTime) throws IOException {
        new DataSet(Profile.named("tiny"), Words.dictionary(), 1, referenceTime, folder).write();
    }
}
