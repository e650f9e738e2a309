/**
 * JMeter plug-in: user sessions as walks of a Markov chain, with negative-exponential think times and the page rules of
 * the RUBBoS client. Three elements are visible in JMeter ({@link io.ntier.jmeter.SessionController},
 * {@link io.ntier.jmeter.ThinkTimer}, {@link io.ntier.jmeter.PageReader}); the rest are plain classes under them.
 */
package io.ntier.jmeter;
