package io.ntier.jmeter;

import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/**
 * One emulated user: its walk, its random streams, and what it is doing (thinking or waiting for a reply). Used by its
 * own thread; only {@link #stop}, {@link #cutOff}, {@link #isCutOff} and {@link #end} come from others.
 */
final class User {
    /** Name of the JMeter variable (an object) that holds the thread's user. */
    static final String VARIABLE = "ntier.user";

    /** Interactions after which a user that started at home may stand anywhere: two mean sessions of RUBBoS. */
    private static final int SETTLED = 24;

    /** Number of its thread. */
    final int index;

    final int id;
    final boolean author;
    final Walk walk;
    final SplittableRandom parameterDraws;
    final SplittableRandom checkDraws;
    private final Trial trial;
    private final long endMs;
    private final SplittableRandom thinkDraws;
    private final SplittableRandom traceDraws;
    private final Runnable interrupt;
    private final long startUs = Trial.nowUs();
    private long interactions;
    private long errors;
    private boolean stepped;
    private boolean ended;
    private boolean stopped;
    private Map<String, String> memory = Map.of();
    private long requestStartUs;
    private boolean requesting;
    private boolean answered;
    private boolean begun;
    private long pendingUs = -1;
    private TraceContext trace;

    /**
     * @param endMs when its time is over, epoch ms: at the end of the trial, or earlier if it leaves
     * @param interrupt aborts the request under way
     */
    User(Trial trial, int index, int id, boolean author, long endMs, Runnable interrupt) {
        this.trial = trial;
        this.index = index;
        this.id = id;
        this.author = author;
        this.endMs = endMs;
        this.interrupt = interrupt;
        Trial.Setup setup = trial.setup;
        walk = new Walk(
                author ? setup.authors() : setup.users(),
                Streams.of(setup.seed(), id, Streams.Purpose.CHOICES),
                setup.maxTransitions());
        thinkDraws = Streams.of(setup.seed(), id, Streams.Purpose.THINKS);
        parameterDraws = Streams.of(setup.seed(), id, Streams.Purpose.PARAMETERS);
        traceDraws = Streams.of(setup.seed(), id, Streams.Purpose.TRACE);
        checkDraws = Streams.of(setup.seed(), id, Streams.Purpose.CHECKS);
        Situations.Situation start =
                setup.situations().draw(author, Streams.of(setup.seed(), id, Streams.Purpose.SITUATION));
        if (start != null) {
            walk.resume(start);
            memory = start.memory();
        }
    }

    /** What the user remembers at its start (see {@link Situations}); empty at home. */
    Map<String, String> memory() {
        return memory;
    }

    /** Offers where the user now stands to the trial's sample, once it has been long enough under way. */
    void keepSituation(Supplier<Map<String, String>> remembered) {
        if (trial.kept.keeps() && interactions > SETTLED) {
            trial.kept.offer(walk.situation(author, remembered.get()));
        }
    }

    /** The context of the interaction that is about to begin; null: it is not in the sample. */
    TraceContext drawTrace() {
        int every = trial.setup.traceEvery();
        trace = every == 0 ? null : TraceContext.draw(traceDraws, every);
        return trace;
    }

    /** Notes, once, when the interaction with a context began, epoch ms, as in JMeter's results. */
    void logTrace(long startMs) {
        if (trace != null) {
            trial.logTrace(startMs, id, trace);
            trace = null;
        }
    }

    Counters counters() {
        return trial.counters;
    }

    /**
     * Thinks before the next request, if one is due, and marks the request's start. False if the user must stop
     * instead.
     */
    boolean thinkThenRequest(ThinkTime thinkTime) {
        dropRequest();
        boolean go = walk.thinkFor() == null || think(thinkTime.drawMs(thinkDraws));
        if (!go || !beginRequest()) {
            return false;
        }
        begin();
        return true;
    }

    private synchronized void begin() {
        if (!begun && !stopped) {
            begun = true;
            trial.counters.begin();
        }
    }

    private boolean think(long drawnMs) {
        long beginUs = Trial.nowUs();
        long begin = System.nanoTime();
        boolean whole = true;
        try {
            long leftMs = endMs - beginUs / 1000;
            whole = drawnMs < leftMs;
            Thread.sleep(Math.max(0, Math.min(drawnMs, leftMs)));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            whole = false;
        }
        trial.logThink(beginUs, id, walk.thinkFor(), drawnMs, (System.nanoTime() - begin) / 1000);
        return whole;
    }

    synchronized boolean beginRequest() {
        requestStartUs = Trial.nowUs();
        requesting = true;
        answered = false;
        return !stopped;
    }

    /**
     * The request under way is over. False if there was none, or if the user was stopped and the request is booked as
     * pending. Asked again before the next request, the answer is the same.
     */
    synchronized boolean endRequest() {
        if (requesting) {
            requesting = false;
            answered = !stopped;
        }
        return answered;
    }

    /** Goes on with the request that just failed, since its first try. False if its time ended meanwhile. */
    synchronized boolean resumeRequest() {
        if (!stopped) {
            requesting = true;
            answered = false;
        }
        return !stopped;
    }

    private synchronized void dropRequest() {
        requesting = false;
        answered = false;
    }

    /** Counts the interaction just completed. In a plan without a think timer nobody saw it begin. */
    void interaction(long elapsedMs, boolean ok) {
        if (!takeBegun()) {
            trial.counters.begin();
        }
        interactions++;
        errors += ok ? 0 : 1;
        trial.counters.interaction(elapsedMs, ok);
    }

    private synchronized boolean takeBegun() {
        boolean taken = begun;
        begun = false;
        return taken;
    }

    /** Goes on to the next state. */
    boolean advance(Walk.Outcome outcome, IntFunction<Walk.Request> request) {
        stepped = true;
        return walk.advance(outcome, request);
    }

    /** True, once, if {@link #advance} was called since the last time. */
    boolean takeStep() {
        boolean taken = stepped;
        stepped = false;
        return taken;
    }

    String stateName(int state) {
        return (author ? trial.setup.authors() : trial.setup.users()).name(state);
    }

    /**
     * Waits before a request is tried again; false if its time ended meanwhile: the request is then booked as pending.
     */
    boolean pause(long pauseMs) {
        try {
            Thread.sleep(Math.max(0, Math.min(pauseMs, endMs - System.currentTimeMillis())));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        if (timeIsOver()) {
            stop();
            return false;
        }
        return true;
    }

    boolean timeIsOver() {
        return System.currentTimeMillis() >= endMs;
    }

    /** Stops the user when its time is over: a request under way is booked as pending and aborted. */
    void stop() {
        if (cutOff()) {
            interrupt.run();
        }
    }

    /**
     * Stops the user when its time is over: a request under way is booked as pending, and goes on. True if there is
     * one.
     */
    synchronized boolean cutOff() {
        if (!stopped && requesting) {
            pendingUs = Math.max(0, Trial.nowUs() - requestStartUs);
            if (begun) {
                begun = false;
                trial.counters.abort();
            }
        }
        stopped = true;
        return pendingUs >= 0;
    }

    /** Whether it is stopped and waits for an answer, which does not count any more. */
    synchronized boolean isCutOff() {
        return pendingUs >= 0 && requesting;
    }

    /** Ends the user's life: its line goes into users.csv, once. */
    synchronized void end() {
        if (ended) {
            return;
        }
        ended = true;
        String pending = pendingUs < 0 ? "," : Trial.ms(pendingUs) + "," + walk.stateName();
        // Who is cut off ends then: to abort the requests of thousands takes a second, in which nobody waits any more.
        long endUs = pendingUs < 0 ? Trial.nowUs() : requestStartUs + pendingUs;
        trial.logUser(
                this,
                id + "," + Trial.ms(startUs) + "," + Trial.ms(endUs) + "," + pending + "," + (author ? 1 : 0)
                        + "," + walk.sessions() + "," + interactions + "," + errors + "," + walk.lost() + "\n");
    }
}
