package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

import kohort.interop.Tool.Output;

/** {@code kafka-consumer-groups} and {@code kafka-groups}: every form of listing, describing, resetting, deleting. */
final class GroupToolChecks {
    private static final String TOOL = "consumer.group.ConsumerGroupCommand";
    private final Cluster cluster;

    private GroupToolChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        GroupToolChecks here = new GroupToolChecks(cluster);
        checks.add("kafka-consumer-groups-describes-classic", () -> here.describes("classic"));
        checks.add("kafka-consumer-groups-describes-consumer", () -> here.describes("consumer"));
        checks.add("kafka-consumer-groups-lists", here::lists);
        checks.add("kafka-consumer-groups-resets", here::resets);
        checks.add("kafka-consumer-groups-resets-from-a-file", here::resetsFromFile);
        checks.add("kafka-consumer-groups-does-not-reset-a-live-group", here::refusesLive);
        checks.add("kafka-consumer-groups-deletes", here::deletes);
        checks.add("kafka-consumer-groups-validates-a-regex", here::validatesRegex);
        checks.add("kafka-groups-lists", here::groupsCommand);
    }

    private Output groups(String... arguments) throws Exception {
        return ToolChecks.tool(cluster, TOOL, arguments);
    }

    private void describes(String protocol) throws Exception {
        String topic = cluster.topic("told", 2);
        String group = cluster.name("told");
        cluster.write(topic, 0, 40);
        try (Member one = Member.of(cluster, group, protocol, topic, "client.id", "first");
             Member two = Member.of(cluster, group, protocol, topic, "client.id", "second",
                 "group.instance.id", "instance-two")) {
            Member.share(topic, 2, one, two);
            eventually("all is committed", () -> groups("--describe", "--group", group).lines().stream()
                .filter(line -> line.contains(" " + topic + " ")).filter(line -> line.split("\\s+")[5].equals("0")).count() == 2);
            for (String form : List.of("", "--offsets")) {
                Output offsets = form.isEmpty() ? groups("--describe", "--group", group)
                    : groups("--describe", "--group", group, form);
                offsets.succeeded();
                TopicPartition first = one.owned.iterator().next();
                String number = Integer.toString(first.partition());
                equal("0", offsets.cell("LAG", topic + " " + number), "lag");
                equal("first", offsets.cell("CLIENT-ID", topic + " " + number), "client");
                equal(offsets.cell("LOG-END-OFFSET", topic + " " + number),
                    offsets.cell("CURRENT-OFFSET", topic + " " + number), "offset");
                that(offsets.cell("HOST", topic + " " + number).contains("127.0.0.1"), "host");
            }
            Output verboseOffsets = groups("--describe", "--group", group, "--offsets", "--verbose").succeeded();
            that(verboseOffsets.lines().size() >= 3, "two partitions");
            Output members = groups("--describe", "--group", group, "--members").succeeded();
            equal("1", members.cell("#PARTITIONS", group, "first"), "partitions of the first");
            members.says("instance-two");
            Output verbose = groups("--describe", "--group", group, "--members", "--verbose").succeeded();
            verbose.says(topic + ":" + one.owned.iterator().next().partition(),
                topic + ":" + two.owned.iterator().next().partition());
            if (protocol.equals("consumer")) {
                verbose.says("CURRENT-EPOCH", "TARGET-EPOCH");
                equal(verbose.cell("TARGET-EPOCH", group, "first"), verbose.cell("CURRENT-EPOCH", group, "first"),
                    "epochs of a stable member");
            }
            Output state = groups("--describe", "--group", group, "--state").succeeded();
            state.says("Stable", protocol.equals("classic") ? "range" : "uniform", cluster.bootstrap);
            groups("--describe", "--group", group, "--state", "--verbose").succeeded().says("Stable");
            groups("--describe", "--all-groups").succeeded().says(group);
            groups("--describe", "--all-groups", "--state").succeeded().says(group);
            groups("--describe", "--all-groups", "--members").succeeded().says(group);
        }
        eventually("the description says that there are no members", () -> {
            // A static member that closed stays until its session ends; the tool shows it until then.
            get(cluster.admin.removeMembersFromConsumerGroup(group,
                new org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions()).all());
            return groups("--describe", "--group", group).text().contains("has no active members");
        });
        groups("--describe", "--group", group, "--state").succeeded().says("Empty");
        Output unknown = groups("--describe", "--group", cluster.name("nobody"));
        unknown.says("GroupIdNotFoundException");
    }

    private void lists() throws Exception {
        String topic = cluster.topic("listed", 1);
        String live = cluster.name("listed-live");
        String empty = empty("listed-empty", topic, 0);
        try (Member one = Member.of(cluster, live, "consumer", topic)) {
            Member.share(topic, 1, one);
            List<String> all = groups("--list").succeeded().lines();
            that(all.contains(live) && all.contains(empty), "both are listed, found " + all);
            Output states = groups("--list", "--state").succeeded();
            equal("Stable", states.cell("STATE", live), "state");
            equal("Empty", states.cell("STATE", empty), "state");
            Output stable = groups("--list", "--state", "stable").succeeded().says(live);
            that(!stable.text().contains(empty), "only stable groups");
            Output types = groups("--list", "--type").succeeded();
            equal("Consumer", types.cell("TYPE", live), "type");
            equal("Classic", types.cell("TYPE", empty), "type");
            Output classic = groups("--list", "--type", "classic").succeeded().says(empty);
            that(!classic.text().contains(live), "only classic groups");
            groups("--list", "--state", "--type").succeeded().says(live, empty);
            that(groups("--list", "--state", "nonsense").status() != 0, "an unknown state fails");
        }
    }

    /** A group without members that committed `offset` in partition 0 of a topic. */
    private String empty(String stem, String topic, long offset) throws Exception {
        String group = cluster.name(stem);
        get(cluster.admin.alterConsumerGroupOffsets(group,
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset))).all());
        return group;
    }

    private long committed(String group, String topic) throws Exception {
        return get(cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
            .get(new TopicPartition(topic, 0)).offset();
    }

    private void resets() throws Exception {
        String topic = cluster.topic("reset", 1, "retention.ms", "-1");
        cluster.writeTo(new TopicPartition(topic, 0), 0, 100);
        cluster.write(topic, 100, 105);
        String group = empty("reset", topic, 50);
        List<List<String>> forms = List.of(
            List.of("0", "--to-earliest"),
            List.of("105", "--to-latest"),
            List.of("42", "--to-offset", "42"),
            List.of("45", "--shift-by", "3"),
            List.of("25", "--shift-by", "-20"),
            List.of("0", "--shift-by", "-200"),
            List.of("105", "--to-offset", "1000"),
            List.of("105", "--to-current"),
            List.of("29", "--to-datetime", "1970-01-01T00:00:29.500"),
            List.of("100", "--by-duration", "PT1H"));
        for (List<String> form : forms) {
            long before = committed(group, topic);
            Output dry = reset(group, topic, form, "--dry-run").succeeded();
            equal(form.get(0), dry.cell("NEW-OFFSET", topic + " 0"), "shown by " + form);
            equal(before, committed(group, topic), "a dry run changes nothing, " + form);
            Output done = reset(group, topic, form, "--execute").succeeded();
            equal(form.get(0), done.cell("NEW-OFFSET", topic + " 0"), "shown by " + form);
            equal(Long.parseLong(form.get(0)), committed(group, topic), "committed by " + form);
        }
        groups("--reset-offsets", "--group", group, "--all-topics", "--to-offset", "7", "--execute").succeeded();
        equal(7L, committed(group, topic), "all topics");
        groups("--reset-offsets", "--group", group, "--topic", topic + ":0", "--to-offset", "8", "--execute")
            .succeeded();
        equal(8L, committed(group, topic), "a partition by number");
        String fresh = cluster.name("reset-fresh");
        groups("--reset-offsets", "--group", fresh, "--topic", topic, "--to-offset", "9", "--execute").succeeded();
        equal(9L, committed(fresh, topic), "a group that was not there");
    }

    private Output reset(String group, String topic, List<String> form, String mode) throws Exception {
        List<String> arguments = new java.util.ArrayList<>(
            List.of("--reset-offsets", "--group", group, "--topic", topic, mode));
        arguments.addAll(form.subList(1, form.size()));
        return groups(arguments.toArray(String[]::new));
    }

    private void resetsFromFile() throws Exception {
        String topic = cluster.topic("csv", 1);
        cluster.write(topic, 0, 10);
        String group = empty("csv", topic, 5);
        Output exported = groups("--reset-offsets", "--group", group, "--topic", topic, "--to-current", "--export",
            "--dry-run").succeeded();
        String line = exported.lines().stream().filter(l -> l.contains(topic)).findFirst().orElseThrow();
        equal("\"" + topic + "\",0,5", line.replace(" ", "").replaceAll("^(?!\")([^,]*)", "\"$1\""), "exported line");
        Path file = Files.createTempFile("offsets", ".csv");
        try {
            Files.writeString(file, topic + ",0,3\n");
            groups("--reset-offsets", "--group", group, "--from-file", file.toString(), "--execute").succeeded();
        } finally {
            Files.delete(file);
        }
        equal(3L, committed(group, topic), "imported");
    }

    private void refusesLive() throws Exception {
        String topic = cluster.topic("live", 1);
        cluster.write(topic, 0, 10);
        String group = cluster.name("live");
        try (Member one = Member.of(cluster, group, "consumer", topic)) {
            eventually("it has committed", () -> committed(group, topic) == 10);
            groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
                .says("inactive");
            equal(10L, committed(group, topic), "unchanged");
        }
    }

    private void deletes() throws Exception {
        String topic = cluster.topic("deletes", 1);
        String other = cluster.topic("deletes", 1);
        String group = empty("deletes", topic, 5);
        get(cluster.admin.alterConsumerGroupOffsets(group,
            Map.of(new TopicPartition(other, 0), new OffsetAndMetadata(6))).all());
        groups("--delete-offsets", "--group", group, "--topic", topic).succeeded().says("Successful");
        var left = get(cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        equal(java.util.Set.of(new TopicPartition(other, 0)), left.keySet(), "offsets that are left");
        String live = cluster.name("deletes-live");
        try (Member one = Member.of(cluster, live, "classic", topic)) {
            Member.share(topic, 1, one);
            groups("--delete", "--group", live).says("GroupNotEmptyException");
            groups("--delete-offsets", "--group", live, "--topic", topic).says("subscribed");
        }
        groups("--delete", "--group", group).succeeded().says("successful");
        that(!groups("--list").succeeded().lines().contains(group), "it is not listed");
        groups("--delete", "--group", group).says("GroupIdNotFoundException");
    }

    private void validatesRegex() throws Exception {
        groups("--validate-regex", "a.*b").says("is valid");
        groups("--validate-regex", "(").says("is invalid");
    }

    private void groupsCommand() throws Exception {
        String topic = cluster.topic("kinds", 1);
        String live = cluster.name("kinds-live");
        String simple = empty("kinds-simple", topic, 0);
        try (Member one = Member.of(cluster, live, "consumer", topic)) {
            Member.share(topic, 1, one);
            Output all = ToolChecks.tool(cluster, "GroupsCommand", "--list").succeeded();
            equal("Consumer", all.cell("TYPE", live), "type");
            equal("consumer", all.cell("PROTOCOL", live), "protocol");
            equal("Classic", all.cell("TYPE", simple), "type");
            Output consumers = ToolChecks.tool(cluster, "GroupsCommand", "--list", "--consumer").succeeded();
            consumers.says(live, simple);
            Output type = ToolChecks.tool(cluster, "GroupsCommand", "--list", "--group-type", "consumer").succeeded();
            that(type.text().contains(live) && !type.text().contains(simple), "filtered by type");
            Output protocol =
                ToolChecks.tool(cluster, "GroupsCommand", "--list", "--protocol", "consumer").succeeded();
            that(protocol.text().contains(live) && !protocol.text().contains(simple), "filtered by protocol");
        }
    }
}
