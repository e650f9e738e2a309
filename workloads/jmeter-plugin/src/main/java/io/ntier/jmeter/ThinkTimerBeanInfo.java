package io.ntier.jmeter;

/** Form and defaults of {@link ThinkTimer} in JMeter's GUI. */
public class ThinkTimerBeanInfo extends FormBeanInfo {
    public ThinkTimerBeanInfo() {
        super(ThinkTimer.class);
        createPropertyGroup("delay", new String[] {"meanMs", "cap"});
        defaultValue("meanMs", 7000.0);
        defaultValue("cap", ThinkTime.CAP);
    }
}
