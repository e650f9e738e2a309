package io.ntier.rubbos.interactions;

/** Stories whose writer's nickname starts with the words. */
public final class SearchInUsers extends StorySearch {
    public static final int TYPE = 2;

    public SearchInUsers() {
        super(TYPE, "users.nickname LIKE ?");
    }
}
