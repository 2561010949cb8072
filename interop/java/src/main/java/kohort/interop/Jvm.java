package kohort.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A Java program in a process of its own, which ends with its owner and can be killed as an operator would. */
final class Jvm implements AutoCloseable {
    private final Process process;
    final Path log;

    /** Starts a class of the same class path; both its outputs go to `log`, after what is there. */
    Jvm(Path log, String heap, String mainClass, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", System.getProperty("java.class.path"), mainClass));
        command.addAll(List.of(arguments));
        this.log = log;
        process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        // Should this process be stopped, its children are not left behind.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    }

    /** Waits for the end, and answers the exit status. */
    int end() throws InterruptedException {
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError("still running after 60 s: " + tail());
        }
        return process.exitValue();
    }

    boolean alive() {
        return process.isAlive();
    }

    /** SIGKILL, and waits until it is gone. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor(10, TimeUnit.SECONDS);
    }

    /** SIGTERM; the end is waited for. */
    void stop() throws InterruptedException {
        process.destroy();
        end();
    }

    String output() throws IOException {
        return Files.readString(log);
    }

    String tail() {
        try {
            String text = output();
            return text.substring(Math.max(0, text.length() - 600));
        } catch (IOException unreadable) {
            return unreadable.toString();
        }
    }

    @Override public void close() throws InterruptedException {
        if (process.isAlive()) kill();
    }
}
