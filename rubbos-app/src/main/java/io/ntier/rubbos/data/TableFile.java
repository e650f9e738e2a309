package io.ntier.rubbos.data;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A table as MySQL's LOAD DATA (and PostgreSQL's COPY) reads it: fields separated by tabs, one row per line, no header, ASCII. */
final class TableFile implements AutoCloseable {
    private final OutputStream out;
    private byte[] line = new byte[4096];
    private int length;
    private long rows;
    private long bytes;

    TableFile(Path file) throws IOException {
        out = new BufferedOutputStream(Files.newOutputStream(file), 1 << 20);
    }

    TableFile field(String value) {
        byte[] ascii = value.getBytes(StandardCharsets.US_ASCII);
        return field(ascii, ascii.length);
    }

    TableFile field(long value) {
        return field(Long.toString(value));
    }

    /** The text must hold no tab, newline or backslash. */
    TableFile field(byte[] ascii, int count) {
        if (length + count + 1 > line.length) {
            line = java.util.Arrays.copyOf(line, 2 * (length + count + 1));
        }
        System.arraycopy(ascii, 0, line, length, count);
        length += count;
        line[length++] = '\t';
        return this;
    }

    void endRow() throws IOException {
        line[length - 1] = '\n';
        out.write(line, 0, length);
        bytes += length;
        rows++;
        length = 0;
    }

    long rows() {
        return rows;
    }

    long bytes() {
        return bytes;
    }

    @Override
    public void close() throws IOException {
        out.close();
    }
}
