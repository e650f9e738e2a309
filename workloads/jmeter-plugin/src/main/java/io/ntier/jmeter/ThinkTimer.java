package io.ntier.jmeter;

import java.util.concurrent.ThreadLocalRandom;
import org.apache.jmeter.testbeans.TestBean;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.timers.Timer;

/**
 * JMeter timer with negative-exponential think times (TPC-W's, see {@link ThinkTime}). Under a {@link
 * SessionController} it waits itself, as JMeter's Synchronizing Timer does, so that draw and actual time can be logged
 * and the wait ends with the trial; elsewhere it returns the draw and JMeter waits.
 */
public class ThinkTimer extends AbstractTestElement implements Timer, TestBean, TestStateListener {
    private static final long serialVersionUID = 1;

    private double meanMs;
    private double cap;

    /** Refuses impossible values before users start. */
    @Override
    public void testStarted() {
        try {
            new ThinkTime(meanMs, cap);
        } catch (IllegalArgumentException e) {
            throw SessionController.fail(e.getMessage());
        }
    }

    /** ms that JMeter still has to wait. */
    @Override
    public long delay() {
        ThinkTime thinkTime = new ThinkTime(meanMs, cap);
        JMeterContext context = getThreadContext();
        User user = (User) context.getVariables().getObject(User.VARIABLE);
        if (user == null) {
            return thinkTime.drawMs(ThreadLocalRandom.current());
        }
        if (!user.thinkThenRequest(thinkTime)) {
            context.getThread().stop();
            return 0;
        }
        TraceContext trace = user.drawTrace();
        if (trace != null) {
            trace.put(context.getCurrentSampler());
        }
        return 0;
    }

    @Override
    public void testEnded() {
        // Nothing is held that must be given back.
    }

    @Override
    public void testStarted(String host) {
        testStarted();
    }

    @Override
    public void testEnded(String host) {
        testEnded();
    }

    public double getMeanMs() {
        return meanMs;
    }

    public void setMeanMs(double meanMs) {
        this.meanMs = meanMs;
    }

    public double getCap() {
        return cap;
    }

    public void setCap(double cap) {
        this.cap = cap;
    }
}
