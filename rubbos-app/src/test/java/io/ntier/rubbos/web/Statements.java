package io.ntier.rubbos.web;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Describes RUBBoS' statements by what they ask of a database, whoever wrote them: tables, conditions, order, part of the result,
 * and whether bodies are read. Aliases, the order of conditions, and columns other than bodies do not count; texts are "?".
 */
final class Statements {
    private static final Pattern READ = Pattern.compile(
            "SELECT (?<columns>.*?) FROM (?<tables>.*?)(?: WHERE (?<where>.*?))?(?<grouped> GROUP BY \\S+)?(?: ORDER BY (?<order>.*?))?"
                    + "(?: LIMIT (?<limit>\\d+))?(?: OFFSET (?<offset>\\d+))?", Pattern.CASE_INSENSITIVE);
    private static final Pattern WRITE = Pattern.compile(
            "(?<verb>INSERT INTO|UPDATE|DELETE FROM) (?<table>\\w+)(?: SET (?<set>.*?))?.*?(?: WHERE (?<where>.*))?", Pattern.CASE_INSENSITIVE);
    /** Of a discussion: each level's comments answer those of the level above. */
    private static final Pattern ANSWERS = Pattern.compile("t\\d+\\.parent=t\\d+\\.id");
    private static final Pattern BODIES = Pattern.compile("\\*|.*\\b(body|comment)\\b.*");

    private Statements() {
    }

    static String describe(String sql) {
        String plain = sql.replaceAll("'(?:[^'\\\\]|\\\\.|'')*'", "?").replaceAll("\\s+", " ").strip();
        Matcher read = READ.matcher(plain);
        if (read.matches()) {
            return read(read);
        }
        Matcher write = WRITE.matcher(plain);
        if (!write.matches()) {
            return plain;
        }
        String what = write.group("verb").split(" ")[0].toLowerCase() + ' ' + write.group("table");
        return what + (what.startsWith("insert") ? "" : where(write.group("where"), new ArrayList<>()));
    }

    private static String read(Matcher read) {
        List<String> tables = Arrays.stream(read.group("tables").split(",")).map(table -> table.strip().split(" ")[0]).toList();
        List<String> names = tables.stream().distinct().sorted().toList();
        String text = "read " + String.join(", ", names);
        List<String> answers = new ArrayList<>();
        String where = where(read.group("where"), answers);
        if (!answers.isEmpty()) {
            text += " at level " + answers.size();
        }
        boolean hasBodies = !names.equals(List.of("users")) && !names.equals(List.of("categories"));
        if (hasBodies && BODIES.matcher(read.group("columns")).matches()) {
            text += " with bodies";
        }
        if (read.group("grouped") != null) {
            text += " counted";
        }
        text += where;
        if (read.group("order") != null && read.group("order").endsWith("DESC")) {
            text += ", newest first";
        }
        if (read.group("limit") != null) {
            text += ", " + read.group("limit") + " from " + (read.group("offset") == null ? "0" : read.group("offset"));
        }
        return text;
    }

    /** @param answers receives the joins of a discussion's levels, which the description leaves out */
    private static String where(String conditions, List<String> answers) {
        if (conditions == null) {
            return "";
        }
        List<String> described = new ArrayList<>();
        for (String condition : conditions.replaceAll("(?i) BETWEEN (\\S+) AND (\\S+)", " in $1..$2").split("(?i) AND ")) {
            String bare = condition.replaceAll("(?i) LIKE ", "~").replaceAll(" in ", "#").replace(" ", "").replace("#", " in ");
            if (ANSWERS.matcher(bare).matches()) {
                answers.add(bare);
            } else {
                described.add(sorted(bare.replaceAll("\\w+\\.(?=[a-z])", "")));
            }
        }
        Collections.sort(described);
        return ": " + String.join(", ", described);
    }

    private static String sorted(String condition) {
        String[] sides = condition.split("(?<![<>])=", 2);
        Arrays.sort(sides);
        return String.join("=", sides);
    }

    /**
     * Links of a page as RUBBoS' clients read them (of lists only the page number): number per servlet, and a digest of all. Their
     * order does not count: comments come in the order of the DBMS, and clients draw from them.
     */
    static String links(String page) {
        Matcher link = Pattern.compile("servlets\\.(\\w+)\\?([^\">]+)\"").matcher(page);
        List<String> all = link.results().map(Statements::link).sorted().toList();
        if (all.isEmpty()) {
            return "no link";
        }
        List<String> counts = all.stream().map(text -> text.split(" ")[0]).distinct().sorted()
                .map(name -> name + ' ' + all.stream().filter(text -> text.startsWith(name + ' ')).count()).toList();
        return String.join(", ", counts) + String.format("; %08x", String.join("\n", all).hashCode());
    }

    private static String link(MatchResult link) {
        Matcher page = Pattern.compile("&page=\\d+").matcher(link.group(2));
        return link.group(1) + ' ' + (page.find() ? page.group() : link.group(2));
    }
}
