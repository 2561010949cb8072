package kohort.interop;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command-line tools by their main methods, one after the other in this process: what a shell script of
 * Kafka's bin folder does, without a new JVM each.
 */
final class Tool {
    /** How much of each end of a tool's output a failure shows. */
    private static final int EXCERPT = 400;

    /** What a tool left: its exit status and all that it printed, to both outputs. */
    record Output(int status, String text) {
        List<String> lines() {
            return text.lines().map(String::strip).filter(line -> !line.isEmpty()).toList();
        }

        /** The first line in which all of these stand, words apart from their neighbours. */
        String row(String... words) {
            for (String line : text.lines().toList()) {
                String spaced = " " + line.strip().replaceAll("\\s+", " ") + " ";
                if (Stream.of(words).allMatch(word -> spaced.contains(" " + word + " "))) return line;
            }
            throw new AssertionError("no line with " + List.of(words) + " in: " + excerpt());
        }

        /** What stands in such a row below the heading of that name; empty if nothing does. */
        String cell(String heading, String... words) {
            String headings = text.lines().filter(line -> List.of(line.strip().split("\\s+")).contains(heading))
                .findFirst().orElseThrow(() -> new AssertionError("no heading " + heading + " in: " + excerpt()));
            String row = row(words);
            int column = (" " + headings + " ").indexOf(" " + heading + " ");
            return column >= row.length() ? "" : row.substring(column).split("\\s", 2)[0];
        }

        private String excerpt() {
            return text.length() <= 2 * EXCERPT ? text
                : text.substring(0, EXCERPT) + " … " + text.substring(text.length() - EXCERPT);
        }

        Output succeeded() {
            Checks.equal(0, status, "status of the tool, which printed: " + excerpt());
            return this;
        }

        Output says(String... parts) {
            for (String part : parts) Checks.that(text.contains(part), "no '" + part + "' in: " + excerpt());
            return this;
        }
    }

    /** Thrown where a tool ends the process. */
    private static final class Ended extends Error {
        Ended(int status) {
            super("exit " + status, null, false, false);
        }
    }

    private Tool() { }

    /** Runs {@code org.apache.kafka.tools.<name>}. */
    static Output run(String name, String... arguments) throws Exception {
        return runWith("", name, arguments);
    }

    /** As {@link #run}, in a JVM of its own, for tools that do half of their work as it ends. */
    static Output runApart(String name, String... arguments) throws Exception {
        Path log = Files.createTempFile("tool", ".log");
        try (Jvm jvm = new Jvm(log, "128m", "org.apache.kafka.tools." + name, arguments)) {
            return new Output(jvm.end(), jvm.output());
        } finally {
            Files.delete(log);
        }
    }

    /** As {@link #run}, with `input` as its standard input. */
    static synchronized Output runWith(String input, String name, String... arguments) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        List<Runnable> hooks = new ArrayList<>();
        List<Integer> statuses = new ArrayList<>();
        try (PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
            System.setOut(capture);
            System.setErr(capture);
            System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            Exit.Procedure end = (status, message) -> {
                statuses.add(status);
                throw new Ended(status);
            };
            Exit.setExitProcedure(end);
            Exit.setHaltProcedure(end);
            Exit.setShutdownHookAdder((hook, action) -> hooks.add(action));
            try {
                Class.forName("org.apache.kafka.tools." + name)
                    .getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException failure) {
                if (!(failure.getCause() instanceof Ended)) {
                    // As a JVM does whose main method throws.
                    statuses.add(1);
                    failure.getCause().printStackTrace(capture);
                }
            }
            hooks.forEach(Runnable::run);
        } finally {
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
            Exit.resetShutdownHookAdder();
        }
        // Some tools catch what ends them, and then end once more: the first counts.
        return new Output(statuses.isEmpty() ? 0 : statuses.get(0), printed.toString(StandardCharsets.UTF_8));
    }
}
