package io.ntier.rubbos.db;

/** Is told what a request that is followed does with its connection. Times are those of {@link System#nanoTime}. */
public interface StatementTrace {
    /** The connection came just now; the request has waited for it since then. */
    void waited(long fromNs);

    /** A statement begins. @return its text as it is to be sent: with a comment that says whose it is */
    String begin(String sql);

    /** It has ended, if one had begun: its rows are read, or it failed. */
    void end();
}
