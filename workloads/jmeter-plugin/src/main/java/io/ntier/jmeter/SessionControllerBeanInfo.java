package io.ntier.jmeter;

/** Form and defaults of {@link SessionController} in JMeter's GUI. */
public class SessionControllerBeanInfo extends FormBeanInfo {
    public SessionControllerBeanInfo() {
        super(SessionController.class);
        createPropertyGroup("chain", new String[] {"mix", "authorMix", "authorShare", "maxTransitions"});
        createPropertyGroup("who", new String[] {"users", "firstUser", "seed", "situations", "hosts"});
        createPropertyGroup("schedule", new String[] {"startEpochMs", "startFile", "rampUpS", "runS", "rampDownS"});
        createPropertyGroup("leaving", new String[] {"leavers", "firstLeaver", "leaveS"});
        createPropertyGroup("logs", new String[] {"out", "keepSituations", "remember", "traceEvery"});
        defaultValue("mix", "");
        defaultValue("authorMix", "");
        defaultValue("authorShare", 0.0);
        defaultValue("maxTransitions", 1000);
        defaultValue("users", 1);
        defaultValue("firstUser", 0);
        defaultValue("seed", 1L);
        defaultValue("hosts", "");
        defaultValue("leavers", 0);
        defaultValue("firstLeaver", 0);
        defaultValue("leaveS", 0.0);
        defaultValue("startEpochMs", 0L);
        defaultValue("startFile", "");
        defaultValue("rampUpS", 0.0);
        defaultValue("runS", 60.0);
        defaultValue("rampDownS", 0.0);
        defaultValue("out", "");
        defaultValue("situations", "");
        defaultValue("keepSituations", 0);
        defaultValue("remember", "");
        defaultValue("traceEvery", 0);
    }
}
