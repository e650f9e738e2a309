package io.ntier.jmeter;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.jmeter.JMeter;
import org.apache.jmeter.control.GenericController;
import org.apache.jmeter.processor.PostProcessor;
import org.apache.jmeter.samplers.Interruptible;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.Sampler;
import org.apache.jmeter.services.FileServer;
import org.apache.jmeter.testbeans.TestBean;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jmeter.testelement.ThreadListener;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.JMeterThread;
import org.apache.jmeter.threads.JMeterVariables;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.util.JMeterStopTestNowException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * JMeter controller that runs its child samplers as a Markov chain: each thread is a user, each child sampler a state,
 * found by its name in the mix. The user starts at its time in the schedule and runs until the end of the ramp-down. A
 * sample that fails leads home (the mix's first state) without a think; a {@link PageReader} beside the samplers adds
 * the page rules of RUBBoS.
 */
public class SessionController extends GenericController
        implements TestBean, TestStateListener, ThreadListener, PostProcessor {
    private static final long serialVersionUID = 1;
    /** Variable with the web server of the user, for the samplers. */
    static final String HOST = "host";
    /** JMeter's property by which the JVM ends as soon as the test does. */
    private static final String ENDS_AT_ONCE = "jmeterengine.force.system.exit";

    private static final Logger LOG = LoggerFactory.getLogger(SessionController.class);

    private String mix;
    private String authorMix;
    private double authorShare;
    private long seed = 1;
    private int firstUser;
    private int users = 1;
    private int leavers;
    private int firstLeaver;
    private double leaveS;
    private String hosts;
    private int maxTransitions = 1000;
    private long startEpochMs;
    private String startFile;
    private double rampUpS;
    private double runS = 60;
    private double rampDownS;
    private String situations;
    private int keepSituations;
    private String remember;
    private int traceEvery;
    private String out;

    private transient Trial trial;
    private transient User user;
    private transient Sampler[] samplers;

    /** Each thread works on a copy, whose fields JMeter does not set; all of them share the trial. */
    @Override
    public Object clone() {
        SessionController copy = (SessionController) super.clone();
        copy.trial = trial;
        copy.hosts = hosts;
        copy.remember = remember;
        return copy;
    }

    @Override
    public void testStarted() {
        try {
            trial = new Trial(setup());
        } catch (RuntimeException e) {
            throw fail(e.getMessage());
        }
    }

    private Trial.Setup setup() {
        if (!(authorShare >= 0 && authorShare <= 1)) {
            throw new IllegalArgumentException("author share " + authorShare + " is not in 0..1");
        }
        if (maxTransitions < 1) {
            throw new IllegalArgumentException(
                    "at most " + maxTransitions + " transitions per session: must be 1 or more");
        }
        if (traceEvery < 0) {
            throw new IllegalArgumentException("one interaction of " + traceEvery + " is traced: must be 0 (none) or more");
        }
        if (startEpochMs != 0 && !isBlank(startFile)) {
            throw new IllegalArgumentException("start " + startEpochMs + " and start file '" + startFile
                    + "' are both given: only one of them can say when users start");
        }
        Mix userMix = Mix.read(file(mix));
        Mix authors = isBlank(authorMix) ? userMix : Mix.read(file(authorMix));
        long startMs = startEpochMs == 0 ? System.currentTimeMillis() : startEpochMs;
        Schedule schedule = Schedule.of(startMs, rampUpS, runS, rampDownS, users)
                .leaving(leavers, leaveS);
        return new Trial.Setup(
                userMix,
                authors,
                authorShare,
                seed,
                firstUser,
                firstLeaver,
                maxTransitions,
                isBlank(situations) ? new Situations(0, 0) : Situations.read(file(situations), userMix, authors),
                keepSituations,
                traceEvery,
                schedule,
                isBlank(startFile) ? null : file(startFile),
                isBlank(out) ? null : directory(),
                JMeter.isNonGUI() && JMeterUtils.getPropDefault(ENDS_AT_ONCE, false));
    }

    private Path directory() {
        try {
            return Files.createDirectories(file(out));
        } catch (IOException e) {
            throw new IllegalArgumentException("output directory '" + out + "' cannot be made: " + e, e);
        }
    }

    /** A file name is relative to the test plan, as for JMeter's own elements. */
    static Path file(String name) {
        return FileServer.getFileServer()
                .getResolvedFile(name == null ? "" : name)
                .toPath();
    }

    /** JMeter hands over null for a field that is missing in the plan. */
    static boolean isBlank(String text) {
        return text == null || text.isBlank();
    }

    /** Who runs the users says that it does not wait for those who are cut off. */
    void leaveCutOff() {
        if (trial != null) {
            trial.leaveCutOff();
        }
    }

    /** Whether the user of a thread is cut off, so that nobody need wait for it. */
    boolean isCutOff(int index) {
        return trial != null && trial.isCutOff(index);
    }

    /** Names of the states that users of the running test can reach. */
    Set<String> states() {
        Set<String> names = new HashSet<>();
        if (trial != null) {
            names.addAll(trial.setup.users().names());
            names.addAll(trial.setup.authors().names());
        }
        return names;
    }

    /** A request that cannot be met ends a command-line run with exit code 2; a GUI or embedded run only stops. */
    static JMeterStopTestNowException fail(String message) {
        LOG.error(message);
        if (JMeter.isNonGUI()) {
            System.err.println("ntier: " + message); // NOSONAR the user of the command line must see it
            Runtime.getRuntime().exit(2);
        }
        return new JMeterStopTestNowException(message);
    }

    @Override
    public Sampler next() {
        if (isDone()) {
            return null;
        }
        fireIterEvents();
        JMeterContext context = JMeterContextService.getContext();
        boolean go = user == null ? begin(context) : goOn(context);
        if (!go || user.timeIsOver() || !user.beginRequest()) {
            setDone(true);
            return null;
        }
        return samplers[user.walk.state()];
    }

    /** Keeps a request that the end of the trial aborted out of the results: users.csv has it as pending. */
    @Override
    public void process() {
        JMeterContext context = JMeterContextService.getContext();
        User current = (User) context.getVariables().getObject(User.VARIABLE);
        SampleResult result = context.getPreviousResult();
        if (current != null && result != null && !current.endRequest()) {
            result.setIgnore();
        } else if (current != null && result != null) {
            current.logTrace(result.getStartTime());
        }
    }

    private boolean begin(JMeterContext context) {
        if (trial == null) {
            throw fail("the session controller '" + getName() + "' was not started with the test");
        }
        int index = context.getThreadNum();
        try {
            Thread.sleep(Math.max(0, trial.awaitSchedule().startOf(index) - System.currentTimeMillis()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        if (System.currentTimeMillis() >= trial.schedule().endOf(index)) {
            return false;
        }
        JMeterThread thread = context.getThread();
        user = trial.newUser(index, () -> abort(thread, context));
        samplers = samplersOf(user.author ? trial.setup.authors() : trial.setup.users());
        context.getVariables().putObject(User.VARIABLE, user);
        if (!isBlank(hosts)) {
            String[] servers = hosts.strip().split("\\s*,\\s*");
            context.getVariables().put(HOST, servers[user.id % servers.length]);
        }
        user.memory().forEach((name, value) -> {
            if (!name.startsWith(Parameters.MEMORY)) {
                context.getVariables().put(name, value);
            }
        });
        return true;
    }

    /**
     * JMeter forgets a sampler once it has given its result; a request that is tried again is under way after that.
     */
    private static void abort(JMeterThread thread, JMeterContext context) {
        if (!thread.interrupt() && context.getCurrentSampler() instanceof Interruptible sampler) {
            sampler.interrupt();
        }
    }

    /**
     * Takes the step that the page reader did not, if there is none, and lets go of the last page: 13,000 of them are
     * much memory.
     */
    private boolean goOn(JMeterContext context) {
        SampleResult last = context.getPreviousResult();
        if (!user.takeStep()) {
            if (!user.endRequest()) {
                return false;
            }
            boolean ok = last != null && last.isSuccessful();
            user.interaction(last == null ? 0 : last.getTime(), ok);
            user.advance(ok ? Walk.Outcome.OK : Walk.Outcome.ERROR, state -> Walk.Request.READY);
            user.takeStep();
            user.keepSituation(() -> remembered(context.getVariables()));
        }
        if (JMeter.isNonGUI()) {
            context.setPreviousResult(null);
        }
        return true;
    }

    /** Values of the variables that the plan took from pages, for the next request: another user may make it later. */
    private Map<String, String> remembered(JMeterVariables variables) {
        Map<String, String> values = new HashMap<>();
        for (String name : isBlank(remember) ? new String[0] : remember.strip().split("\\s*,\\s*")) {
            if (variables.get(name) != null) {
                values.put(name, variables.get(name));
            }
        }
        return values;
    }

    private Sampler[] samplersOf(Mix states) {
        Map<String, Sampler> children = new HashMap<>();
        for (TestElement child : getSubControllers()) {
            if (child instanceof Sampler) {
                children.put(child.getName(), (Sampler) child);
            }
        }
        Sampler[] byState = new Sampler[states.size()];
        List<String> missing = new ArrayList<>();
        for (int state = 0; state < byState.length; state++) {
            byState[state] = children.get(states.name(state));
            if (byState[state] == null) {
                missing.add(states.name(state));
            }
        }
        if (!missing.isEmpty()) {
            throw fail("the plan has no sampler for the state(s) " + String.join(", ", missing)
                    + " of the mix (there are: " + String.join(", ", children.keySet()) + ")");
        }
        return byState;
    }

    @Override
    public void threadStarted() {
        // The user's life begins at its own start time, in next().
    }

    @Override
    public void threadFinished() {
        if (user != null) {
            user.end();
        }
    }

    @Override
    public void testEnded() {
        try {
            if (trial != null) {
                trial.close();
            }
        } catch (IOException e) {
            LOG.error("The logs cannot be written: {}", e.toString());
        }
    }

    @Override
    public void testStarted(String host) {
        testStarted();
    }

    @Override
    public void testEnded(String host) {
        testEnded();
    }

    public String getMix() {
        return mix;
    }

    public void setMix(String mix) {
        this.mix = mix;
    }

    public String getAuthorMix() {
        return authorMix;
    }

    public void setAuthorMix(String authorMix) {
        this.authorMix = authorMix;
    }

    public double getAuthorShare() {
        return authorShare;
    }

    public void setAuthorShare(double authorShare) {
        this.authorShare = authorShare;
    }

    public long getSeed() {
        return seed;
    }

    public void setSeed(long seed) {
        this.seed = seed;
    }

    public int getFirstUser() {
        return firstUser;
    }

    public void setFirstUser(int firstUser) {
        this.firstUser = firstUser;
    }

    public int getUsers() {
        return users;
    }

    public void setUsers(int users) {
        this.users = users;
    }

    public int getLeavers() {
        return leavers;
    }

    public void setLeavers(int leavers) {
        this.leavers = leavers;
    }

    public int getFirstLeaver() {
        return firstLeaver;
    }

    public void setFirstLeaver(int firstLeaver) {
        this.firstLeaver = firstLeaver;
    }

    public double getLeaveS() {
        return leaveS;
    }

    public void setLeaveS(double leaveS) {
        this.leaveS = leaveS;
    }

    public String getHosts() {
        return hosts;
    }

    public void setHosts(String hosts) {
        this.hosts = hosts;
    }

    public int getMaxTransitions() {
        return maxTransitions;
    }

    public void setMaxTransitions(int maxTransitions) {
        this.maxTransitions = maxTransitions;
    }

    public long getStartEpochMs() {
        return startEpochMs;
    }

    public void setStartEpochMs(long startEpochMs) {
        this.startEpochMs = startEpochMs;
    }

    public String getStartFile() {
        return startFile;
    }

    public void setStartFile(String startFile) {
        this.startFile = startFile;
    }

    public double getRampUpS() {
        return rampUpS;
    }

    public void setRampUpS(double rampUpS) {
        this.rampUpS = rampUpS;
    }

    public double getRunS() {
        return runS;
    }

    public void setRunS(double runS) {
        this.runS = runS;
    }

    public double getRampDownS() {
        return rampDownS;
    }

    public void setRampDownS(double rampDownS) {
        this.rampDownS = rampDownS;
    }

    public String getSituations() {
        return situations;
    }

    public void setSituations(String situations) {
        this.situations = situations;
    }

    public int getKeepSituations() {
        return keepSituations;
    }

    public void setKeepSituations(int keepSituations) {
        this.keepSituations = keepSituations;
    }

    public String getRemember() {
        return remember;
    }

    public void setRemember(String remember) {
        this.remember = remember;
    }

    public int getTraceEvery() {
        return traceEvery;
    }

    public void setTraceEvery(int traceEvery) {
        this.traceEvery = traceEvery;
    }

    public String getOut() {
        return out;
    }

    public void setOut(String out) {
        this.out = out;
    }
}
