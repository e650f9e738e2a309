package io.ntier.rubbos.html;

import java.util.Map;

/** Choosers: a category, a day. */
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
}
