package io.ntier.rubbos.html;

import io.ntier.rubbos.db.CommentTable;
import java.time.LocalDateTime;
import java.util.List;

/** Search form and the comments that were found. */
public final class SearchHtml {
    private static final String[] TYPES = {"story titles", "comment subjects", "authors of stories"};

    /** A comment in a list of results. */
    public record Hit(long id, long story, String subject, LocalDateTime date, String nickname) {
    }

    private SearchHtml() {
    }

    public static void form(Page page, int type, String words) {
        page.html("<form action=\"" + Links.SERVLETS + "Search\" method=\"POST\">\n<input type=\"text\" name=\"search\" size=\"40\" value=\"")
                .text(words).html("\"> in\n");
        for (int i = 0; i < TYPES.length; i++) {
            page.html("<label><input type=\"radio\" name=\"type\" value=\"").number(i).html(i == type ? "\" checked> " : "\"> ")
                    .html(TYPES[i]).html("</label>\n");
        }
        page.html("<input type=\"submit\" value=\"Search\">\n</form>\n");
    }

    public static void comments(Page page, CommentTable table, List<Hit> hits, Paging paging) {
        page.html("<ul>\n");
        for (Hit hit : hits) {
            page.row();
            page.html("<li>");
            Links.viewComment(page, table, hit.story(), hit.id(), 0, CommentHtml.DISPLAY_ROOTS, hit.subject());
            page.html(" by ").text(hit.nickname()).html(" on ").date(hit.date()).html("</li>\n");
        }
        page.html("</ul>\n");
        paging.previousAndNext(page);
    }
}
