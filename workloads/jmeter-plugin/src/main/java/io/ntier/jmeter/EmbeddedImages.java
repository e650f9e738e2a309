package io.ntier.jmeter;

import java.net.MalformedURLException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.jmeter.protocol.http.parser.BaseParser;
import org.apache.jmeter.protocol.http.parser.LinkExtractorParseException;

/**
 * Finds the images of a page by substring search, as the RUBBoS client does; for JMeter's "retrieve all embedded
 * resources". JMeter's own parser builds a token stream of the whole page, which costs more than the request. Used if
 * {@code htmlParser.className} names this class; pages that need style sheets or scripts loaded keep JMeter's parser.
 */
public final class EmbeddedImages extends BaseParser {
    @Override
    public Iterator<URL> getEmbeddedResourceURLs(String userAgent, byte[] body, URL base, String encoding)
            throws LinkExtractorParseException {
        String page = new String(body, StandardCharsets.ISO_8859_1);
        Set<String> seen = new LinkedHashSet<>();
        collect(page, "<IMG SRC=\"", seen);
        collect(page, "<img src=\"", seen);
        try {
            List<URL> urls = new ArrayList<>(); // not a set: URL.hashCode() resolves host names
            for (String link : seen) {
                if (link.startsWith("data:")) {
                    continue; // the picture itself
                }
                urls.add(new URL(base, link.replace("&amp;", "&")));
            }
            return urls.iterator();
        } catch (MalformedURLException e) {
            throw new LinkExtractorParseException(e);
        }
    }

    private static void collect(String page, String tag, Set<String> found) {
        for (int at = page.indexOf(tag); at >= 0; at = page.indexOf(tag, at + tag.length())) {
            int end = page.indexOf('"', at + tag.length());
            if (end < 0) {
                return;
            }
            found.add(page.substring(at + tag.length(), end));
        }
    }
}
