package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.fails;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.ClassicGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ClassicGroupState;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.OffsetMetadataTooLarge;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Groups and their offsets, as an administrator sees and changes them; most for both protocols. */
final class GroupAdminChecks {
    private final Cluster cluster;

    private GroupAdminChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        GroupAdminChecks here = new GroupAdminChecks(cluster);
        checks.add("groups-are-listed-by-state-type-and-protocol", here::groupsAreListed);
        checks.add("consumer-group-is-described", here::consumerGroupIsDescribed);
        checks.add("classic-group-is-described", here::classicGroupIsDescribed);
        checks.add("unknown-groups-are-not-described", here::unknownGroups);
        checks.add("offsets-set-by-an-administrator", here::offsetsSet);
        checks.add("offsets-of-several-groups-listed", here::offsetsOfSeveralGroups);
        for (String protocol : List.of("classic", "consumer")) {
            checks.add(protocol + "-live-group-refuses-offsets", () -> here.liveGroupRefuses(protocol));
            checks.add(protocol + "-group-offsets-are-deleted", () -> here.offsetsAreDeleted(protocol));
            checks.add(protocol + "-group-is-deleted", () -> here.groupIsDeleted(protocol));
            checks.add(protocol + "-static-member-is-removed", () -> here.staticMemberRemoved(protocol));
            checks.add(protocol + "-all-members-are-removed", () -> here.allMembersRemoved(protocol));
        }
    }

    private Set<String> listed(ListGroupsOptions options) throws Exception {
        return get(cluster.admin.listGroups(options).all()).stream()
            .map(GroupListing::groupId).collect(Collectors.toSet());
    }

    private void groupsAreListed() throws Exception {
        String topic = cluster.topic("listing", 2);
        String classic = cluster.name("classic");
        String consumer = cluster.name("consumer");
        String simple = cluster.name("simple");
        get(cluster.admin.alterConsumerGroupOffsets(simple,
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(0))).all());
        try (Member one = Member.of(cluster, classic, "classic", topic);
             Member two = Member.of(cluster, consumer, "consumer", topic)) {
            Member.share(topic, 2, one);
            Member.share(topic, 2, two);
            eventually("all are listed with their types and states", () -> {
                Map<String, GroupListing> groups = new HashMap<>();
                for (GroupListing group : get(cluster.admin.listGroups().all())) groups.put(group.groupId(), group);
                GroupListing first = groups.get(classic);
                GroupListing second = groups.get(consumer);
                GroupListing third = groups.get(simple);
                equal(Optional.of(GroupType.CLASSIC), first.type(), "type");
                equal("consumer", first.protocol(), "protocol type");
                equal(Optional.of(GroupState.STABLE), first.groupState(), "state");
                equal(Optional.of(GroupType.CONSUMER), second.type(), "type");
                equal("consumer", second.protocol(), "protocol type");
                equal(Optional.of(GroupState.STABLE), second.groupState(), "state");
                equal(Optional.of(GroupType.CLASSIC), third.type(), "type");
                equal("", third.protocol(), "protocol type");
                equal(Optional.of(GroupState.EMPTY), third.groupState(), "state");
                return third.isSimpleConsumerGroup() && !first.isSimpleConsumerGroup();
            });
            Set<String> mine = Set.of(classic, consumer, simple);
            listing(mine, new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC)), Set.of(classic, simple));
            listing(mine, new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER)), Set.of(consumer));
            listing(mine, new ListGroupsOptions().inGroupStates(Set.of(GroupState.STABLE)), Set.of(classic, consumer));
            listing(mine, new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY)), Set.of(simple));
            listing(mine, new ListGroupsOptions().inGroupStates(Set.of(GroupState.DEAD)), Set.of());
            listing(mine, new ListGroupsOptions().withProtocolTypes(Set.of("consumer")), Set.of(classic, consumer));
            listing(mine, new ListGroupsOptions().withProtocolTypes(Set.of("")), Set.of(simple));
            listing(mine, ListGroupsOptions.forConsumerGroups(), mine);
            listing(mine, new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC))
                .inGroupStates(Set.of(GroupState.STABLE)), Set.of(classic));
        }
    }

    private void listing(Set<String> mine, ListGroupsOptions options, Set<String> expected) throws Exception {
        Set<String> found = listed(options).stream().filter(mine::contains).collect(Collectors.toSet());
        equal(expected, found, "groups listed with states " + options.groupStates() + ", types " + options.types()
            + ", protocol types " + options.protocolTypes());
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group);
    }

    private void consumerGroupIsDescribed() throws Exception {
        String topic = cluster.topic("told", 4);
        String group = cluster.name("told");
        try (Member one = Member.of(cluster, group, "consumer", topic, "client.id", "first", "client.rack", "r1");
             Member two = Member.of(cluster, group, "consumer", topic, "client.id", "second",
                 "group.instance.id", "two")) {
            Member.share(topic, 4, one, two);
            eventually("the group is stable", () -> describe(group).groupState() == GroupState.STABLE);
            ConsumerGroupDescription told = describe(group);
            equal(GroupType.CONSUMER, told.type(), "type");
            equal("uniform", told.partitionAssignor(), "assignor");
            equal(told.groupEpoch(), told.targetAssignmentEpoch(), "epochs of a stable group");
            equal(2, told.members().size(), "members");
            equal(null, told.authorizedOperations(), "operations not asked for");
            equal(cluster.bootstrap, told.coordinator().host() + ":" + told.coordinator().port(), "coordinator");
            for (var member : told.members()) {
                boolean first = member.clientId().equals("first");
                that(!member.consumerId().isEmpty(), "a member id");
                equal(first ? Optional.empty() : Optional.of("two"), member.groupInstanceId(), "instance id");
                equal(first ? Optional.of("r1") : Optional.empty(), member.rackId().filter(r -> !r.isEmpty()), "rack");
                that(member.host().contains("127.0.0.1"), "host " + member.host());
                equal((first ? one : two).owned, member.assignment().topicPartitions(), "assignment");
                equal(member.assignment(), member.targetAssignment().get(), "target of a stable member");
                equal(told.groupEpoch(), member.memberEpoch(), "member epoch");
                equal(Optional.of(true), member.upgraded(), "a member of the consumer protocol");
            }
            var operations = get(cluster.admin.describeConsumerGroups(List.of(group),
                new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all()).get(group);
            that(!operations.authorizedOperations().isEmpty(), "operations asked for");
            fails(GroupIdNotFoundException.class,
                cluster.admin.describeClassicGroups(List.of(group)).describedGroups().get(group), "as a classic group");
        }
    }

    private void classicGroupIsDescribed() throws Exception {
        String topic = cluster.topic("said", 4);
        String group = cluster.name("said");
        try (Member one = Member.of(cluster, group, "classic", topic, "client.id", "first");
             Member two = Member.of(cluster, group, "classic", topic, "client.id", "second",
                 "group.instance.id", "two")) {
            Member.share(topic, 4, one, two);
            eventually("the group is stable", () -> describe(group).groupState() == GroupState.STABLE);
            ConsumerGroupDescription said = describe(group);
            equal(GroupType.CLASSIC, said.type(), "type");
            equal("range", said.partitionAssignor(), "assignor");
            equal(2, said.members().size(), "members");
            for (var member : said.members()) {
                boolean first = member.clientId().equals("first");
                equal(first ? Optional.empty() : Optional.of("two"), member.groupInstanceId(), "instance id");
                equal((first ? one : two).owned, member.assignment().topicPartitions(), "assignment");
            }
            ClassicGroupDescription classic =
                get(cluster.admin.describeClassicGroups(List.of(group)).describedGroups().get(group));
            equal("consumer", classic.protocol(), "protocol type");
            equal("range", classic.protocolData(), "protocol");
            equal(ClassicGroupState.STABLE, classic.state(), "state");
            equal(2, classic.members().size(), "members");
        }
    }

    private void unknownGroups() throws Exception {
        String group = cluster.name("nobody");
        fails(GroupIdNotFoundException.class, cluster.admin.describeConsumerGroups(List.of(group)).all(), "unknown");
        fails(GroupIdNotFoundException.class, cluster.admin.describeClassicGroups(List.of(group)).all(), "unknown");
        equal(Map.of(), offsets(group), "offsets of an unknown group");
        fails(GroupIdNotFoundException.class, cluster.admin.deleteConsumerGroups(List.of(group)).all(), "deleted");
        fails(GroupIdNotFoundException.class, cluster.admin.deleteConsumerGroupOffsets(group,
            Set.of(new TopicPartition(cluster.topic("nobodys", 1), 0))).all(), "its offsets deleted");
    }

    private Map<TopicPartition, OffsetAndMetadata> offsets(String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>(
            get(cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()));
        found.values().removeIf(java.util.Objects::isNull);
        return found;
    }

    private void offsetsSet() throws Exception {
        String topic = cluster.topic("set", 3);
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        TopicPartition two = new TopicPartition(topic, 2);
        String group = cluster.name("set");
        OffsetAndMetadata first = new OffsetAndMetadata(7, Optional.of(0), "by hand");
        get(cluster.admin.alterConsumerGroupOffsets(group, Map.of(zero, first, one, new OffsetAndMetadata(3))).all());
        equal(first, offsets(group).get(zero), "offset, leader epoch and metadata");
        equal(3L, offsets(group).get(one).offset(), "the other offset");
        equal(Set.of(zero, one), offsets(group).keySet(), "partitions with offsets");
        var asked = get(cluster.admin.listConsumerGroupOffsets(
            Map.of(group, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(one, two))),
            new ListConsumerGroupOffsetsOptions().requireStable(true)).all()).get(group);
        equal(3L, asked.get(one).offset(), "offset asked for by partition");
        equal(null, asked.get(two), "a partition without an offset");
        get(cluster.admin.alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(2))).all());
        equal(2L, offsets(group).get(zero).offset(), "changed");

        TopicPartition nowhere = new TopicPartition(cluster.name("nowhere"), 0);
        var mixed = cluster.admin.alterConsumerGroupOffsets(group,
            Map.of(nowhere, new OffsetAndMetadata(1), one, new OffsetAndMetadata(4)));
        fails(UnknownTopicOrPartitionException.class, mixed.partitionResult(nowhere), "a topic that is not there");
        get(mixed.partitionResult(one));
        equal(4L, offsets(group).get(one).offset(), "stored beside the refused one");
        fails(UnknownTopicOrPartitionException.class, cluster.admin.alterConsumerGroupOffsets(group,
            Map.of(new TopicPartition(topic, 9), new OffsetAndMetadata(1))).all(), "a partition that is not there");
        var large = cluster.admin.alterConsumerGroupOffsets(group, Map.of(
            zero, new OffsetAndMetadata(9, "m".repeat(4097)), one, new OffsetAndMetadata(9, "m".repeat(4096))));
        fails(OffsetMetadataTooLarge.class, large.partitionResult(zero), "4097 bytes of metadata");
        get(large.partitionResult(one));
        equal(2L, offsets(group).get(zero).offset(), "unchanged");
    }

    private void offsetsOfSeveralGroups() throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("several", 1), 0);
        List<String> groups = List.of(cluster.name("several"), cluster.name("several"), cluster.name("several"));
        for (int i = 0; i < 3; i++) {
            get(cluster.admin.alterConsumerGroupOffsets(groups.get(i),
                Map.of(partition, new OffsetAndMetadata(i))).all());
        }
        var found = get(cluster.admin.listConsumerGroupOffsets(groups.stream().collect(
            Collectors.toMap(group -> group, group -> new ListConsumerGroupOffsetsSpec()))).all());
        for (int i = 0; i < 3; i++) equal((long) i, found.get(groups.get(i)).get(partition).offset(), "group " + i);
    }

    private void liveGroupRefuses(String protocol) throws Exception {
        String topic = cluster.topic("live", 2);
        String group = cluster.name("live");
        cluster.write(topic, 0, 20);
        TopicPartition zero = new TopicPartition(topic, 0);
        try (Member member = Member.of(cluster, group, protocol, topic)) {
            Member.share(topic, 2, member);
            eventually("all read", () -> member.values.size() == 20);
            eventually("all committed",
                () -> offsets(group).values().stream().mapToLong(OffsetAndMetadata::offset).sum() == 20);
            long before = offsets(group).get(zero).offset();
            fails(UnknownMemberIdException.class, cluster.admin.alterConsumerGroupOffsets(group,
                Map.of(zero, new OffsetAndMetadata(0))).all(), "offsets of a live group");
            equal(before, offsets(group).get(zero).offset(), "the offset");
        }
        eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY);
        get(cluster.admin.alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(0))).all());
        equal(0L, offsets(group).get(zero).offset(), "the offset once the group is empty");
    }

    private void offsetsAreDeleted(String protocol) throws Exception {
        String topic = cluster.topic("subscribed", 1);
        String other = cluster.topic("abandoned", 2);
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition old = new TopicPartition(other, 0);
        TopicPartition kept = new TopicPartition(other, 1);
        String group = cluster.name("forgets");
        get(cluster.admin.alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(0),
            old, new OffsetAndMetadata(0), kept, new OffsetAndMetadata(0))).all());
        try (Member member = Member.of(cluster, group, protocol, topic)) {
            Member.share(topic, 1, member);
            var deleted = cluster.admin.deleteConsumerGroupOffsets(group, Set.of(zero, old));
            fails(GroupSubscribedToTopicException.class, deleted.partitionResult(zero), "a subscribed topic");
            get(deleted.partitionResult(old));
            equal(Set.of(zero, kept), offsets(group).keySet(), "offsets that are left");
        }
        eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY);
        get(cluster.admin.deleteConsumerGroupOffsets(group, Set.of(zero)).all());
        equal(Set.of(kept), offsets(group).keySet(), "offsets that are left");
        fails(UnknownTopicOrPartitionException.class, cluster.admin.deleteConsumerGroupOffsets(group,
            Set.of(new TopicPartition(cluster.name("nowhere"), 0))).all(), "a topic that is not there");
    }

    private void groupIsDeleted(String protocol) throws Exception {
        String topic = cluster.topic("doomed", 1);
        String group = cluster.name("doomed");
        cluster.write(topic, 0, 5);
        try (Member member = Member.of(cluster, group, protocol, topic)) {
            eventually("it has read", () -> member.values.size() == 5);
            fails(GroupNotEmptyException.class, cluster.admin.deleteConsumerGroups(List.of(group)).all(), "live");
        }
        eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY);
        that(!offsets(group).isEmpty(), "it has offsets");
        String unknown = cluster.name("nobody");
        var deleted = cluster.admin.deleteConsumerGroups(List.of(group, unknown)).deletedGroups();
        get(deleted.get(group));
        fails(GroupIdNotFoundException.class, deleted.get(unknown), "unknown group in the same request");
        that(!listed(new ListGroupsOptions()).contains(group), "it is not listed");
        equal(Map.of(), offsets(group), "its offsets are gone");
        fails(GroupIdNotFoundException.class, cluster.admin.deleteConsumerGroups(List.of(group)).all(), "twice");
    }

    private void staticMemberRemoved(String protocol) throws Exception {
        String topic = cluster.topic("removal", 2);
        String group = cluster.name("removal");
        try (Member one = Member.of(cluster, group, protocol, topic, "group.instance.id", "one");
             Member two = Member.of(cluster, group, protocol, topic, "group.instance.id", "two")) {
            Member.share(topic, 2, one, two);
            MemberToRemove three = new MemberToRemove("three");
            fails(UnknownMemberIdException.class, cluster.admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(Set.of(three))).memberResult(three), "an unknown instance");
            two.vanish();
            get(cluster.admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("two")))).all());
            Member.share(topic, 2, 2, one);
            equal(1, describe(group).members().size(), "members that are left");
        }
    }

    private void allMembersRemoved(String protocol) throws Exception {
        String topic = cluster.topic("emptied", 2);
        String group = cluster.name("emptied");
        Member one = Member.of(cluster, group, protocol, topic);
        Member two = Member.of(cluster, group, protocol, topic, "group.instance.id", "two");
        Member.share(topic, 2, one, two);
        one.vanish();
        two.vanish();
        get(cluster.admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all());
        eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY
            && describe(group).members().isEmpty());
    }
}
