package io.ntier.rubbos.html;

import io.ntier.rubbos.db.Comment;
import io.ntier.rubbos.db.CommentTable;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Map;

/** The discussion of a story: filter form and comment tree. */
public final class CommentHtml {
    public static final int RATING_LOW = -1;
    public static final int RATING_HIGH = 5;
    /** Comments are shown from this rating on if the reader does not say otherwise. */
    public static final int FILTER_DEFAULT = 0;
    public static final int DISPLAY_ROOTS = 0;
    public static final int DISPLAY_LINKS = 1;
    public static final int DISPLAY_FULL = 2;
    private static final String[] DISPLAY_NAMES = {"Main threads", "Nested threads", "All comments"};

    private final Page page;
    private final CommentTable table;
    private final long story;
    private final int filter;
    private final int display;

    /** @param filter  comments with a smaller rating are not shown
     *  @param display 0: only the uppermost comments; 1: their answers as links; 2: their answers in full */
    public CommentHtml(Page page, CommentTable table, long story, int filter, int display) {
        this.page = page;
        this.table = table;
        this.story = story;
        this.filter = filter;
        this.display = display;
    }

    /** A comment without its discussion; its subject leads there. */
    public static void alone(Page page, CommentTable table, long story, long comment, String subject, int rating, String nickname,
                             LocalDateTime date, String text) {
        page.row();
        page.html("<h2>");
        Links.viewComment(page, table, story, comment, subject);
        page.html("</h2>\n<p>(rating ").number(rating).html(") posted by ").text(nickname).html(" on ")
                .date(date).html("</p>\n<p>").text(text).html("</p>\n");
    }

    public void postLink() {
        page.html("<p>");
        Links.postComment(page, table, story, 0, "Post a comment on this story");
        page.html("</p>\n");
    }

    /**
     * @param comment       the comment that the page shows; 0: those of the whole story
     * @param countByRating comments of the story per rating
     */
    public void filterForm(long comment, Map<Integer, Integer> countByRating) {
        page.html("<form action=\"" + Links.SERVLETS + "ViewComment\" method=\"POST\">\n"
                + "<input type=\"hidden\" name=\"commentId\" value=\"").number(comment)
                .html("\">\n<input type=\"hidden\" name=\"storyId\" value=\"").number(story)
                .html("\">\n<input type=\"hidden\" name=\"comment_table\" value=\"").html(table.sqlName())
                .html("\">\nRating at least <select name=\"filter\">\n");
        for (int rating = RATING_LOW; rating <= RATING_HIGH; rating++) {
            option(rating, rating == filter);
            page.number(rating).html(" (").number(countByRating.getOrDefault(rating, 0)).html(" comments)</option>\n");
        }
        page.html("</select> <select name=\"display\">\n");
        for (int i = 0; i < DISPLAY_NAMES.length; i++) {
            option(i, i == display);
            page.html(DISPLAY_NAMES[i]).html("</option>\n");
        }
        page.html("</select> <input type=\"submit\" value=\"Refresh\">\n</form>\n");
    }

    private void option(int value, boolean selected) {
        page.html("<option value=\"").number(value).html(selected ? "\" selected>" : "\">");
    }

    public void comments(List<Comment> comments) {
        for (Comment comment : comments) {
            tree(comment);
        }
    }

    private void tree(Comment comment) {
        if (comment.rating() >= filter) {
            full(comment);
        }
        if (display == DISPLAY_ROOTS || comment.answers().isEmpty()) {
            return;
        }
        page.html("<ul>\n");
        for (Comment answer : comment.answers()) {
            if (display == DISPLAY_FULL) {
                page.html("<li>\n");
                tree(answer);
                page.html("</li>\n");
            } else {
                line(answer);
            }
        }
        page.html("</ul>\n");
    }

    private void full(Comment comment) {
        page.row();
        page.html("<hr>\n<p><b>");
        view(comment.id(), comment.subject());
        page.html("</b> (rating ").number(comment.rating()).html(") posted by ").text(comment.nickname()).html(" on ")
                .date(comment.date()).html("</p>\n<p>").text(comment.text()).html("</p>\n<p>[ ");
        Links.postComment(page, table, story, comment.id(), "Reply to this");
        page.html(" | ");
        view(comment.parent(), "Parent");
        page.html(" | ");
        Links.moderateComment(page, table, comment.id());
        page.html(" ]</p>\n");
    }

    private void line(Comment comment) {
        page.html("<li>");
        if (comment.rating() >= filter) {
            page.row();
            view(comment.id(), comment.subject());
            page.html(" by ").text(comment.nickname()).html(" on ").date(comment.date());
        }
        if (!comment.answers().isEmpty()) {
            page.html("<ul>\n");
            comment.answers().forEach(this::line);
            page.html("</ul>\n");
        }
        page.html("</li>\n");
    }

    /** A comment with its answers, shown as this page shows its own. */
    private void view(long comment, String text) {
        Links.viewComment(page, table, story, comment, filter, display, text);
    }
}
