package io.ntier.rubbos.html;

import io.ntier.rubbos.db.CommentTable;
import java.util.Map;

/**
 * Choosers and forms. Hidden fields are written {@code name=NAME value=VALUE>} without quotes, and options {@code OPTION
 * value="ID"}, since RUBBoS clients look for these very texts.
 */
public final class FormHtml {
    private FormHtml() {
    }

    /** @param categories id -> name, in order */
    public static void categories(Page page, Map<Long, String> categories) {
        page.html("<h2>Categories</h2>\n<ul>\n");
        categories.forEach((id, name) -> {
            page.row();
            page.html("<li>");
            Links.category(page, id, name);
            page.html("</li>\n");
        });
        page.html("</ul>\n");
    }

    public static void day(Page page) {
        page.html("<h2>Older stories</h2>\n<form action=\"" + Links.SERVLETS + "OlderStories\" method=\"POST\">\n"
                + "Day <input type=\"text\" name=\"day\" size=\"2\"> month <input type=\"text\" name=\"month\" size=\"2\">\n"
                + "year <input type=\"text\" name=\"year\" size=\"4\"> <input type=\"submit\" value=\"Show\">\n</form>\n");
    }

    private static final String LOGIN = """
            <p><label>Nickname <input type="text" name="nickname" size="20"></label>
            <label>Password <input type="password" name="password" size="20"></label></p>
            """;

    private static void begin(Page page, String servlet) {
        page.html("<form action=\"" + Links.SERVLETS).html(servlet).html("\" method=\"POST\">\n");
    }

    private static void hidden(Page page, String name, long value) {
        page.html("<input type=hidden name=").html(name).html(" value=").number(value).html(">\n");
    }

    private static void table(Page page, CommentTable table) {
        page.html("<input type=hidden name=comment_table value=").html(table.sqlName()).html(">\n");
    }

    private static void end(Page page, String button) {
        page.html("<p><input type=\"submit\" value=\"").html(button).html("\"></p>\n</form>\n");
    }

    /** @param parent comment that is answered; 0: the story */
    public static void comment(Page page, CommentTable table, long story, long parent) {
        page.html("<h2>Post a comment</h2>\n");
        begin(page, "StoreComment");
        hidden(page, "storyId", story);
        hidden(page, "parent", parent);
        table(page, table);
        page.html(LOGIN).html("<p><label>Subject <input type=\"text\" name=\"subject\" size=\"80\"></label></p>\n"
                + "<p><textarea rows=\"20\" cols=\"80\" name=\"body\"></textarea></p>\n");
        end(page, "Post the comment");
    }

    public static void moderation(Page page, CommentTable table, long comment) {
        begin(page, "StoreModeratorLog");
        hidden(page, "commentId", comment);
        table(page, table);
        page.html(LOGIN).html("""
                <p>Rating
                <label><input type="radio" name="rating" value="-1"> -1</label>
                <label><input type="radio" name="rating" value="0" checked> 0</label>
                <label><input type="radio" name="rating" value="1"> +1</label></p>
                """);
        end(page, "Moderate");
    }

    /** @param categories id -> name, in order */
    public static void story(Page page, Map<Long, String> categories) {
        page.html("<h2>Submit a story</h2>\n");
        begin(page, "StoreStory");
        page.html(LOGIN).html("<p><label>Title <input type=\"text\" name=\"title\" size=\"80\"></label>\n<select name=\"category\">\n");
        categories.forEach((id, name) -> {
            page.row();
            page.html("<OPTION value=\"").number(id).html("\">").text(name).html("</OPTION>\n");
        });
        page.html("</select></p>\n<p><textarea rows=\"20\" cols=\"80\" name=\"body\"></textarea></p>\n");
        end(page, "Submit the story");
    }
}
