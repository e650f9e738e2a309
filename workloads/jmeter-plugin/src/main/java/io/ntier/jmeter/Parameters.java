package io.ntier.jmeter;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.random.RandomGenerator;

/**
 * Chooses the parameters of the next request from the last page, as the RUBBoS client does, and hands them out
 * URL-encoded by name. A state that is not listed needs no parameters. One instance per user: it remembers the last
 * story, category and search word.
 */
final class Parameters {
    /**
     * @param words search words and texts
     * @param dates days for OlderStories
     * @param users registered users user1..userN; new ones get higher numbers
     * @param authors author1..authorN
     * @param storiesPerPage asked for in every list
     */
    record Board(Words words, StoryDates dates, int users, int authors, int storiesPerPage) {
        Board {
            check("registered users", users, Integer.MAX_VALUE - NEW_USERS);
            check("authors", authors, Integer.MAX_VALUE);
            check("stories per page", storiesPerPage, MOST_STORIES_PER_PAGE);
        }

        private static void check(String what, int number, int most) {
            if (number < 1 || number > most) {
                throw new IllegalArgumentException(what + " " + number + ": must be 1 to " + most);
            }
        }
    }

    /** New users get a number up to this far above the registered ones. */
    private static final int NEW_USERS = 1_000_000;

    /** The board refuses more (rubbos-app: Params). */
    private static final int MOST_STORIES_PER_PAGE = 100;

    /** Prefix of the names of what is remembered, in a user's situation; other names are parameters of the request. */
    static final String MEMORY = "last.";

    /**
     * Requests that find what they name only once: a reviewed story is gone, a nickname is taken. A user of a later run
     * cannot start with one.
     */
    private static final Set<String> ONCE = Set.of("AcceptStory", "RejectStory", "RegisterUser");

    private static final int SUBJECT_LENGTH = 100;
    private static final int BODY_LENGTH = 1024;

    private final Board board;
    private final RandomGenerator random;
    private final boolean author;
    private final BiConsumer<String, String> variables;
    private String login;
    private String password;
    private String story;
    private String category;
    private String categoryName = "";
    private String word;
    private String lastSearch = "";
    private final Map<String, String> request = new LinkedHashMap<>();

    /** @param variables receives (name, URL-encoded value) */
    Parameters(Board board, RandomGenerator random, boolean author, BiConsumer<String, String> variables) {
        this.board = board;
        this.random = random;
        this.author = author;
        this.variables = variables;
        newSession();
    }

    /** The parameters of the request just prepared, URL-encoded, and what is remembered for later ones. */
    Map<String, String> save() {
        Map<String, String> memory = new LinkedHashMap<>(request);
        memory.put(MEMORY + "lastSearch", lastSearch);
        memory.put(MEMORY + "categoryName", categoryName);
        putIfKnown(memory, "story", story);
        putIfKnown(memory, "category", category);
        putIfKnown(memory, "word", word);
        return memory;
    }

    private static void putIfKnown(Map<String, String> memory, String name, String value) {
        if (value != null) {
            memory.put(MEMORY + name, value);
        }
    }

    /** Takes over what {@link #save} gave, but for the parameters of the request. */
    void restore(Map<String, String> memory) {
        lastSearch = memory.getOrDefault(MEMORY + "lastSearch", "");
        categoryName = memory.getOrDefault(MEMORY + "categoryName", "");
        story = memory.get(MEMORY + "story");
        category = memory.get(MEMORY + "category");
        word = memory.get(MEMORY + "word");
    }

    /** Whether the request of a state can be made again, by another user and after the one that it was prepared for. */
    static boolean repeatable(String state) {
        return !ONCE.contains(state);
    }

    /** A session belongs to a random registered user, or author. */
    void newSession() {
        int number = 1 + random.nextInt(author ? board.authors() : board.users());
        login = (author ? "author" : "user") + number;
        password = "password" + number;
    }

    /** Sets the variables of the state's request, or says where the user goes instead. */
    Walk.Request prepare(String state, Page page) {
        request.clear();
        if (!state.equals("SearchInComments") && !state.equals("SearchInUsers") && !state.equals("AuthorLogin")) {
            lastSearch =
                    ""; // not for these three: the original tests the wrong range, so a story search never keeps its
            // word
        }
        return switch (state) {
            case "BrowseStoriesInCategory" -> storiesInCategory(page);
            case "OlderStories" -> olderStories(page);
            case "ViewStory" -> viewStory(page);
            case "ViewComment" -> comment(
                    page,
                    Walk.Request.GO_BACK,
                    "ViewComment",
                    "comment_table",
                    "storyId",
                    "commentId",
                    "filter",
                    "display");
            case "PostComment" -> comment(
                    page, Walk.Request.HOME, "PostComment", "comment_table", "storyId", "parent");
            case "ModerateComment" -> comment(
                    page, Walk.Request.GO_BACK, "ModerateComment", "comment_table", "commentId");
            case "SearchInStories", "SearchInComments", "SearchInUsers" -> search(state, page);
            case "RegisterUser" -> registerUser();
            case "StoreComment" -> storeComment(page);
            case "StoreModerateLog" -> storeModerateLog(page);
            case "StoreStory" -> storeStory(page);
            case "AuthorTask" -> login();
            case "AcceptStory", "RejectStory" -> reviewedStory(state, page);
            default -> Walk.Request.READY;
        };
    }

    private Walk.Request storiesInCategory(Page page) {
        int at = page.position("category=", random, false);
        if (at >= 0) {
            category = page.valueAfter("", at);
            String name = page.valueAfter("categoryName=", at);
            categoryName = name == null ? "" : name;
        }
        if (category == null) {
            return Walk.Request.GO_BACK;
        }
        setEncoded("category", category);
        setEncoded("categoryName", categoryName); // taken from a link: already encoded
        return paged(page);
    }

    private Walk.Request olderStories(Page page) {
        LocalDate date = board.dates().draw(random);
        set("day", date.getDayOfMonth());
        set("month", date.getMonthValue());
        set("year", date.getYear());
        return paged(page);
    }

    private Walk.Request viewStory(Page page) {
        String picked = page.pick("storyId=", random);
        if (picked != null) {
            story = picked;
        }
        if (story == null) {
            return Walk.Request.GO_BACK;
        }
        set("storyId", story);
        return Walk.Request.READY;
    }

    /**
     * A link of the servlet, its parameters read one behind the other; a link that lacks one leads back. Of ViewComment
     * the first occurrence does not count, as in the original.
     *
     * @param withoutLink where the user goes from a page that has no such link
     */
    private Walk.Request comment(Page page, Walk.Request withoutLink, String servlet, String... names) {
        int at = page.position("servlets." + servlet, random, servlet.equals("ViewComment"));
        if (at < 0) {
            return withoutLink;
        }
        for (String name : names) {
            String value = page.valueAfter(name + "=", at);
            if (value == null) {
                return Walk.Request.GO_BACK;
            }
            set(name, value);
        }
        return Walk.Request.READY;
    }

    private Walk.Request search(String state, Page page) {
        if (!lastSearch.equals(state)) {
            word = state.equals("SearchInUsers")
                    ? "user" + (1 + random.nextInt(board.users()))
                    : board.words().word(random);
        }
        lastSearch = state;
        set("search", word);
        return paged(page);
    }

    private Walk.Request registerUser() {
        int number = board.users() + 1 + random.nextInt(NEW_USERS);
        set("firstname", "Great" + number);
        set("lastname", "User" + number);
        set("nickname", "user" + number);
        set("email", "Great" + number + ".User" + number + "@rubbos.com");
        set("password", "password" + number);
        return Walk.Request.READY;
    }

    private Walk.Request storeComment(Page page) {
        String table = page.field("comment_table");
        String storyId = page.field("storyId");
        String parent = page.field("parent");
        if (table == null || storyId == null || parent == null) {
            return Walk.Request.HOME;
        }
        set("comment_table", table);
        set("storyId", storyId);
        set("parent", parent);
        set("subject", board.words().text(SUBJECT_LENGTH, random));
        set("body", board.words().text(BODY_LENGTH, random));
        return login();
    }

    private Walk.Request storeModerateLog(Page page) {
        String table = page.field("comment_table");
        String commentId = page.field("commentId");
        if (table == null || commentId == null) {
            return Walk.Request.HOME;
        }
        set("comment_table", table);
        set("commentId", commentId);
        set("rating", random.nextInt(2) - 1); // -1 or 0, never 1: as in the original
        return login();
    }

    private Walk.Request storeStory(Page page) {
        String chosen = page.option(random);
        if (chosen == null) {
            return Walk.Request.HOME;
        }
        set("category", chosen);
        set("title", board.words().text(SUBJECT_LENGTH, random));
        set("body", board.words().text(BODY_LENGTH, random));
        return login();
    }

    private Walk.Request reviewedStory(String servlet, Page page) {
        int at = page.position("servlets." + servlet, random, false);
        String storyId = at < 0 ? null : page.valueAfter("storyId=", at);
        if (storyId == null) {
            return Walk.Request.HOME;
        }
        set("storyId", storyId);
        return Walk.Request.READY;
    }

    private Walk.Request login() {
        set("nickname", login);
        set("password", password);
        return Walk.Request.READY;
    }

    private Walk.Request paged(Page page) {
        set("page", page.pageNumber(random));
        set("nbOfStories", board.storiesPerPage());
        return Walk.Request.READY;
    }

    private void set(String name, Object value) {
        setEncoded(name, URLEncoder.encode(value.toString(), StandardCharsets.UTF_8));
    }

    private void setEncoded(String name, String value) {
        request.put(name, value);
        variables.accept(name, value);
    }
}
