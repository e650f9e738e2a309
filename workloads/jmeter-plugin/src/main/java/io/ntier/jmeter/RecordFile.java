package io.ntier.jmeter;

import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A CSV file that many threads append lines to; written in blocks, so that a record costs about a microsecond. */
final class RecordFile implements Closeable {
    private static final int BLOCK_BYTES = 1 << 16;

    private final OutputStream out;
    private final byte[] block = new byte[BLOCK_BYTES];
    private int used;
    private boolean closed;

    RecordFile(Path file, String header) {
        try {
            out = Files.newOutputStream(file);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write " + file, e);
        }
        append(header + "\n");
    }

    /**
     * Appends a whole record (ASCII, with its line end); ignored once closed, when stragglers of an interrupted test
     * may still write.
     */
    synchronized void append(String record) {
        if (closed) {
            return;
        }
        byte[] bytes = record.getBytes(StandardCharsets.ISO_8859_1);
        if (bytes.length > block.length - used) {
            flush();
        }
        System.arraycopy(bytes, 0, block, used, bytes.length);
        used += bytes.length;
    }

    synchronized void flush() {
        try {
            if (!closed) {
                out.write(block, 0, used);
                used = 0;
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public synchronized void close() throws IOException {
        if (!closed) {
            flush();
            closed = true;
            out.close();
        }
    }
}
