package io.ntier.jmeter;

import java.util.Locale;

/**
 * Makes the threads of users. A user mostly sleeps: as a virtual thread it costs a few kB of heap, as an operating
 * system's thread about 100 kB of stack that the collector scans at each pause. Virtual threads are used from Java 24
 * on, where waiting in a synchronized block no longer blocks their carrier (JEP 491).
 */
enum UserThreads {
    AUTO,
    VIRTUAL,
    PLATFORM;

    private static final int FIRST_GOOD_VERSION = 24;

    static UserThreads parse(String name) {
        for (UserThreads kind : values()) {
            if (kind.name().toLowerCase(Locale.ROOT).equals(name)) {
                return kind;
            }
        }
        throw new IllegalArgumentException("threads '" + name + "': allowed are auto, virtual, platform");
    }

    /** A thread that is not started yet. */
    Thread make(Runnable task, String name) {
        boolean virtual = this == VIRTUAL || this == AUTO && Runtime.version().feature() >= FIRST_GOOD_VERSION;
        return virtual ? virtual(task, name) : new Thread(task, name);
    }

    /** By reflection, since the plug-in is compiled for Java 17. */
    private static Thread virtual(Runnable task, String name) {
        try {
            Class<?> builder = Class.forName("java.lang.Thread$Builder");
            Object named = builder.getMethod("name", String.class)
                    .invoke(Thread.class.getMethod("ofVirtual").invoke(null), name);
            return (Thread) builder.getMethod("unstarted", Runnable.class).invoke(named, task);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(
                    "virtual threads need Java 21 or newer, this is " + Runtime.version(), e);
        }
    }
}
