package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.fails;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The cluster and its topics, as an administrator sees them. */
final class TopicChecks {
    private final Cluster cluster;

    private TopicChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        TopicChecks here = new TopicChecks(cluster);
        checks.add("cluster-is-described", here::clusterIsDescribed);
        checks.add("features-are-described", here::featuresAreDescribed);
        checks.add("topic-created-with-configs", here::topicCreatedWithConfigs);
        checks.add("topic-created-with-defaults", here::topicCreatedWithDefaults);
        checks.add("topic-created-with-assignment", here::topicCreatedWithAssignment);
        checks.add("topic-validated-only-is-not-created", here::topicValidatedOnly);
        checks.add("topic-creation-is-refused", here::topicCreationIsRefused);
        checks.add("topics-created-one-by-one", here::topicsCreatedOneByOne);
        checks.add("topics-described-by-name-and-id", here::topicsDescribed);
        checks.add("topic-described-in-pages", here::topicDescribedInPages);
        checks.add("unknown-topics-are-not-described", here::unknownTopics);
        checks.add("topics-are-listed", here::topicsAreListed);
        checks.add("topics-deleted-by-name-and-id", here::topicsDeleted);
        checks.add("topic-recreated-is-new-and-empty", here::topicRecreated);
        checks.add("partitions-are-added", here::partitionsAreAdded);
        checks.add("partitions-refused", here::partitionsRefused);
    }

    private void clusterIsDescribed() throws Exception {
        var described = cluster.admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        that(!get(described.clusterId()).isEmpty(), "a cluster id");
        var nodes = get(described.nodes());
        equal(1, nodes.size(), "number of nodes");
        var node = nodes.iterator().next();
        equal(cluster.bootstrap, node.host() + ":" + node.port(), "address of the node");
        equal(node.id(), get(described.controller()).id(), "the controller");
        that(!get(described.authorizedOperations()).isEmpty(), "operations, since they were asked for");
        equal(null, get(cluster.admin.describeCluster().authorizedOperations()), "operations not asked for");
    }

    private void featuresAreDescribed() throws Exception {
        var features = get(cluster.admin.describeFeatures().featureMetadata());
        // Tools and Streams look here for what a cluster offers.
        var groups = features.finalizedFeatures().get("group.version");
        that(groups != null && groups.maxVersionLevel() >= 1, "group.version is finalized, found " + groups);
    }

    private void topicCreatedWithConfigs() throws Exception {
        String name = cluster.name("created");
        NewTopic topic = new NewTopic(name, 3, (short) 1)
            .configs(Map.of("retention.ms", "1234567", "cleanup.policy", "compact,delete"));
        CreateTopicsResult created = cluster.admin.createTopics(List.of(topic));
        get(created.all());
        equal(3, get(created.numPartitions(name)), "partitions in the answer");
        equal(1, get(created.replicationFactor(name)), "replicas in the answer");
        that(!get(created.topicId(name)).equals(Uuid.ZERO_UUID), "a topic id in the answer");
        equal("1234567", get(created.config(name)).get("retention.ms").value(), "config in the answer");
        equal("compact,delete", get(created.config(name)).get("cleanup.policy").value(), "config in the answer");
        that(get(created.config(name)).get("segment.bytes") != null, "defaults in the answer");
    }

    private void topicCreatedWithDefaults() throws Exception {
        String name = cluster.name("defaults");
        CreateTopicsResult created = cluster.admin.createTopics(
            List.of(new NewTopic(name, java.util.Optional.empty(), java.util.Optional.empty())));
        get(created.all());
        that(get(created.numPartitions(name)) >= 1, "at least one partition");
        equal(1, get(created.replicationFactor(name)), "replicas in the answer");
    }

    private int node() throws Exception {
        return get(cluster.admin.describeCluster().nodes()).iterator().next().id();
    }

    private void topicCreatedWithAssignment() throws Exception {
        String name = cluster.name("assigned");
        get(cluster.admin.createTopics(
            List.of(new NewTopic(name, Map.of(0, List.of(node()), 1, List.of(node()))))).all());
        eventually("two partitions", () -> describe(name).partitions().size() == 2);
        String other = cluster.name("assigned");
        fails(InvalidReplicaAssignmentException.class, cluster.admin.createTopics(
            List.of(new NewTopic(other, Map.of(0, List.of(node() + 77))))).all(), "a broker that is not there");
        fails(InvalidReplicaAssignmentException.class, cluster.admin.createTopics(
            List.of(new NewTopic(other, Map.of(1, List.of(node()))))).all(), "partitions that do not begin at 0");
    }

    private void topicValidatedOnly() throws Exception {
        String name = cluster.name("validated");
        CreateTopicsOptions only = new CreateTopicsOptions().validateOnly(true);
        CreateTopicsResult created = cluster.admin.createTopics(List.of(new NewTopic(name, 3, (short) 1)), only);
        get(created.all());
        equal(3, get(created.numPartitions(name)), "partitions in the answer");
        that(!get(cluster.admin.listTopics().names()).contains(name), "the topic is not there");
        fails(InvalidPartitionsException.class,
            cluster.admin.createTopics(List.of(new NewTopic(name, 0, (short) 1)), only).all(), "0 partitions");
    }

    private void topicCreationIsRefused() throws Exception {
        String existing = cluster.topic("existing", 1);
        fails(TopicExistsException.class, create(new NewTopic(existing, 1, (short) 1)), "existing topic");
        for (String name : List.of("", ".", "..", "a b", "a/b", "ü", "x".repeat(250))) {
            fails(InvalidTopicException.class, create(new NewTopic(name, 1, (short) 1)), "name '" + name + "'");
        }
        String dots = cluster.name("collides.with");
        get(create(new NewTopic(dots, 1, (short) 1)));
        fails(InvalidTopicException.class, create(new NewTopic(dots.replace('.', '_'), 1, (short) 1)),
            "a name that differs only in . and _");
        String name = cluster.name("refused");
        fails(InvalidPartitionsException.class, create(new NewTopic(name, 0, (short) 1)), "0 partitions");
        fails(InvalidPartitionsException.class, create(new NewTopic(name, -3, (short) 1)), "-3 partitions");
        fails(InvalidReplicationFactorException.class, create(new NewTopic(name, 1, (short) 3)), "3 replicas");
        fails(InvalidReplicationFactorException.class, create(new NewTopic(name, 1, (short) 0)), "0 replicas");
        fails(InvalidConfigurationException.class,
            create(new NewTopic(name, 1, (short) 1).configs(Map.of("no.such.config", "1"))), "unknown config");
        fails(InvalidConfigurationException.class,
            create(new NewTopic(name, 1, (short) 1).configs(Map.of("retention.ms", "soon"))), "config not a number");
        fails(InvalidConfigurationException.class,
            create(new NewTopic(name, 1, (short) 1).configs(Map.of("cleanup.policy", "burn"))), "unknown policy");
        fails(InvalidConfigurationException.class,
            create(new NewTopic(name, 1, (short) 1).configs(Map.of("segment.bytes", "-1"))), "config out of range");
        that(!get(cluster.admin.listTopics().names()).contains(name), "nothing was created");
    }

    private KafkaFuture<Void> create(NewTopic topic) {
        return cluster.admin.createTopics(List.of(topic)).all();
    }

    private void topicsCreatedOneByOne() throws Exception {
        String good = cluster.name("good");
        var values = cluster.admin.createTopics(
            List.of(new NewTopic("bad name", 1, (short) 1), new NewTopic(good, 2, (short) 1))).values();
        get(values.get(good));
        fails(InvalidTopicException.class, values.get("bad name"), "the bad one");
        eventually("the good one is there", () -> describe(good).partitions().size() == 2);
    }

    private TopicDescription describe(String name) throws Exception {
        return get(cluster.admin.describeTopics(List.of(name)).allTopicNames()).get(name);
    }

    private void topicsDescribed() throws Exception {
        String name = cluster.topic("described", 3);
        TopicDescription byName = describe(name);
        equal(false, byName.isInternal(), "internal");
        equal(null, byName.authorizedOperations(), "operations not asked for");
        equal(List.of(0, 1, 2), byName.partitions().stream().map(p -> p.partition()).toList(), "partitions");
        for (var partition : byName.partitions()) {
            equal(node(), partition.leader().id(), "leader");
            equal(1, partition.replicas().size(), "replicas");
            equal(partition.replicas(), partition.isr(), "in-sync replicas");
        }
        TopicDescription byId = get(cluster.admin.describeTopics(
            TopicCollection.ofTopicIds(List.of(byName.topicId()))).allTopicIds()).get(byName.topicId());
        equal(name, byId.name(), "name found by id");
        equal(3, byId.partitions().size(), "partitions found by id");
        TopicDescription operations = get(cluster.admin.describeTopics(List.of(name),
            new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames()).get(name);
        that(!operations.authorizedOperations().isEmpty(), "operations asked for");
    }

    private void topicDescribedInPages() throws Exception {
        String first = cluster.topic("paged", 10);
        String second = cluster.topic("paged", 5);
        var all = get(cluster.admin.describeTopics(List.of(second, first),
            new DescribeTopicsOptions().partitionSizeLimitPerResponse(3)).allTopicNames());
        equal(IntStream.range(0, 10).boxed().toList(),
            all.get(first).partitions().stream().map(p -> p.partition()).toList(), "partitions of the first");
        equal(5, all.get(second).partitions().size(), "partitions of the second");
    }

    private void unknownTopics() throws Exception {
        String name = cluster.name("nowhere");
        String there = cluster.topic("there", 1);
        var values = cluster.admin.describeTopics(List.of(name, there)).topicNameValues();
        fails(UnknownTopicOrPartitionException.class, values.get(name), "unknown name");
        equal(1, get(values.get(there)).partitions().size(), "the known one in the same request");
        fails(UnknownTopicIdException.class, cluster.admin.describeTopics(
            TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds(), "unknown id");
        fails(InvalidTopicException.class, cluster.admin.describeTopics(List.of("a b")).allTopicNames(), "bad name");
        that(!get(cluster.admin.listTopics().names()).contains(name), "asking creates nothing");
    }

    private void topicsAreListed() throws Exception {
        String name = cluster.topic("listed", 1);
        // A first commit makes the offsets topic.
        get(cluster.admin.alterConsumerGroupOffsets(cluster.name("lister"),
            Map.of(new TopicPartition(name, 0), new org.apache.kafka.clients.consumer.OffsetAndMetadata(0))).all());
        var plain = get(cluster.admin.listTopics().namesToListings());
        that(plain.containsKey(name), "the topic is listed");
        equal(describe(name).topicId(), plain.get(name).topicId(), "with its id");
        that(!plain.containsKey("__consumer_offsets"), "internal topics are not listed unasked");
        var internal = get(cluster.admin.listTopics(new ListTopicsOptions().listInternal(true)).namesToListings());
        that(internal.get("__consumer_offsets").isInternal(), "internal topics are listed when asked for");
    }

    private void topicsDeleted() throws Exception {
        String byName = cluster.topic("deleted", 1);
        String byId = cluster.topic("deleted", 1);
        Uuid id = describe(byId).topicId();
        get(cluster.admin.deleteTopics(List.of(byName)).all());
        get(cluster.admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
        eventually("both are gone", () -> {
            Set<String> names = get(cluster.admin.listTopics().names());
            return !names.contains(byName) && !names.contains(byId);
        });
        fails(UnknownTopicOrPartitionException.class, cluster.admin.deleteTopics(List.of(byName)).all(), "twice");
        fails(UnknownTopicIdException.class,
            cluster.admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all(), "twice by id");
    }

    private void topicRecreated() throws Exception {
        String name = cluster.topic("again", 2);
        cluster.write(name, 0, 20);
        Uuid before = describe(name).topicId();
        get(cluster.admin.deleteTopics(List.of(name)).all());
        eventually("it is gone", () -> !get(cluster.admin.listTopics().names()).contains(name));
        cluster.create(name, 1);
        that(!describe(name).topicId().equals(before), "a new id");
        cluster.write(name, 0, 3);
        equal(3L, PartitionChecks.latest(cluster, new TopicPartition(name, 0)), "only new records");
    }

    private void partitionsAreAdded() throws Exception {
        String name = cluster.topic("grows", 1);
        get(cluster.admin.createPartitions(Map.of(name, NewPartitions.increaseTo(2)),
            new CreatePartitionsOptions().validateOnly(true)).all());
        equal(1, describe(name).partitions().size(), "validated only");
        get(cluster.admin.createPartitions(Map.of(name, NewPartitions.increaseTo(4))).all());
        eventually("four partitions", () -> describe(name).partitions().size() == 4);
        get(cluster.admin.createPartitions(Map.of(name,
            NewPartitions.increaseTo(5, List.of(List.of(node()))))).all());
        eventually("five partitions", () -> describe(name).partitions().size() == 5);
        cluster.write(name, 0, 200);
        Set<Integer> used = IntStream.range(0, 5).boxed()
            .filter(p -> latest(name, p) > 0).collect(Collectors.toSet());
        equal(Set.of(0, 1, 2, 3, 4), used, "partitions that were written to");
    }

    private long latest(String name, int partition) {
        try {
            return PartitionChecks.latest(cluster, new TopicPartition(name, partition));
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    private void partitionsRefused() throws Exception {
        String name = cluster.topic("fixed", 3);
        for (int count : List.of(3, 2, 0, -1)) {
            fails(InvalidPartitionsException.class,
                cluster.admin.createPartitions(Map.of(name, NewPartitions.increaseTo(count))).all(), "to " + count);
        }
        fails(InvalidReplicaAssignmentException.class, cluster.admin.createPartitions(
            Map.of(name, NewPartitions.increaseTo(4, List.of(List.of(node() + 77))))).all(), "unknown broker");
        fails(InvalidReplicaAssignmentException.class, cluster.admin.createPartitions(
            Map.of(name, NewPartitions.increaseTo(5, List.of(List.of(node()))))).all(), "too few assignments");
        fails(UnknownTopicOrPartitionException.class, cluster.admin.createPartitions(
            Map.of(cluster.name("nowhere"), NewPartitions.increaseTo(5))).all(), "unknown topic");
    }
}
