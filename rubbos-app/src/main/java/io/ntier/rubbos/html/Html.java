package io.ntier.rubbos.html;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/** Makes text safe for HTML and for URLs. */
public final class Html {
    private Html() {
    }

    /** Appends text so that it is text in HTML, in elements as in quoted attributes. */
    static void escape(StringBuilder out, String text) {
        int done = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            // Letters are above all five special characters.
            String entity = c > '>' ? null : entity(c);
            if (entity != null) {
                out.append(text, done, i).append(entity);
                done = i + 1;
            }
        }
        out.append(text, done, text.length());
    }

    private static String entity(char c) {
        return switch (c) {
            case '&' -> "&amp;";
            case '<' -> "&lt;";
            case '>' -> "&gt;";
            case '"' -> "&quot;";
            case '\'' -> "&#39;";
            default -> null;
        };
    }

    static String url(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}
