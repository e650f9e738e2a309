package io.ntier.jmeter;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.jmeter.control.LoopController;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.samplers.Sampler;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.threads.AbstractThreadGroup;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jmeter.threads.JMeterThread;
import org.apache.jmeter.threads.JMeterVariables;
import org.apache.jmeter.threads.ListenerNotifier;
import org.apache.jorphan.collections.HashTree;
import org.apache.jorphan.collections.ListedHashTree;
import org.apache.jorphan.collections.SearchByClass;

/**
 * JMeter thread group for thousands of users that mostly think: virtual threads where Java has good ones, and only
 * those samplers of a {@link SessionController} are copied for each user that its mix can reach. All threads are made
 * at once; the controller lets each user start at its time.
 */
public class UserGroup extends AbstractThreadGroup {
    static final String THREADS = "UserGroup.threads";
    private static final long serialVersionUID = 1;
    private static final long WAIT_MS = DEFAULT_THREAD_STOP_TIMEOUT.toMillis();
    /** How often the end looks whether all that still run are cut off. */
    private static final long LOOK_MS = 20;

    private final transient Map<JMeterThread, Thread> running = new ConcurrentHashMap<>();
    private transient List<SessionController> controllers = List.of();
    private transient volatile boolean stopped;

    public UserGroup() {
        LoopController once = new LoopController();
        once.setLoops(1);
        once.setContinueForever(false);
        setSamplerController(once);
    }

    @Override
    public void start(int number, ListenerNotifier notifier, ListedHashTree tree, StandardJMeterEngine engine) {
        UserThreads kind;
        try {
            kind = UserThreads.parse(getPropertyAsString(THREADS, "auto"));
            kind.make(() -> {}, "probe");
        } catch (IllegalArgumentException e) {
            throw SessionController.fail(e.getMessage());
        }
        stopped = false;
        controllers = controllersIn(tree);
        controllers.forEach(SessionController::leaveCutOff);
        dropUnreachable(tree);
        JMeterVariables variables = JMeterContextService.getContext().getVariables();
        for (int i = 0; i < getNumThreads() && !stopped; i++) {
            JMeterThread user = makeThread(engine, this, notifier, number, i, cloneTree(tree), variables);
            Thread thread = kind.make(user, user.getThreadName());
            running.put(user, thread);
            thread.start();
        }
    }

    private static List<SessionController> controllersIn(ListedHashTree tree) {
        SearchByClass<SessionController> search = new SearchByClass<>(SessionController.class);
        tree.traverse(search);
        return List.copyOf(search.getSearchResults());
    }

    private void dropUnreachable(ListedHashTree tree) {
        for (SessionController controller : controllers) {
            HashTree children = tree.search(controller);
            Set<String> states = controller.states();
            for (Object child : new ArrayList<>(children.list())) {
                if (child instanceof Sampler && !states.contains(((TestElement) child).getName())) {
                    children.remove(child);
                }
            }
        }
    }

    @Override
    public JMeterThread addNewThread(int delay, StandardJMeterEngine engine) {
        throw new UnsupportedOperationException("a user group has the users it started with");
    }

    @Override
    public void threadFinished(JMeterThread user) {
        running.remove(user);
    }

    @Override
    public int numberOfActiveThreads() {
        return running.size();
    }

    @Override
    public boolean stopThread(String name, boolean now) {
        for (Map.Entry<JMeterThread, Thread> entry : running.entrySet()) {
            if (entry.getKey().getThreadName().equals(name)) {
                stop(entry.getKey(), entry.getValue(), now);
                return true;
            }
        }
        return false;
    }

    private static void stop(JMeterThread user, Thread thread, boolean now) {
        user.stop();
        if (now) {
            user.interrupt();
            thread.interrupt();
        }
    }

    /** At once: requests are aborted, thinks interrupted. */
    @Override
    public void tellThreadsToStop() {
        stopped = true;
        running.forEach((user, thread) -> stop(user, thread, true));
    }

    /** After the request or think under way. */
    @Override
    public void stop() {
        stopped = true;
        running.forEach((user, thread) -> stop(user, thread, false));
    }

    @Override
    public boolean verifyThreadsStopped() {
        return running.values().stream().allMatch(thread -> ended(thread, WAIT_MS));
    }

    /** Not for users who are cut off: the end of the JVM ends them. */
    @Override
    public void waitThreadsStopped() {
        while (!running.keySet().stream().allMatch(this::isCutOff)) {
            running.values().stream().findAny().ifPresent(thread -> ended(thread, LOOK_MS));
        }
    }

    private boolean isCutOff(JMeterThread user) {
        return controllers.stream().anyMatch(controller -> controller.isCutOff(user.getThreadNum()));
    }

    private static boolean ended(Thread thread, long waitMs) {
        try {
            thread.join(waitMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return !thread.isAlive();
    }
}
