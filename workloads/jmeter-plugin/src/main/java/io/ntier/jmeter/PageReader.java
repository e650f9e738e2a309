package io.ntier.jmeter;

import java.time.LocalDate;
import java.time.YearMonth;
import java.time.ZoneOffset;
import java.time.format.DateTimeParseException;
import org.apache.jmeter.assertions.AssertionResult;
import org.apache.jmeter.processor.PostProcessor;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.testbeans.TestBean;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterVariables;

/**
 * JMeter post-processor with the page rules of the RUBBoS client, for samplers under a {@link SessionController}:
 * requests that failed to open are tried again after a pause (the sample then spans all tries), a page with "ERROR" is a
 * failed sample, one with "Sorry" sends the user back, the content of a share of the pages is checked, and the parameters of
 * the next request are taken from the page into JMeter variables.
 */
public class PageReader extends AbstractTestElement implements PostProcessor, TestBean, TestStateListener {
    private static final long serialVersionUID = 1;
    private static final String PARAMETERS = "ntier.parameters";
    private static final int OLDEST_STORY_YEARS = 3;
    /** End of the response code of a read time-out; one to connect is a ConnectTimeoutException. */
    private static final String READ_TIMEOUT = ": java.net.SocketTimeoutException";

    private String dictionary;
    private int databaseUsers;
    private int databaseAuthors;
    private int storiesPerPage;
    private String today;
    private String oldestStory;
    private String contentChecks;
    private double contentShare;
    private int tries;
    private long retryPauseMs;

    private transient Parameters.Board board;
    private transient ContentChecks checks;

    /** Each thread works on a copy; all of them share words and rules. */
    @Override
    public Object clone() {
        PageReader copy = (PageReader) super.clone();
        copy.board = board;
        copy.checks = checks;
        return copy;
    }

    @Override
    public void testStarted() {
        try {
            if (!(contentShare >= 0 && contentShare <= 1)) {
                throw new IllegalArgumentException("content share " + contentShare + " is not in 0..1");
            }
            if (tries < 1 || retryPauseMs < 0) {
                throw new IllegalArgumentException(tries + " tries with pauses of " + retryPauseMs
                        + " ms: must be 1 or more tries, and 0 ms or more");
            }
            LocalDate date = day(today);
            YearMonth oldest = SessionController.isBlank(oldestStory)
                    ? YearMonth.from(date).minusYears(OLDEST_STORY_YEARS)
                    : YearMonth.parse(oldestStory);
            board = new Parameters.Board(
                    Words.read(SessionController.file(dictionary)),
                    new StoryDates(date, oldest),
                    databaseUsers,
                    databaseAuthors,
                    storiesPerPage);
            checks = SessionController.isBlank(contentChecks)
                    ? ContentChecks.NONE
                    : ContentChecks.read(SessionController.file(contentChecks));
        } catch (DateTimeParseException e) {
            throw SessionController.fail("date '" + e.getParsedString()
                    + "' is not of the form 2026-01-31 (today) or 2026-01 (oldest story)");
        } catch (RuntimeException e) {
            throw SessionController.fail(e.getMessage());
        }
    }

    /** The given day; blank: today. The data's days are UTC. */
    static LocalDate day(String text) {
        return SessionController.isBlank(text) ? LocalDate.now(ZoneOffset.UTC) : LocalDate.parse(text);
    }

    @Override
    public void process() {
        JMeterContext context = getThreadContext();
        User user = (User) context.getVariables().getObject(User.VARIABLE);
        SampleResult result = context.getPreviousResult();
        if (user == null || result == null) {
            return;
        }
        tryAgain(context, user, result);
        if (!user.endRequest()) {
            result.setIgnore();
            return;
        }
        Page page = Page.of(result.getResponseData());
        user.counters().statements(page.statements());
        Walk.Outcome outcome = judge(result, page);
        if (outcome != Walk.Outcome.ERROR) {
            checkContent(context.getVariables(), user, result, page);
        }
        user.interaction(result.getTime(), result.isSuccessful());
        Parameters parameters = parameters(context.getVariables(), user);
        boolean newSession = user.advance(outcome, state -> parameters.prepare(user.stateName(state), page));
        if (newSession) {
            parameters.newSession();
        }
        if (Parameters.repeatable(user.walk.stateName())) {
            user.keepSituation(parameters::save);
        }
    }

    private Parameters parameters(JMeterVariables variables, User user) {
        Parameters parameters = (Parameters) variables.getObject(PARAMETERS);
        if (parameters == null) {
            parameters = new Parameters(board, user.parameterDraws, user.author, variables::put);
            parameters.restore(user.memory());
            variables.putObject(PARAMETERS, parameters);
        }
        return parameters;
    }

    /**
     * Repeats a failed request up to the number of tries; the given result takes over the last reply and spans all of
     * them.
     */
    private void tryAgain(JMeterContext context, User user, SampleResult result) {
        for (int used = 1; used < tries && failedToOpen(result) && user.resumeRequest() && user.pause(retryPauseMs); used++) {
            user.counters().retry();
            SampleResult again = context.getCurrentSampler().sample(null);
            if (again == null) {
                return;
            }
            result.setResponseCode(again.getResponseCode());
            result.setResponseMessage(again.getResponseMessage());
            result.setResponseHeaders(again.getResponseHeaders());
            result.setResponseData(again.getResponseData());
            result.setSuccessful(again.isSuccessful());
            result.setBytes(result.getBytesAsLong() + again.getBytesAsLong());
            result.setSentBytes(result.getSentBytes() + again.getSentBytes());
            result.setEndTime(again.getEndTime());
        }
    }

    /**
     * No reply, or an HTTP status of 400 or more. Not a page whose logo failed, and not a request that is given up: the
     * server may still work for it, and a second one would be load that no user makes.
     */
    private static boolean failedToOpen(SampleResult result) {
        return !result.isSuccessful()
                && !result.isResponseCodeOK()
                && !result.getResponseCode().endsWith(READ_TIMEOUT);
    }

    private Walk.Outcome judge(SampleResult result, Page page) {
        if (!result.isSuccessful()) {
            return Walk.Outcome.ERROR;
        }
        if (page.contains("ERROR")) {
            markFailed(result, "ERROR page");
            return Walk.Outcome.ERROR;
        }
        return page.contains("Sorry") ? Walk.Outcome.SORRY : Walk.Outcome.OK;
    }

    private void checkContent(JMeterVariables variables, User user, SampleResult result, Page page) {
        String state = user.walk.stateName();
        if (user.checkDraws.nextDouble() >= contentShare || !checks.covers(state)) {
            return;
        }
        String missing = checks.missing(state, page, variables::get);
        user.counters().contentCheck(missing == null);
        if (missing != null) {
            markFailed(result, "wrong content: lacks '" + missing + "'");
        }
    }

    private void markFailed(SampleResult result, String message) {
        AssertionResult failure = new AssertionResult(getName());
        failure.setFailure(true);
        failure.setFailureMessage(message);
        result.addAssertionResult(failure);
        result.setSuccessful(false);
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

    public String getDictionary() {
        return dictionary;
    }

    public void setDictionary(String dictionary) {
        this.dictionary = dictionary;
    }

    public int getDatabaseUsers() {
        return databaseUsers;
    }

    public void setDatabaseUsers(int databaseUsers) {
        this.databaseUsers = databaseUsers;
    }

    public int getDatabaseAuthors() {
        return databaseAuthors;
    }

    public void setDatabaseAuthors(int databaseAuthors) {
        this.databaseAuthors = databaseAuthors;
    }

    public int getStoriesPerPage() {
        return storiesPerPage;
    }

    public void setStoriesPerPage(int storiesPerPage) {
        this.storiesPerPage = storiesPerPage;
    }

    public String getToday() {
        return today;
    }

    public void setToday(String today) {
        this.today = today;
    }

    public String getOldestStory() {
        return oldestStory;
    }

    public void setOldestStory(String oldestStory) {
        this.oldestStory = oldestStory;
    }

    public String getContentChecks() {
        return contentChecks;
    }

    public void setContentChecks(String contentChecks) {
        this.contentChecks = contentChecks;
    }

    public double getContentShare() {
        return contentShare;
    }

    public void setContentShare(double contentShare) {
        this.contentShare = contentShare;
    }

    public int getTries() {
        return tries;
    }

    public void setTries(int tries) {
        this.tries = tries;
    }

    public long getRetryPauseMs() {
        return retryPauseMs;
    }

    public void setRetryPauseMs(long retryPauseMs) {
        this.retryPauseMs = retryPauseMs;
    }
}
