package io.ntier.jmeter;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.apache.jmeter.save.SaveService;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.collections.HashTree;

/** As much of a JMeter home as its loader needs, from the configuration jar. */
final class JMeterHome {
    private static final Path HOME = Path.of("target/jmeter-home").toAbsolutePath();

    private JMeterHome() {}

    static void prepare() throws IOException {
        Files.createDirectories(HOME.resolve("bin"));
        for (String name : new String[] {"jmeter.properties", "saveservice.properties", "upgrade.properties"}) {
            try (InputStream in = JMeterHome.class.getResourceAsStream("/bin/" + name)) {
                Files.copy(in, HOME.resolve("bin").resolve(name), StandardCopyOption.REPLACE_EXISTING);
            }
        }
        JMeterUtils.setJMeterHome(HOME.toString());
        JMeterUtils.loadJMeterProperties(HOME.resolve("bin/jmeter.properties").toString());
        // JMeter looks for functions in the jars of lib/ext; here they are on the class path.
        JMeterUtils.setProperty(
                "search_paths", System.getProperty("java.class.path").replace(java.io.File.pathSeparatorChar, ';'));
        JMeterUtils.initLocale();
    }

    static HashTree load(String plan) throws IOException {
        return SaveService.loadTree(Path.of(plan).toFile());
    }
}
