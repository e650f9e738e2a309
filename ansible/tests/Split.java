import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** On the app node: the same statement again and again on one connection opened as the application opens its own; prints how often
 * each answer came. Usage: Split STATEMENT TIMES, with the application's classes on the class path. */
final class Split {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (var in = Files.newInputStream(Path.of("/etc/ntier/app/rubbos.properties"))) {
            settings.load(in);
        }
        String password = Files.readString(Path.of(settings.getProperty("password_file"))).strip();
        Class<?> type = Class.forName("io.ntier.rubbos.db.Database");
        Object database = type.getConstructor(String.class, String.class, String.class, boolean.class).newInstance(
                settings.getProperty("jdbc_url"), settings.getProperty("user"), password,
                settings.getProperty("statements").equals("server"));
        Map<String, Integer> answers = new TreeMap<>();
        try (Connection connection = (Connection) type.getMethod("open").invoke(database)) {
            for (int i = 0; i < Integer.parseInt(arguments[1]); i++) {
                try (PreparedStatement statement = connection.prepareStatement(arguments[0]);
                        ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    answers.merge(rows.getString(1), 1, Integer::sum);
                }
            }
        }
        answers.forEach((answer, times) -> System.out.println(answer + " " + times));
    }
}
