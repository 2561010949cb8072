package kohort.interop;

import java.nio.file.Path;

/** Runs one suite of checks against a broker: {@code Main SUITE --bootstrap HOST:PORT [--only PART-OF-A-NAME]}. */
public final class Main {
    public static void main(String[] words) throws Exception {
        Arguments arguments = new Arguments(words);
        Checks checks = new Checks();
        int threads = Integer.parseInt(arguments.text("threads", "4"));
        try (Cluster cluster = new Cluster(arguments.text("bootstrap"))) {
            switch (arguments.verb) {
                case "admin" -> {
                    TopicChecks.all(cluster, checks);
                    ConfigChecks.all(cluster, checks);
                    PartitionChecks.all(cluster, checks);
                    GroupAdminChecks.all(cluster, checks);
                }
                case "clients" -> {
                    ProducerChecks.all(cluster, checks);
                    ConsumerChecks.all(cluster, checks);
                }
                case "groups" -> {
                    GroupChecks.all(cluster, checks);
                    MigrationChecks.all(cluster, checks);
                }
                case "tools" -> {
                    // The tools print to the one standard output of the process.
                    threads = 1;
                    ToolChecks.all(cluster, checks, Path.of(arguments.text("data-dir")));
                }
                case "streams" -> StreamsCheck.all(cluster, checks, Path.of(arguments.text("work-dir")));
                case "connect" -> ConnectCheck.all(cluster, checks, Path.of(arguments.text("work-dir")));
                default -> throw new IllegalArgumentException("no suite " + arguments.verb);
            }
            int failed = checks.run(arguments.text("only", ""), threads);
            System.exit(failed == 0 ? 0 : 1);
        }
    }
}
