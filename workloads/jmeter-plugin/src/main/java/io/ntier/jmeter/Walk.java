package io.ntier.jmeter;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.random.RandomGenerator;

/**
 * One user's walk through a mix: current state, history, transitions done in the session. Semantics of the RUBBoS
 * client: a normal target pushes the state left (or forgets the history if the target has no Back probability); Back
 * pops; End of session starts a new one at home; a "Sorry" page makes the user go back instead of on; an error leads
 * home without a think.
 */
final class Walk {
    /** What the last page was. */
    enum Outcome {
        OK,
        SORRY,
        ERROR
    }

    /** Whether the request of a state can be made from the last page. */
    enum Request {
        READY,
        GO_BACK,
        HOME
    }

    static final int HOME = 0;

    private final Mix mix;
    private final RandomGenerator choices;
    private final int maxTransitions;
    private final ArrayDeque<Integer> history = new ArrayDeque<>();
    private int state = HOME;
    private int transitions;
    private int sessions = 1;
    private int lost;
    private String thinkFor;

    /**
     * @param choices one draw per transition is taken from it
     * @param maxTransitions transitions after which a session ends in any case (RUBBoS: 1000)
     */
    Walk(Mix mix, RandomGenerator choices, int maxTransitions) {
        this.mix = mix;
        this.choices = choices;
        this.maxTransitions = maxTransitions;
    }

    /**
     * Goes one step on.
     *
     * @param outcome what the page of the current state was
     * @param request prepares the request of a state index; called for each state tried
     * @return true if a new session has begun
     */
    boolean advance(Outcome outcome, IntFunction<Request> request) {
        thinkFor = null;
        if (outcome == Outcome.ERROR) {
            goHome(request);
            return false;
        }
        int target = ++transitions >= maxTransitions ? Mix.END_TARGET : mix.target(state, choices.nextDouble());
        if (target == Mix.END_TARGET) {
            thinkFor = Mix.END;
            transitions = 0;
            sessions++;
            goHome(request);
            return true;
        }
        int next = target == Mix.BACK_TARGET ? pop() : enter(target);
        thinkFor = target == Mix.BACK_TARGET ? Mix.BACK : mix.name(target);
        if (outcome == Outcome.SORRY) {
            next = pop();
        }
        settle(next, request);
        return false;
    }

    /** Goes on in the middle of a session, with the think before the request: a rest of it, drawn whole, has no memory. */
    void resume(Situations.Situation situation) {
        thinkFor = situation.state();
        state = mix.indexOf(situation.state());
        situation.history().forEach(name -> history.push(mix.indexOf(name)));
        transitions = situation.transitions();
    }

    /** Where the user stands, with what it remembers of the pages. */
    Situations.Situation situation(boolean author, Map<String, String> memory) {
        List<String> names = new ArrayList<>();
        history.descendingIterator().forEachRemaining(index -> names.add(mix.name(index)));
        return new Situations.Situation(author, stateName(), names, transitions, memory);
    }

    /** Home: also the first request of a user. */
    void goHome(IntFunction<Request> request) {
        state = HOME;
        request.apply(HOME);
    }

    private int enter(int target) {
        if (mix.canGoBack(target)) {
            history.push(state);
        } else {
            history.clear();
        }
        return target;
    }

    /** The state before; home, counted as lost, if the history is empty. */
    private int pop() {
        if (history.isEmpty()) {
            lost++;
            return HOME;
        }
        return history.pop();
    }

    private void settle(int first, IntFunction<Request> request) {
        int next = first;
        while (next != HOME) {
            Request answer = request.apply(next);
            if (answer == Request.READY) {
                state = next;
                return;
            }
            next = answer == Request.GO_BACK ? pop() : HOME;
        }
        goHome(request);
    }

    int state() {
        return state;
    }

    String stateName() {
        return mix.name(state);
    }

    /**
     * Name of the transition that the think before the next request belongs to; null if there is none (start, error).
     */
    String thinkFor() {
        return thinkFor;
    }

    int sessions() {
        return sessions;
    }

    /** How often the history was empty when the user had to go back. */
    int lost() {
        return lost;
    }
}
