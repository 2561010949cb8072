package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

import kohort.interop.Tool.Output;

/** {@code kafka-dump-log} on the broker's files, the offsets topic with its decoder, and Kafka's formatters. */
final class DumpChecks {
    private static final int OFFSETS_PARTITIONS_MAX = 50;
    private final Cluster cluster;
    private final Path dataDir;

    private DumpChecks(Cluster cluster, Path dataDir) {
        this.cluster = cluster;
        this.dataDir = dataDir;
    }

    static void all(Cluster cluster, Checks checks, Path dataDir) {
        DumpChecks here = new DumpChecks(cluster, dataDir);
        checks.add("kafka-dump-log-reads-records", here::records);
        checks.add("kafka-dump-log-reads-the-indexes", here::indexes);
        checks.add("kafka-dump-log-reads-the-offsets-topic", here::offsetsTopic);
        checks.add("offsets-topic-through-kafkas-formatters", here::formatters);
    }

    /** The files of a partition that end so, oldest first; wherever below the data folder the partition is. */
    private List<String> files(String partition, String end) throws IOException {
        try (Stream<Path> folders = Files.walk(dataDir, 4)) {
            Path folder = folders.filter(path -> path.getFileName().toString().equals(partition)).findFirst()
                .orElseThrow(() -> new AssertionError("no folder " + partition + " below " + dataDir));
            try (Stream<Path> files = Files.list(folder)) {
                return files.map(Path::toString).filter(path -> path.endsWith(end)).sorted().toList();
            }
        }
    }

    private static Output dump(List<String> files, String... arguments) throws Exception {
        List<String> all = new java.util.ArrayList<>(List.of("--files", String.join(",", files)));
        all.addAll(List.of(arguments));
        return Tool.run("DumpLogSegments", all.toArray(String[]::new));
    }

    private void records() throws Exception {
        String topic = cluster.topic("dumped", 1);
        cluster.write(topic, 0, 20);
        try (var producer = cluster.producer("compression.type", "zstd")) {
            for (int i = 20; i < 40; i++) {
                producer.send(new org.apache.kafka.clients.producer.ProducerRecord<>(topic, "k" + i, "" + i));
            }
        }
        Output dumped = dump(files(topic + "-0", ".log"), "--print-data-log", "--deep-iteration").succeeded()
            .says("starting offset: 0", "payload: 39", "key: k0", "isvalid: true", "compresscodec: zstd");
        that(!dumped.text().contains("isvalid: false"), "every batch is valid");
        equal(40L, dumped.lines().stream().filter(line -> line.contains("payload: ")).count(), "records");
    }

    private void indexes() throws Exception {
        String topic = cluster.topic("indexed", 1, "segment.bytes", "1048576", "index.interval.bytes", "1024");
        String value = "v".repeat(500);
        try (var producer = cluster.producer("batch.size", "2000")) {
            for (int i = 0; i < 5000; i++) {
                producer.send(new org.apache.kafka.clients.producer.ProducerRecord<>(topic, "k" + i, value));
            }
        }
        List<String> logs = files(topic + "-0", ".log");
        that(logs.size() >= 2, "several segments, found " + logs);
        // Segments that are no longer written to; the newest one's indexes may still be growing, or not be there yet.
        for (String kind : List.of(".index", ".timeindex")) {
            List<String> closed = logs.subList(0, logs.size() - 1).stream()
                .map(log -> log.substring(0, log.length() - ".log".length()) + kind).toList();
            that(files(topic + "-0", kind).containsAll(closed), "each has its " + kind);
            Output dumped = dump(closed, "--index-sanity-check").succeeded();
            equal((long) closed.size(),
                dumped.lines().stream().filter(line -> line.contains("passed sanity check")).count(), "sound indexes");
            Output verified = dump(closed, "--verify-index-only").succeeded();
            that(!verified.text().contains("Mismatches in") && !verified.text().contains("Found timestamp mismatch")
                && !verified.text().contains("Found out of order"), "the index agrees with its log: "
                + verified.text());
            Output entries = dump(closed).succeeded();
            that(entries.lines().stream().filter(line -> line.startsWith("offset: ")
                || line.startsWith("timestamp: ")).count() > 10, "entries, found: " + entries.text());
        }
        Output producers = dump(files(topic + "-0", ".snapshot")).succeeded();
        that(producers.text().contains("producerEpoch: 0"), "the producer, found: " + producers.text());
    }

    private void offsetsTopic() throws Exception {
        String topic = cluster.topic("decoded", 2);
        String group = cluster.name("decoded");
        String modern = cluster.name("decoded-consumer");
        cluster.write(topic, 0, 10);
        try (Member one = Member.of(cluster, group, "classic", topic);
             Member two = Member.of(cluster, modern, "consumer", topic)) {
            Member.share(topic, 2, one);
            Member.share(topic, 2, two);
            eventually("both have read all", () -> one.values.size() == 10 && two.values.size() == 10);
        }
        get(cluster.admin.alterConsumerGroupOffsets(group,
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(3, "by hand"))).all());
        eventually("the commit is on disk", () -> decode(group).contains("by hand"));
        // Types are the numbers of Kafka's record keys.
        List<String> classic = decode(group).lines().toList();
        that(some(classic, "\"type\":\"1\"", "\"offset\":3", "by hand"), "a commit, found: " + classic);
        that(some(classic, "\"type\":\"2\"", "\"protocolType\":\"consumer\"", "\"protocol\":\"range\"", topic),
            "a generation, found: " + classic);
        List<String> lines = decode(modern).lines().toList();
        for (int type : List.of(1, 3, 5, 6, 7, 8)) {
            that(some(lines, "\"type\":\"" + type + "\""), "a record of type " + type + ", found: " + lines);
        }
        that(some(lines, "\"type\":\"8\"", "\"memberEpoch\":", "\"assignedPartitions\":[{\"topicId\""), "an assignment");
        // Members that left are tombstones.
        that(some(lines, "\"type\":\"5\"", "payload: <DELETE>") || some(lines, "\"type\":\"5\"", "payload: null"),
            "a member that left, found: " + lines);
    }

    private static boolean some(List<String> lines, String... parts) {
        return lines.stream().anyMatch(line -> java.util.Arrays.stream(parts).allMatch(line::contains));
    }

    /** The decoded lines that name a group, of all partitions of the offsets topic. */
    private String decode(String group) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (int partition = 0; partition < OFFSETS_PARTITIONS_MAX; partition++) {
            List<String> logs;
            try {
                logs = files("__consumer_offsets-" + partition, ".log");
            } catch (AssertionError absent) {
                continue;
            }
            Output dumped = dump(logs, "--offsets-decoder").succeeded();
            dumped.lines().stream().filter(line -> line.contains(group)).forEach(line -> lines.append(line).append('\n'));
        }
        return lines.toString();
    }

    private void formatters() throws Exception {
        String topic = cluster.topic("formatted", 1);
        String group = cluster.name("formatted");
        cluster.write(topic, 0, 10);
        try (Member one = Member.of(cluster, group, "consumer", topic)) {
            eventually("it has read all", () -> one.values.size() == 10);
        }
        Output formatted = ToolChecks.tool(cluster, "consumer.ConsoleConsumer", "--topic", "__consumer_offsets",
            "--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter", "--from-beginning",
            "--timeout-ms", "3000", "--command-property", "exclude.internal.topics=false");
        formatted.says("\"group\":\"" + group + "\"", "\"topic\":\"" + topic + "\"", "\"offset\":10");
    }
}
