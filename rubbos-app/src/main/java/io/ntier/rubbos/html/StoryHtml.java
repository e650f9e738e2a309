package io.ntier.rubbos.html;

import io.ntier.rubbos.db.Story;
import java.util.List;

/** Stories, in full and as lists. RUBBoS clients take "Sorry" for an empty page and "ERROR" for a failure. */
public final class StoryHtml {
    private static final int TEASER_CHARS = 512;

    private StoryHtml() {
    }

    public static void teaser(Page page, Story story) {
        page.row();
        page.html("<h3>");
        Links.viewStory(page, story.id(), story.title());
        page.html("</h3>\n");
        postedBy(page, story);
        if (story.body().length() > TEASER_CHARS) {
            page.html("<p>").text(story.body().substring(0, TEASER_CHARS)).html("...</p>\n");
        } else {
            page.html("<p>").text(story.body()).html("</p>\n");
        }
    }

    public static void full(Page page, Story story) {
        page.about(story.id());
        page.html("<h2>").text(story.title()).html("</h2>\n");
        postedBy(page, story);
        page.html("<p>").text(story.body()).html("</p>\n");
    }

    private static void postedBy(Page page, Story story) {
        page.html("<p>Posted by ").text(story.writer()).html(" on ").date(story.date()).html("</p>\n");
    }

    public static void lines(Page page, List<Story> stories) {
        page.html("<ul>\n");
        for (Story story : stories) {
            page.row();
            page.html("<li>");
            Links.viewStory(page, story.id(), story.title());
            page.html(" by ").text(story.writer()).html(" on ").date(story.date()).html("</li>\n");
        }
        page.html("</ul>\n");
    }

    public static void lines(Page page, List<Story> stories, Paging paging) {
        lines(page, stories);
        paging.previousAndNext(page);
    }

    public static void none(Page page, String what) {
        page.html("<p>Sorry, there is ").html(what).html(".</p>\n");
    }

    public static void none(Page page, String what, Paging paging) {
        none(page, what);
        paging.previous(page);
    }

    /** What a user without the rights for it is told: for a client like an empty page. */
    public static void refused(Page page, String why) {
        page.html("<p>Sorry, ").html(why).html(".</p>\n");
    }

    public static void unknown(Page page, String kind) {
        page.html("<p>ERROR: Sorry, there is no such ").html(kind).html(".</p>\n");
    }
}
