package kohort.interop;

import java.nio.file.Path;

import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * Runs one suite of checks against a broker: {@code Main SUITE --bootstrap HOST:PORT [--only PART-OF-A-NAME]}. It prints
 * a line for each check, {@code version CLIENT}, and {@code please restart the broker} where a check wants that; run by
 * hand, the check goes on without.
 */
public final class Main {
    public static void main(String[] words) throws Exception {
        Arguments arguments = new Arguments(words);
        Checks checks = new Checks();
        String version = AppInfoParser.getVersion();
        Checks.report("version " + switch (arguments.verb) {
            case "tools" -> "kafka-tools " + version;
            case "streams" -> "kafka-streams " + version;
            case "connect" -> "connect-runtime " + version + ", connect-file 4.3.1";
            default -> "kafka-clients " + version;
        });
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
