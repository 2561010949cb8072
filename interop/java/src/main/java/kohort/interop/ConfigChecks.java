package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.fails;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Configs of topics, groups and the broker. */
final class ConfigChecks {
    private final Cluster cluster;

    private ConfigChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        ConfigChecks here = new ConfigChecks(cluster);
        checks.add("topic-configs-are-described", here::topicConfigsAreDescribed);
        checks.add("topic-configs-are-altered", here::topicConfigsAreAltered);
        checks.add("topic-config-lists-grow-and-shrink", here::topicConfigLists);
        checks.add("topic-config-changes-are-refused", here::topicConfigsRefused);
        checks.add("broker-configs-are-described", here::brokerConfigsAreDescribed);
        checks.add("broker-configs-are-altered", here::brokerConfigsAreAltered);
        checks.add("group-configs-are-altered", here::groupConfigsAreAltered);
        checks.add("config-resources-are-listed", here::configResourcesAreListed);
    }

    private static ConfigResource topic(String name) {
        return new ConfigResource(ConfigResource.Type.TOPIC, name);
    }

    private Config describe(ConfigResource resource) throws Exception {
        return get(cluster.admin.describeConfigs(List.of(resource)).all()).get(resource);
    }

    private KafkaFuture<Void> alter(ConfigResource resource, OpType type, String name, String value) {
        return alter(resource, type, name, value, false);
    }

    private KafkaFuture<Void> alter(ConfigResource resource, OpType type, String name, String value, boolean only) {
        return cluster.admin.incrementalAlterConfigs(
            Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(name, value), type))),
            new AlterConfigsOptions().validateOnly(only)).all();
    }

    private void topicConfigsAreDescribed() throws Exception {
        String name = cluster.topic("configured", 1, "retention.ms", "777000");
        Config config = describe(topic(name));
        for (String key : List.of("cleanup.policy", "compression.type", "max.message.bytes", "message.timestamp.type",
            "min.insync.replicas", "retention.bytes", "segment.bytes", "segment.ms")) {
            that(config.get(key) != null, key + " is described");
        }
        equal("777000", config.get("retention.ms").value(), "the value set");
        equal(ConfigSource.DYNAMIC_TOPIC_CONFIG, config.get("retention.ms").source(), "source of the value set");
        equal("delete", config.get("cleanup.policy").value(), "the default");
        equal(ConfigSource.DEFAULT_CONFIG, config.get("cleanup.policy").source(), "source of the default");
        equal(false, config.get("retention.ms").isSensitive(), "sensitive");
        equal(false, config.get("retention.ms").isReadOnly(), "read-only");

        Config more = get(cluster.admin.describeConfigs(List.of(topic(name)),
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all()).get(topic(name));
        ConfigEntry retention = more.get("retention.ms");
        equal(ConfigEntry.ConfigType.LONG, retention.type(), "type");
        that(retention.documentation() != null && !retention.documentation().isEmpty(), "documentation asked for");
        that(!retention.synonyms().isEmpty(), "synonyms asked for");
        equal("777000", retention.synonyms().get(0).value(), "the first synonym is the value in force");
        fails(UnknownTopicOrPartitionException.class,
            cluster.admin.describeConfigs(List.of(topic(cluster.name("nowhere")))).all(), "unknown topic");
    }

    private void topicConfigsAreAltered() throws Exception {
        ConfigResource topic = topic(cluster.topic("altered", 1));
        String before = describe(topic).get("retention.ms").value();
        get(alter(topic, OpType.SET, "retention.ms", "5000000", true));
        equal(before, describe(topic).get("retention.ms").value(), "validated only");
        get(alter(topic, OpType.SET, "retention.ms", "5000000"));
        eventually("the new value", () -> describe(topic).get("retention.ms").value().equals("5000000"));
        get(alter(topic, OpType.SET, "segment.bytes", "2000000"));
        eventually("both values", () -> describe(topic).get("retention.ms").value().equals("5000000")
            && describe(topic).get("segment.bytes").value().equals("2000000"));
        get(alter(topic, OpType.DELETE, "retention.ms", null));
        eventually("the default again", () -> describe(topic).get("retention.ms").value().equals(before)
            && describe(topic).get("segment.bytes").value().equals("2000000"));
    }

    private void topicConfigLists() throws Exception {
        ConfigResource topic = topic(cluster.topic("lists", 1));
        get(alter(topic, OpType.APPEND, "cleanup.policy", "compact"));
        eventually("both policies",
            () -> Set.of(describe(topic).get("cleanup.policy").value().split(",")).equals(Set.of("compact", "delete")));
        get(alter(topic, OpType.SUBTRACT, "cleanup.policy", "delete"));
        eventually("one policy", () -> describe(topic).get("cleanup.policy").value().equals("compact"));
        fails(InvalidConfigurationException.class, alter(topic, OpType.APPEND, "retention.ms", "1"), "not a list");
    }

    private void topicConfigsRefused() throws Exception {
        String name = cluster.topic("stubborn", 1);
        ConfigResource topic = topic(name);
        fails(InvalidConfigurationException.class, alter(topic, OpType.SET, "no.such.config", "1"), "unknown name");
        fails(InvalidConfigurationException.class, alter(topic, OpType.SET, "retention.ms", "soon"), "not a number");
        fails(InvalidConfigurationException.class, alter(topic, OpType.SET, "segment.bytes", "0"), "out of range");
        fails(InvalidConfigurationException.class, alter(topic, OpType.SET, "retention.ms", "soon", true),
            "not a number, validated only");
        fails(UnknownTopicOrPartitionException.class,
            alter(topic(cluster.name("nowhere")), OpType.SET, "retention.ms", "1"), "unknown topic");
        ConfigEntry once = new ConfigEntry("retention.ms", "1000");
        fails(InvalidRequestException.class, cluster.admin.incrementalAlterConfigs(Map.of(topic, List.of(
            new AlterConfigOp(once, OpType.SET), new AlterConfigOp(once, OpType.DELETE)))).all(), "one name twice");
        // All changes of one resource hold or none does.
        fails(InvalidConfigurationException.class, cluster.admin.incrementalAlterConfigs(Map.of(topic, List.of(
            new AlterConfigOp(new ConfigEntry("retention.ms", "99"), OpType.SET),
            new AlterConfigOp(new ConfigEntry("segment.ms", "x"), OpType.SET)))).all(), "one good and one bad");
        that(!describe(topic).get("retention.ms").value().equals("99"), "the good one was not taken alone");
    }

    private ConfigResource broker() throws Exception {
        int id = get(cluster.admin.describeCluster().nodes()).iterator().next().id();
        return new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(id));
    }

    private void brokerConfigsAreDescribed() throws Exception {
        Config config = describe(broker());
        for (String key : List.of("auto.create.topics.enable", "num.partitions", "log.retention.ms",
            "group.consumer.session.timeout.ms", "group.initial.rebalance.delay.ms", "message.max.bytes",
            "offsets.retention.minutes", "offsets.topic.num.partitions")) {
            that(config.get(key) != null, key + " is described");
        }
        equal(true, config.get("offsets.topic.num.partitions").isReadOnly(), "a setting fixed at start");
        Config few = get(cluster.admin.describeConfigs(List.of(broker())).all()).get(broker());
        that(few.entries().size() >= 8, "many settings");
    }

    private void brokerConfigsAreAltered() throws Exception {
        ConfigResource one = broker();
        ConfigResource everyone = new ConfigResource(ConfigResource.Type.BROKER, "");
        get(alter(everyone, OpType.SET, "message.max.bytes", "2000001"));
        eventually("the default of the cluster", () -> describe(one).get("message.max.bytes").value().equals("2000001")
            && describe(one).get("message.max.bytes").source() == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
        get(alter(one, OpType.SET, "message.max.bytes", "2000002"));
        eventually("the broker's own", () -> describe(one).get("message.max.bytes").value().equals("2000002")
            && describe(one).get("message.max.bytes").source() == ConfigSource.DYNAMIC_BROKER_CONFIG);
        String topic = cluster.topic("inherits", 1);
        eventually("topics inherit it", () -> describe(topic(topic)).get("max.message.bytes").value().equals("2000002"));
        get(alter(one, OpType.DELETE, "message.max.bytes", null));
        get(alter(everyone, OpType.DELETE, "message.max.bytes", null));
        eventually("the default again",
            () -> describe(one).get("message.max.bytes").source() == ConfigSource.DEFAULT_CONFIG);
        fails(InvalidRequestException.class, alter(one, OpType.SET, "offsets.topic.num.partitions", "3"),
            "a setting fixed at start");
        fails(InvalidRequestException.class, alter(one, OpType.SET, "message.max.bytes", "many"), "not a number");
    }

    private void groupConfigsAreAltered() throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, cluster.name("tuned"));
        Config before = describe(group);
        for (String key : List.of("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")) {
            that(before.get(key) != null, key + " is described");
        }
        get(alter(group, OpType.SET, "consumer.session.timeout.ms", "46000"));
        eventually("the new value", () -> describe(group).get("consumer.session.timeout.ms").value().equals("46000"));
        equal(ConfigSource.DYNAMIC_GROUP_CONFIG, describe(group).get("consumer.session.timeout.ms").source(), "source");
        fails(InvalidConfigurationException.class,
            alter(group, OpType.SET, "consumer.session.timeout.ms", "1"), "below the broker's minimum");
        fails(InvalidConfigurationException.class,
            alter(group, OpType.SET, "consumer.no.such.thing", "1"), "unknown name");
        get(alter(group, OpType.DELETE, "consumer.session.timeout.ms", null));
        String default_ = before.get("consumer.session.timeout.ms").value();
        eventually("the default again",
            () -> describe(group).get("consumer.session.timeout.ms").value().equals(default_));
    }

    private void configResourcesAreListed() throws Exception {
        ConfigResource topic = topic(cluster.topic("resource", 1));
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, cluster.name("resource"));
        get(alter(group, OpType.SET, "consumer.session.timeout.ms", "46000"));
        eventually("a group and a topic among all",
            () -> get(cluster.admin.listConfigResources().all()).containsAll(List.of(topic, group)));
        var groups = get(cluster.admin.listConfigResources(
            Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions()).all());
        that(groups.contains(group) && groups.stream().allMatch(r -> r.type() == ConfigResource.Type.GROUP), "groups");
        var brokers = get(cluster.admin.listConfigResources(
            Set.of(ConfigResource.Type.BROKER), new ListConfigResourcesOptions()).all());
        that(brokers.contains(broker()), "the broker, found " + brokers);
    }
}
