package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

import kohort.interop.Tool.Output;

/** Kafka's own command-line tools for topics, records, configs and disks, judged by what they print. */
final class ToolChecks {
    private final Cluster cluster;

    private ToolChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks, Path dataDir) {
        ToolChecks here = new ToolChecks(cluster);
        checks.add("kafka-broker-api-versions", here::apiVersions);
        checks.add("kafka-cluster", here::clusterTool);
        checks.add("kafka-topics", here::topics);
        checks.add("kafka-console-producer-and-consumer", here::console);
        checks.add("kafka-get-offsets", here::getOffsets);
        checks.add("kafka-configs", here::configs);
        checks.add("kafka-delete-records", here::deleteRecords);
        checks.add("kafka-log-dirs", here::logDirs);
        checks.add("kafka-client-compatibility", here::clientCompatibility);
        checks.add("kafka-verifiable-producer-and-consumer", here::verifiable);
        checks.add("kafka-producer-perf-test-and-consumer-perf-test", here::perfTests);
        GroupToolChecks.all(cluster, checks);
        DumpChecks.all(cluster, checks, dataDir);
    }

    /** Runs a tool against the broker under test. */
    static Output tool(Cluster cluster, String name, String... arguments) throws Exception {
        return toolWith("", cluster, name, arguments);
    }

    static Output toolWith(String input, Cluster cluster, String name, String... arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", cluster.bootstrap));
        all.addAll(Arrays.asList(arguments));
        return Tool.runWith(input, name, all.toArray(String[]::new));
    }

    private Output tool(String name, String... arguments) throws Exception {
        return tool(cluster, name, arguments);
    }

    private void apiVersions() throws Exception {
        tool("BrokerApiVersionsCommand").succeeded()
            .says(cluster.bootstrap, "Produce(0)", "Fetch(1)", "ConsumerGroupHeartbeat(68)", "JoinGroup(11)");
    }

    private void clusterTool() throws Exception {
        String id = get(cluster.admin.describeCluster().clusterId());
        Tool.run("ClusterTool", "cluster-id", "--bootstrap-server", cluster.bootstrap).succeeded().says(id);
        Tool.run("ClusterTool", "list-endpoints", "--bootstrap-server", cluster.bootstrap).succeeded()
            .says("127.0.0.1", cluster.bootstrap.substring(cluster.bootstrap.lastIndexOf(':') + 1));
    }

    private void topics() throws Exception {
        String name = cluster.name("tool");
        tool("TopicCommand", "--create", "--topic", name, "--partitions", "3", "--replication-factor", "1",
            "--config", "retention.ms=1234567").succeeded().says("Created topic " + name);
        Output again = tool("TopicCommand", "--create", "--topic", name, "--partitions", "3");
        that(again.status() != 0, "creating it twice fails");
        again.says("already exists");
        tool("TopicCommand", "--create", "--topic", name, "--partitions", "3", "--if-not-exists").succeeded();
        that(tool("TopicCommand", "--list").succeeded().lines().contains(name), "it is listed");
        Output described = tool("TopicCommand", "--describe", "--topic", name).succeeded()
            .says("PartitionCount: 3", "ReplicationFactor: 1", "retention.ms=1234567", "Leader: ", "Isr: ");
        equal(3L, described.lines().stream().filter(line -> line.contains("Partition: ")).count(), "partitions");
        String id = get(cluster.admin.describeTopics(List.of(name)).allTopicNames()).get(name).topicId().toString();
        tool("TopicCommand", "--describe", "--topic-id", id).succeeded().says("Topic: " + name);
        tool("TopicCommand", "--describe", "--under-replicated-partitions").succeeded();
        tool("TopicCommand", "--describe", "--unavailable-partitions").succeeded();
        tool("TopicCommand", "--describe", "--topics-with-overrides").succeeded().says(name);
        tool("TopicCommand", "--alter", "--topic", name, "--partitions", "5").succeeded();
        eventually("five partitions", () -> tool("TopicCommand", "--describe", "--topic", name).text()
            .contains("PartitionCount: 5"));
        tool("TopicCommand", "--delete", "--topic", name).succeeded();
        eventually("it is gone", () -> !tool("TopicCommand", "--list").lines().contains(name));
        Output gone = tool("TopicCommand", "--describe", "--topic", name);
        that(gone.status() != 0, "describing what is not there fails");
        gone.says("does not exist");
        tool("TopicCommand", "--delete", "--topic", name, "--if-exists").succeeded();
    }

    private void console() throws Exception {
        String topic = cluster.topic("console", 1);
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            toolWith("k-" + compression + ":v-" + compression + "\n", cluster, "ConsoleProducer", "--topic", topic,
                "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
                "--compression-codec=" + compression).succeeded();
        }
        toolWith("h1:one,h1:two\tkey\tvalue\n", cluster, "ConsoleProducer", "--topic", topic,
            "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true").succeeded();
        Output all = tool("consumer.ConsoleConsumer", "--topic", topic, "--from-beginning", "--max-messages", "6",
            "--timeout-ms", "20000", "--formatter-property", "print.key=true",
            "--formatter-property", "print.headers=true", "--formatter-property", "print.offset=true",
            "--formatter-property", "print.partition=true", "--formatter-property", "print.timestamp=true").succeeded();
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            all.says("k-" + compression + "\tv-" + compression);
        }
        all.says("Partition:0\tOffset:5\th1:one,h1:two\tkey\tvalue", "CreateTime:", "Processed a total of 6 messages");
        Output one = tool("consumer.ConsoleConsumer", "--topic", topic, "--partition", "0", "--offset", "2",
            "--max-messages", "1", "--timeout-ms", "20000").succeeded();
        equal("v-snappy", one.lines().get(0), "the record at an offset");
        String group = cluster.name("console");
        for (String protocol : List.of("classic", "consumer")) {
            tool("consumer.ConsoleConsumer", "--topic", topic, "--group", group + protocol, "--from-beginning",
                "--max-messages", "6", "--timeout-ms", "20000", "--command-property", "group.protocol=" + protocol)
                .succeeded().says("v-zstd", "Processed a total of 6 messages");
            eventually("the tool's group committed the end", () -> get(cluster.admin.listConsumerGroupOffsets(
                group + protocol).partitionsToOffsetAndMetadata()).get(new TopicPartition(topic, 0)).offset() == 6);
        }
        tool("consumer.ConsoleConsumer", "--include", topic + ".*", "--from-beginning", "--max-messages", "6",
            "--timeout-ms", "20000").succeeded().says("Processed a total of 6 messages");
    }

    private void getOffsets() throws Exception {
        String topic = cluster.topic("offsets", 2, "retention.ms", "-1");
        cluster.writeTo(new TopicPartition(topic, 0), 0, 10);
        cluster.writeTo(new TopicPartition(topic, 1), 0, 20);
        equal(List.of(topic + ":0:10", topic + ":1:20"),
            tool("GetOffsetShell", "--topic", topic).succeeded().lines(), "latest");
        equal(List.of(topic + ":0:0", topic + ":1:0"),
            tool("GetOffsetShell", "--topic", topic, "--time", "earliest").succeeded().lines(), "earliest");
        equal(List.of(topic + ":0:9", topic + ":1:19"),
            tool("GetOffsetShell", "--topic", topic, "--time", "max-timestamp").succeeded().lines(), "max timestamp");
        equal(List.of(topic + ":1:14"), tool("GetOffsetShell", "--topic-partitions", topic + ":1", "--time", "15000")
            .succeeded().lines(), "by time");
    }

    private void configs() throws Exception {
        String topic = cluster.topic("configs", 1);
        tool("ConfigCommand", "--alter", "--topic", topic, "--add-config", "retention.ms=99000,cleanup.policy=compact")
            .succeeded().says("Completed updating config");
        tool("ConfigCommand", "--describe", "--topic", topic).succeeded()
            .says("retention.ms=99000", "cleanup.policy=compact");
        tool("ConfigCommand", "--describe", "--topic", topic, "--all").succeeded().says("max.message.bytes=");
        tool("ConfigCommand", "--alter", "--topic", topic, "--delete-config", "retention.ms").succeeded();
        that(!tool("ConfigCommand", "--describe", "--topic", topic).succeeded().text().contains("retention.ms"),
            "the deleted config");
        String group = cluster.name("configs");
        tool("ConfigCommand", "--alter", "--group", group, "--add-config", "consumer.session.timeout.ms=46000")
            .succeeded();
        tool("ConfigCommand", "--describe", "--group", group).succeeded().says("consumer.session.timeout.ms=46000");
        int node = get(cluster.admin.describeCluster().nodes()).iterator().next().id();
        tool("ConfigCommand", "--describe", "--broker", Integer.toString(node), "--all").succeeded()
            .says("offsets.topic.num.partitions=");
        tool("ConfigCommand", "--describe", "--broker-defaults").succeeded();
        that(tool("ConfigCommand", "--alter", "--topic", topic, "--add-config", "retention.ms=x").status() != 0,
            "a bad value fails");
    }

    private void deleteRecords() throws Exception {
        String topic = cluster.topic("cut", 1);
        cluster.write(topic, 0, 10);
        Path file = Files.createTempFile("delete", ".json");
        try {
            Files.writeString(file, "{\"version\":1,\"partitions\":[{\"topic\":\"" + topic
                + "\",\"partition\":0,\"offset\":4}]}");
            tool("DeleteRecordsCommand", "--offset-json-file", file.toString()).succeeded()
                .says("partition: " + topic + "-0", "low_watermark: 4");
        } finally {
            Files.delete(file);
        }
        equal(4L, PartitionChecks.offset(cluster, new TopicPartition(topic, 0), OffsetSpec.earliest()).offset(),
            "earliest");
    }

    private void logDirs() throws Exception {
        String topic = cluster.topic("dirs", 1);
        cluster.write(topic, 0, 10);
        tool("LogDirsCommand", "--describe", "--topic-list", topic).succeeded()
            .says("\"partition\":\"" + topic + "-0\"", "\"error\":null", "\"offsetLag\":0");
    }

    /** Kafka's own check of a broker by a client: what is offered must work. */
    private void clientCompatibility() throws Exception {
        String topic = cluster.topic("compatibility", 1);
        // An authorizer is not needed to answer, but an API that a broker does not serve is not to be claimed.
        // It creates a topic of a name of its own.
        Tool.run("TopicCommand", "--bootstrap-server", cluster.bootstrap, "--delete", "--topic", "newtopic", "--if-exists");
        boolean acls = tool("BrokerApiVersionsCommand").succeeded().text().contains("DescribeAcls(29): 1");
        tool("ClientCompatibilityTest", "--topic", topic, "--offsets-for-times-supported", "true",
            "--cluster-id-supported", "true", "--expect-record-too-large-exception", "false",
            "--num-cluster-nodes", "1", "--create-topics-supported", "true", "--describe-acls-supported", acls ? "true" : "false",
            "--describe-configs-supported", "true", "--idempotent-producer-supported", "true").succeeded()
            .says("SUCCESS");
    }

    private void verifiable() throws Exception {
        String topic = cluster.topic("verifiable", 3);
        Output sent = Tool.runApart("VerifiableProducer",
            "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--max-messages", "500", "--acks", "-1").succeeded();
        equal(500L, sent.lines().stream().filter(line -> line.contains("producer_send_success")).count(), "sent");
        for (String protocol : List.of("classic", "consumer")) {
            Tool.runApart("VerifiableConsumer", "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--group-id", cluster.name("verifiable"), "--max-messages",
                "500", "--reset-policy", "earliest", "--verbose", "--group-protocol", protocol).succeeded()
                .says("partitions_assigned", "offsets_committed", "\"success\":true", "shutdown_complete");
        }
    }

    private void perfTests() throws Exception {
        String topic = cluster.topic("perf", 3);
        tool("ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "100",
            "--throughput", "-1", "--command-property", "acks=all").succeeded().says("20000 records sent");
        tool("ConsumerPerformance", "--topic", topic, "--num-records", "20000", "--timeout", "20000").succeeded()
            .says("data.consumed.in.MB");
        long ends = 0;
        for (int i = 0; i < 3; i++) ends += PartitionChecks.latest(cluster, new TopicPartition(topic, i));
        equal(20000L, ends, "records in the topic");
    }
}
