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

    @Test
    void aSamplerCarriesTheHeaderOnceAndOnlyWhenItIsTraced() {
        HTTPSamplerProxy sampler = new HTTPSamplerProxy();
        TraceContext.put(sampler, null);
        assertNull(sampler.getHeaderManager());
        TraceContext.put(sampler, CONTEXT);
        TraceContext.put(sampler, CONTEXT);
        HeaderManager headers = sampler.getHeaderManager();
        assertEquals(1, headers.size());
        Header header = headers.get(0);
        assertEquals("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", header.getName() + ": " + header.getValue());
        TraceContext.put(sampler, null);
        assertNull(sampler.getHeaderManager());
    }

    @Test
    void headersOfThePlanStay() {
        HTTPSamplerProxy sampler = new HTTPSamplerProxy();
        HeaderManager own = new HeaderManager();
        own.add(new Header("Accept", "text/html"));
        sampler.setHeaderManager(own);
        TraceContext.put(sampler, CONTEXT);
        assertEquals(2, sampler.getHeaderManager().size());
        TraceContext.put(sampler, null);
        assertEquals("Accept", sampler.getHeaderManager().get(0).getName());
        assertEquals(1, sampler.getHeaderManager().size());
    }
}
