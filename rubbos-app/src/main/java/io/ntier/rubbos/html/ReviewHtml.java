package io.ntier.rubbos.html;

import io.ntier.rubbos.db.Story;

/** What authors see: their tasks, and stories to review. */
public final class ReviewHtml {
    private ReviewHtml() {
    }

    public static void tasks(Page page) {
        page.html("<h2>Author tasks</h2>\n<p><a href=\"" + Links.SERVLETS + "ReviewStories\">Review submitted stories</a></p>\n");
    }

    public static void submission(Page page, Story story) {
        page.row();
        page.html("<h3>").text(story.title()).html("</h3>\n<p>Submitted by ").text(story.writer()).html(" on ").date(story.date())
                .html("</p>\n<p>").text(story.body()).html("</p>\n<p>");
        link(page, "AcceptStory", story.id(), "Accept");
        page.html(" | ");
        link(page, "RejectStory", story.id(), "Reject");
        page.html("</p>\n");
    }

    private static void link(Page page, String servlet, long id, String text) {
        page.html("<a href=\"" + Links.SERVLETS).html(servlet).html("?storyId=").number(id).html("\">").html(text).html("</a>");
    }
}
