package io.ntier.rubbos.html;

import io.ntier.rubbos.db.CommentTable;

/** The links of RUBBoS, parameters in the order in which RUBBoS clients look for them. */
final class Links {
    static final String SERVLETS = "/rubbos/servlet/edu.rice.rubbos.servlets.";

    private Links() {
    }

    static void viewStory(Page page, long id, String title) {
        page.html("<a href=\"" + SERVLETS + "ViewStory?storyId=").number(id).html("\">").text(title).html("</a>");
    }

    static void viewComment(Page page, CommentTable table, long story, long comment, int filter, int display, String text) {
        page.html("<a href=\"" + SERVLETS + "ViewComment?comment_table=").html(table.sqlName()).html("&storyId=").number(story)
                .html("&commentId=").number(comment).html("&filter=").number(filter).html("&display=").number(display)
                .html("\">").text(text).html("</a>");
    }

    /** The comment as it is shown to who does not say how. */
    static void viewComment(Page page, CommentTable table, long story, long comment, String text) {
        page.html("<a href=\"" + SERVLETS + "ViewComment?comment_table=").html(table.sqlName()).html("&storyId=").number(story)
                .html("&commentId=").number(comment).html("\">").text(text).html("</a>");
    }

    static void postComment(Page page, CommentTable table, long story, long parent, String text) {
        page.html("<a href=\"" + SERVLETS + "PostComment?comment_table=").html(table.sqlName()).html("&storyId=").number(story)
                .html("&parent=").number(parent).html("\">").text(text).html("</a>");
    }

    static void moderateComment(Page page, CommentTable table, long comment) {
        page.html("<a href=\"" + SERVLETS + "ModerateComment?comment_table=").html(table.sqlName()).html("&commentId=")
                .number(comment).html("\">Moderate</a>");
    }

    static void category(Page page, long id, String name) {
        page.html("<a href=\"" + SERVLETS + "BrowseStoriesByCategory?category=").number(id).html("&categoryName=").urlText(name)
                .html("\">").text(name).html("</a>");
    }
}
