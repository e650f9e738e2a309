package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.protocol.http.control.HeaderManager;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class TraceContextTest {
    private static final TraceContext CONTEXT = new TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");

    @BeforeAll
    static void jmeter() throws IOException {
        JMeterHome.prepare();
    }

    private static TraceContext[] drawn(int user, int every, int count) {
        SplittableRandom draws = Streams.of(1, user, Streams.Purpose.TRACE);
        TraceContext[] contexts = new TraceContext[count];
        for (int i = 0; i < count; i++) {
            contexts[i] = TraceContext.draw(draws, every);
        }
        return contexts;
    }

    @Test
    void oneOfAHundredIsInTheSampleAndNoIdOccursTwice() {
        Set<String> ids = new HashSet<>();
        int sampled = 0;
        for (int user = 0; user < 200; user++) {
            for (TraceContext context : drawn(user, 100, 500)) {
                if (context != null) {
                    sampled++;
                    ids.add(context.traceId());
                    assertTrue(context.traceId().matches("[0-9a-f]{32}") && context.spanId().matches("[0-9a-f]{16}"));
                }
            }
        }
        // 100,000 draws with probability 0.01: 1,000 with a standard deviation of 31
        assertTrue(Math.abs(sampled - 1000) < 160, "sampled " + sampled);
        assertEquals(sampled, ids.size());
        for (TraceContext context : drawn(7, 1, 50)) {
            assertNotNull(context);
        }
    }

    @Test
    void theSameUserDrawsTheSame() {
        assertEquals(drawn(3, 1, 1)[0], drawn(3, 1, 1)[0]);
    }

    private static String traceparent(HTTPSamplerProxy sampler) {
        HeaderManager headers = sampler.getHeaderManager();
        Header header = headers == null ? null : headers.getFirstHeaderNamed("traceparent");
        return header == null ? null : header.getValue();
    }

    @Test
    void aSamplerCarriesTheHeaderForOneRequestBesideThoseOfThePlan() {
        HTTPSamplerProxy sampler = new HTTPSamplerProxy();
        HeaderManager own = new HeaderManager();
        own.add(new Header("Accept", "text/html"));
        sampler.setHeaderManager(own);
        sampler.setRunningVersion(true); // as JMeter does around each request
        CONTEXT.put(sampler);
        CONTEXT.put(sampler);
        assertEquals("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", traceparent(sampler));
        assertEquals(2, sampler.getHeaderManager().size());
        sampler.recoverRunningVersion();
        assertNull(traceparent(sampler));
        assertEquals(1, sampler.getHeaderManager().size());
    }

    @Test
    void aPlanWithoutHeadersHasNoneAfterwards() {
        HTTPSamplerProxy sampler = new HTTPSamplerProxy();
        sampler.setRunningVersion(true);
        CONTEXT.put(sampler);
        assertNotNull(traceparent(sampler));
        sampler.recoverRunningVersion();
        assertNull(sampler.getHeaderManager());
    }
}
