package io.ntier.rubbos.html;

/**
 * Previous and next page of a list.
 *
 * @param link servlet and its parameters without the page: "Search?search=word&type=1", values already URL-encoded
 */
public record Paging(String link, int page, int storiesPerPage) {
    public static String encode(String value) {
        return Html.url(value);
    }

    /** Below a list. The next page is offered even if there may be none, as in the original: its users then find nothing. */
    void previousAndNext(Page out) {
        previous(out);
        link(out, page + 1, "Next page");
    }

    /** Nothing, on the first page. */
    void previous(Page out) {
        if (page > 0) {
            link(out, page - 1, "Previous page");
        }
    }

    private void link(Page out, int target, String text) {
        out.html("<p><a href=\"" + Links.SERVLETS).html(link).html("&page=").number(target).html("&nbOfStories=")
                .number(storiesPerPage).html("\">").html(text).html("</a></p>\n");
    }
}
