package io.ntier.jmeter;

import java.util.SplittableRandom;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.protocol.http.control.HeaderManager;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.samplers.Sampler;
import org.apache.jmeter.testelement.property.TestElementProperty;

/**
 * A W3C trace context (https://www.w3.org/TR/trace-context/): ids of an interaction and of the client's part of it. Its
 * pictures and further tries have the same one.
 *
 * @param traceId 32 hexadecimal digits
 * @param spanId 16 hexadecimal digits
 */
record TraceContext(String traceId, String spanId) {
    private static final String HEADER = "traceparent";
    /** Name under which {@link HTTPSamplerBase} keeps the headers of its requests. */
    private static final String HEADERS = HTTPSamplerBase.HEADER_MANAGER;

    /** Draws the ids of the next interaction; null unless they belong to the sample of one in {@code every}. */
    static TraceContext draw(SplittableRandom draws, int every) {
        long high = draws.nextLong();
        long low = draws.nextLong();
        long span = draws.nextLong();
        boolean sampled = Long.remainderUnsigned(low, every) == 0;
        return sampled ? new TraceContext(hex(high | 1) + hex(low), hex(span | 1)) : null; // all zeros are not allowed
    }

    private static String hex(long value) {
        String digits = Long.toHexString(value);
        return "0".repeat(16 - digits.length()) + digits;
    }

    /**
     * Gives the sampler's request the context, beside the headers that the plan gives it. To be called between JMeter's
     * configuration of the sampler and its request (in a timer): JMeter takes away what is put in then once the request
     * is done, and what was put in before.
     */
    void put(Sampler sampler) {
        if (!(sampler instanceof HTTPSamplerBase)) {
            return;
        }
        HTTPSamplerBase http = (HTTPSamplerBase) sampler;
        HeaderManager own = http.getHeaderManager();
        HeaderManager headers = own == null ? new HeaderManager() : (HeaderManager) own.clone();
        headers.removeHeaderNamed(HEADER);
        headers.add(new Header(HEADER, "00-" + traceId + "-" + spanId + "-01"));
        http.setProperty(new TestElementProperty(HEADERS, headers));
    }
}
