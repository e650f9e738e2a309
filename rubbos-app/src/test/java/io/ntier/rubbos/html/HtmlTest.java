package io.ntier.rubbos.html;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class HtmlTest {
    private static String escaped(String text) {
        StringBuilder out = new StringBuilder();
        Html.escape(out, text);
        return out.toString();
    }

    @Test
    void textCannotBecomeMarkup() {
        assertEquals("&lt;script a=&quot;1&quot; b=&#39;2&#39;&gt; &amp;amp;", escaped("<script a=\"1\" b='2'> &amp;"));
        assertEquals("", escaped(""));
        assertEquals("plain ü", escaped("plain ü"));
    }

    @Test
    void textCannotBecomeAnotherUrlParameter() {
        assertEquals("a+b%26c%3Dd%2F%22%C3%BC", Html.url("a b&c=d/\"ü"));
    }
}
