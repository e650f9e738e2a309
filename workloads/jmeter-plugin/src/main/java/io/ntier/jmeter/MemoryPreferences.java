package io.ntier.jmeter;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.prefs.AbstractPreferences;
import java.util.prefs.Preferences;
import java.util.prefs.PreferencesFactory;

/**
 * What JMeter remembers of its window, also when it has none, is forgotten with the process. Java's own preferences are
 * files in the home of whoever runs it: a timer reads them in mid-run, and at its end the JVM lives on for one to two
 * seconds, since it loads an XML library to write them.
 */
public final class MemoryPreferences extends AbstractPreferences {

    /** Named by the JVM's option {@code java.util.prefs.PreferencesFactory}. */
    public static final class Factory implements PreferencesFactory {
        private final Preferences system = new MemoryPreferences(null, "");
        private final Preferences user = new MemoryPreferences(null, "");

        @Override
        public Preferences systemRoot() {
            return system;
        }

        @Override
        public Preferences userRoot() {
            return user;
        }
    }

    private final Map<String, String> values = new ConcurrentHashMap<>();
    private final Map<String, MemoryPreferences> children = new ConcurrentHashMap<>();

    private MemoryPreferences(MemoryPreferences parent, String name) {
        super(parent, name);
    }

    @Override
    protected void putSpi(String key, String value) {
        values.put(key, value);
    }

    @Override
    protected String getSpi(String key) {
        return values.get(key);
    }

    @Override
    protected void removeSpi(String key) {
        values.remove(key);
    }

    @Override
    protected String[] keysSpi() {
        return values.keySet().toArray(String[]::new);
    }

    @Override
    protected String[] childrenNamesSpi() {
        return children.keySet().toArray(String[]::new);
    }

    @Override
    protected AbstractPreferences childSpi(String name) {
        return children.computeIfAbsent(name, n -> new MemoryPreferences(this, n));
    }

    @Override
    protected void removeNodeSpi() {
        if (parent() instanceof MemoryPreferences parent) {
            parent.children.remove(name());
        }
    }

    @Override
    protected void syncSpi() {
        // nothing is written
    }

    @Override
    protected void flushSpi() {
        // nothing is written
    }
}
