package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EmbeddedImagesTest {
    /** A picture that is in the page itself is no request, and no reason to fail the page. */
    @Test
    void imagesAreFoundOnceEachAndInlineOnesAreLeftOut() throws Exception {
        String page = "<IMG SRC=\"/a.jpg\"><img src=\"b.png?x=1&amp;y=2\"><img src=\"data:image/gif;base64,R0lGODlhAQ==\">"
                + "<IMG SRC=\"/a.jpg\"><img src=\"unfinished";
        List<String> found = new ArrayList<>();
        new EmbeddedImages()
                .getEmbeddedResourceURLs(
                        "", page.getBytes(StandardCharsets.ISO_8859_1), new URL("http://h:8/p/q.html"), "UTF-8")
                .forEachRemaining(url -> found.add(url.toString()));
        assertEquals(List.of("http://h:8/a.jpg", "http://h:8/p/b.png?x=1&y=2"), found);
    }
}
