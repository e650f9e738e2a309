package io.ntier.jmeter;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.prefs.BackingStoreException;
import java.util.prefs.Preferences;
import org.junit.jupiter.api.Test;

class MemoryPreferencesTest {
    private final MemoryPreferences.Factory factory = new MemoryPreferences.Factory();

    @Test
    void whatIsPutIsThereUntilItIsRemoved() throws BackingStoreException {
        Preferences node = factory.userRoot().node("org/apache");
        node.put("width", "640");
        node.flush();
        node.sync();
        assertEquals("640", factory.userRoot().node("/org/apache").get("width", "none"));
        assertArrayEquals(new String[] {"width"}, node.keys());
        node.remove("width");
        assertEquals("none", node.get("width", "none"));
    }

    @Test
    void aRemovedNodeIsGoneWithItsChildren() throws BackingStoreException {
        Preferences root = factory.userRoot();
        root.node("org/apache").put("width", "640");
        assertArrayEquals(new String[] {"org"}, root.childrenNames());
        root.node("org").removeNode();
        assertFalse(root.nodeExists("org"));
        assertEquals("none", root.node("org/apache").get("width", "none"));
    }

    @Test
    void theRootsKnowNothingOfEachOtherNorOfAnotherProcess() throws BackingStoreException {
        factory.userRoot().node("org").put("width", "640");
        assertFalse(factory.systemRoot().nodeExists("org"));
        assertNotSame(factory.userRoot(), factory.systemRoot());
        assertFalse(new MemoryPreferences.Factory().userRoot().nodeExists("org"));
        assertTrue(factory.userRoot().nodeExists("org"));
    }
}
