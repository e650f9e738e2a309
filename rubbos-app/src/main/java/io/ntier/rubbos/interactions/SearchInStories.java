package io.ntier.rubbos.interactions;

/** Stories whose title starts with the words. */
public final class SearchInStories extends StorySearch {
    public static final int TYPE = 0;

    public SearchInStories() {
        super(TYPE, "s.title LIKE ?");
    }
}
