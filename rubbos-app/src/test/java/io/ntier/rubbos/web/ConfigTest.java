package io.ntier.rubbos.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigTest {
    private static Properties complete() {
        Properties properties = new Properties();
        properties.setProperty("jdbc_url", "jdbc:mysql://h:3306/rubbos");
        properties.setProperty("user", "u");
        properties.setProperty("password", "p");
        properties.setProperty("pool_size", "3");
        return properties;
    }

    @Test
    void defaultsAreTheOriginals() throws Exception {
        Config config = Config.parse(complete());
        assertTrue(config.poolPerServlet());
        assertFalse(config.serverStatements());
        assertEquals(3, config.poolSize());
    }

    @Test
    void passwordMayBeInAFile(@TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("secret"), "from file\n");
        Properties properties = complete();
        properties.setProperty("password_file", file.toString());
        assertEquals("from file", Config.parse(properties).password());
    }

    @ParameterizedTest
    @CsvSource({"pool_size,0", "pool_size,many", "pool_mode,stack", "statements,yes", "pool_sise,3", "user,"})
    void wrongSettingIsNamed(String key, String value) {
        Properties properties = complete();
        properties.setProperty(key, value == null ? "" : value);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Config.parse(properties)).getMessage().contains(key));
    }
}
