package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;
import org.apache.kafka.common.errors.UnsupportedAssignorException;

/** Members of groups: who owns what, and what their listeners are told; most for both protocols. */
final class GroupChecks {
    private final Cluster cluster;
    private final String protocol;

    private GroupChecks(Cluster cluster, String protocol) {
        this.cluster = cluster;
        this.protocol = protocol;
    }

    static void all(Cluster cluster, Checks checks) {
        for (String protocol : List.of("classic", "consumer")) {
            GroupChecks here = new GroupChecks(cluster, protocol);
            checks.add(protocol + "-members-come-and-go", here::membersComeAndGo);
            checks.add(protocol + "-listener-may-commit-what-it-gives-up", here::listenerOrder);
            checks.add(protocol + "-pattern-finds-new-topics", here::patternFindsNewTopics);
            checks.add(protocol + "-subscription-changes", here::subscriptionChanges);
            checks.add(protocol + "-topic-that-comes-later", here::topicThatComesLater);
            checks.add(protocol + "-partitions-that-come-later", here::partitionsThatComeLater);
            checks.add(protocol + "-topic-that-goes-away", here::topicThatGoesAway);
            checks.add(protocol + "-dead-member-is-noticed", here::deadMemberIsNoticed);
            checks.add(protocol + "-slow-member-loses-its-partitions", here::slowMember);
            checks.add(protocol + "-static-member-restarts-unnoticed", here::staticMemberRestarts);
            checks.add(protocol + "-static-member-leaves-for-good", here::staticMemberLeaves);
            checks.add(protocol + "-paused-partitions-stay-assigned", here::pausedPartitionsStay);
            checks.add(protocol + "-group-metadata", here::groupMetadata);
        }
        GroupChecks classic = new GroupChecks(cluster, "classic");
        for (String assignor : List.of("range", "roundrobin", "sticky", "cooperative-sticky")) {
            checks.add("classic-assignor-" + assignor, () -> classic.classicAssignor(assignor));
        }
        checks.add("classic-cooperative-moves-only-what-must-move", classic::cooperative);
        checks.add("classic-rolls-from-eager-to-cooperative", classic::eagerToCooperative);
        checks.add("classic-enforced-rebalance", classic::enforcedRebalance);
        checks.add("classic-protocols-without-a-common-one", classic::inconsistentProtocols);
        checks.add("classic-instance-id-taken-over", classic::instanceTakenOver);
        GroupChecks consumer = new GroupChecks(cluster, "consumer");
        checks.add("consumer-assignor-uniform", () -> consumer.serverAssignor("uniform"));
        checks.add("consumer-assignor-range", () -> consumer.serverAssignor("range"));
        checks.add("consumer-assignor-unknown", consumer::unknownAssignor);
        checks.add("consumer-regex-resolved-by-the-broker", consumer::brokerRegex);
        checks.add("consumer-regex-refused", consumer::regexRefused);
        checks.add("consumer-instance-id-in-use", consumer::instanceInUse);
        checks.add("consumer-moves-only-what-must-move", consumer::incremental);
        checks.add("events-are-an-internal-topic-that-can-be-read", consumer::events);
    }

    /** What a kohort broker keeps of its groups; Apache Kafka keeps nothing. */
    private void events() throws Exception {
        String events = "__kohort_group_events";
        String topic = cluster.topic("events", 2);
        String group = cluster.name("events");
        Member one = member(group, topic);
        Member.share(topic, 2, one);
        one.close();
        ListTopicsOptions internal = new ListTopicsOptions().listInternal(true);
        if (!get(cluster.admin.listTopics(internal).names()).contains(events)) {
            that(get(cluster.admin.describeCluster().nodes()).size() > 0, "a cluster without a history");
            return;
        }
        that(!get(cluster.admin.listTopics().names()).contains(events), events + " is internal");
        Set<String> kinds = new HashSet<>();
        try (KafkaConsumer<String, String> consumer = cluster.consumer()) {
            TopicPartition only = new TopicPartition(events, 0);
            consumer.assign(List.of(only));
            consumer.seekToBeginning(List.of(only));
            eventually("the events of " + group, () -> {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    Matcher kind = Pattern.compile("\"event\":\"(\\w+)\"").matcher(record.value());
                    if (record.key().equals(group) && kind.find()) kinds.add(kind.group(1));
                }
                return kinds.contains("emptied");
            });
        }
        that(kinds.containsAll(Set.of("rebalance_began", "target_computed", "stable")), "kinds: " + kinds);
    }

    private Member member(String group, String topic, String... pairs) {
        return Member.of(cluster, group, protocol, topic, pairs);
    }

    private void stable(String group, int members) throws Exception {
        eventually(group + " is stable with " + members + " members", () -> {
            var described = get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group);
            return described.groupState() == GroupState.STABLE && described.members().size() == members;
        });
    }

    /** All values 0..count were read by these members; those more than once are answered. */
    private static List<String> readAll(int count, Member... members) throws Exception {
        Set<String> expected = IntStream.range(0, count).mapToObj(Integer::toString).collect(Collectors.toSet());
        eventually("all " + count + " records are read", () -> {
            Set<String> missing = new HashSet<>(expected);
            for (Member member : members) missing.removeAll(member.values);
            if (!missing.isEmpty()) throw new AssertionError(missing.size() + " missing");
            return true;
        });
        List<String> twice = new ArrayList<>();
        for (Member member : members) twice.addAll(member.values);
        expected.forEach(twice::remove);
        return twice;
    }

    private void membersComeAndGo() throws Exception {
        String topic = cluster.topic("come-and-go", 6);
        String group = cluster.name("come-and-go");
        cluster.write(topic, 0, 300);
        Member one = member(group, topic);
        Member.share(topic, 6, one);
        Member two = member(group, topic);
        Member three = member(group, topic);
        Member.share(topic, 6, 2, one, two, three);
        cluster.write(topic, 300, 600);
        Member four = member(group, topic);
        Member.share(topic, 6, one, two, three, four);
        stable(group, 4);
        cluster.write(topic, 600, 900);
        two.close();
        Member.share(topic, 6, 2, one, three, four);
        cluster.write(topic, 900, 1200);
        equal(List.of(), readAll(1200, one, two, three, four), "records read twice");
        one.close();
        three.close();
        four.close();
        for (Member member : List.of(one, two, three, four)) equal(Set.of(), member.owned, "owned after closing");
    }

    private void listenerOrder() throws Exception {
        String topic = cluster.topic("gives-up", 4);
        String group = cluster.name("gives-up");
        cluster.write(topic, 0, 100);
        try (Member one = member(group, topic)) {
            Member.share(topic, 4, one);
            readAll(100, one);
            try (Member two = member(group, topic)) {
                Member.share(topic, 4, 2, one, two);
                cluster.write(topic, 100, 200);
                equal(List.of(), readAll(200, one, two), "records read twice");
                equal("assigned", one.kinds().get(0), "the first call");
                int revoked = one.kinds().indexOf("revoked");
                that(revoked > 0, "a revocation before what another gets, calls were " + one.kinds());
                that(!one.kinds().contains("lost"), "nothing is lost, calls were " + one.kinds());
                equal(Set.of(), two.events.stream().filter(event -> event.kind().equals("revoked"))
                    .flatMap(event -> event.partitions().stream()).collect(Collectors.toSet()), "taken from the second");
            }
            Member.share(topic, 4, 4, one);
        }
    }

    private void patternFindsNewTopics() throws Exception {
        String stem = cluster.name("pattern");
        String first = stem + "-a";
        String second = stem + "-b";
        cluster.create(first, 2);
        String group = cluster.name("pattern");
        try (Member one = Member.ofPattern(cluster, group, protocol, stem + "-.*")) {
            Member.share(first, 2, one);
            cluster.create(second, 2);
            cluster.create("x" + stem + "-c", 1);
            Member.share(second, 2, one);
            Member.share(first, 2, one);
            equal(4, one.owned.size(), "partitions of matching topics only");
            cluster.write(second, 0, 20);
            readAll(20, one);
        }
    }

    private void subscriptionChanges() throws Exception {
        String before = cluster.topic("before", 2);
        String after = cluster.topic("after", 2);
        String group = cluster.name("changes");
        cluster.write(before, 0, 10);
        cluster.write(after, 10, 20);
        try (Member one = member(group, before)) {
            Member.share(before, 2, one);
            eventually("all of the first topic", () -> one.values.size() == 10);
            one.subscribe(after);
            eventually("only the second topic", () -> one.owned.equals(
                Set.of(new TopicPartition(after, 0), new TopicPartition(after, 1))));
            readAll(20, one);
            one.subscribe();
            eventually("nothing after unsubscribing", () -> one.owned.isEmpty());
            eventually("the group is empty", () -> get(cluster.admin.describeConsumerGroups(List.of(group)).all())
                .get(group).groupState() == GroupState.EMPTY);
            one.subscribe(before, after);
            eventually("both topics", () -> one.owned.size() == 4);
        }
    }

    private void topicThatComesLater() throws Exception {
        String topic = cluster.name("later");
        String group = cluster.name("later");
        try (Member one = member(group, topic, "allow.auto.create.topics", "false")) {
            eventually("it is a member", () -> get(cluster.admin.describeConsumerGroups(List.of(group)).all())
                .get(group).members().size() == 1);
            cluster.create(topic, 3);
            cluster.write(topic, 0, 30);
            Member.share(topic, 3, one);
            readAll(30, one);
        }
    }

    private void partitionsThatComeLater() throws Exception {
        String topic = cluster.topic("more", 1);
        String group = cluster.name("more");
        try (Member one = member(group, topic); Member two = member(group, topic)) {
            eventually("one member owns the one partition", () -> one.owned.size() + two.owned.size() == 1);
            get(cluster.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all());
            Member.share(topic, 4, 2, one, two);
            cluster.write(topic, 0, 100);
            equal(List.of(), readAll(100, one, two), "records read twice");
        }
    }

    private void topicThatGoesAway() throws Exception {
        String stays = cluster.topic("stays", 2);
        String goes = cluster.topic("goes", 2);
        String group = cluster.name("goes");
        try (Member one = new Member(cluster, (consumer, listener) -> consumer.subscribe(List.of(stays, goes), listener),
                Member.properties(group, protocol, "allow.auto.create.topics", "false"))) {
            eventually("both topics", () -> one.owned.size() == 4);
            get(cluster.admin.deleteTopics(List.of(goes)).all());
            eventually("only the one that stays", () -> one.owned.equals(
                Set.of(new TopicPartition(stays, 0), new TopicPartition(stays, 1))));
            cluster.write(stays, 0, 20);
            readAll(20, one);
        }
    }

    private void deadMemberIsNoticed() throws Exception {
        String topic = cluster.topic("dies", 4);
        String group = cluster.name("dies");
        try (Member one = member(group, topic)) {
            // A static member that closes says nothing that would end its membership before its session does.
            Member two = member(group, topic, "group.instance.id", "two");
            Member.share(topic, 4, 2, one, two);
            two.vanish();
            cluster.write(topic, 0, 100);
            Member.share(topic, 4, 4, one);
            readAll(100, one, two);
            stable(group, 1);
        }
    }

    private void slowMember() throws Exception {
        String topic = cluster.topic("slow", 4);
        String group = cluster.name("slow");
        try (Member one = member(group, topic, "max.poll.interval.ms", "60000");
             Member two = member(group, topic, "max.poll.interval.ms", "3000")) {
            Member.share(topic, 4, 2, one, two);
            two.run(consumer -> {
                try {
                    // It works on a record until the others own everything.
                    Member.share(topic, 4, 4, one);
                } catch (Exception problem) {
                    throw new IllegalStateException(problem);
                }
            });
            eventually("it is told that it lost them", () -> two.kinds().contains("lost"));
            Member.share(topic, 4, 2, one, two);
        }
    }

    private void staticMemberRestarts() throws Exception {
        String topic = cluster.topic("static", 4);
        String group = cluster.name("static");
        try (Member one = member(group, topic, "group.instance.id", "one")) {
            Member two = member(group, topic, "group.instance.id", "two");
            Member.share(topic, 4, 2, one, two);
            stable(group, 2);
            Set<TopicPartition> before = two.owned;
            int calls = one.events.size();
            // A static member that closes stays a member until its session ends.
            two.close();
            try (Member again = member(group, topic, "group.instance.id", "two")) {
                eventually("the same partitions", () -> again.owned.equals(before));
                stable(group, 2);
                equal(calls, one.events.size(), "calls of the other member's listener, " + one.kinds());
                cluster.write(topic, 0, 100);
                equal(List.of(), readAll(100, one, two, again), "records read twice");
            }
        }
    }

    private void staticMemberLeaves() throws Exception {
        String topic = cluster.topic("static", 4);
        String group = cluster.name("static");
        try (Member one = member(group, topic, "group.instance.id", "one")) {
            Member two = member(group, topic, "group.instance.id", "two");
            Member.share(topic, 4, 2, one, two);
            two.leave();
            Member.share(topic, 4, 4, one);
            stable(group, 1);
        }
    }

    private void pausedPartitionsStay() throws Exception {
        String topic = cluster.topic("paused", 2);
        String group = cluster.name("paused");
        try (Member one = member(group, topic)) {
            Member.share(topic, 2, one);
            one.run(consumer -> consumer.pause(consumer.assignment()));
            cluster.write(topic, 0, 20);
            // Longer than a heartbeat interval of either protocol.
            Thread.sleep(2500);
            equal(0, one.values.size(), "records while paused");
            equal(2, one.owned.size(), "partitions while paused");
            one.run(consumer -> consumer.resume(consumer.paused()));
            readAll(20, one);
        }
    }

    private void groupMetadata() throws Exception {
        String topic = cluster.topic("meta", 1);
        String group = cluster.name("meta");
        try (Member one = member(group, topic, "group.instance.id", "i1")) {
            Member.share(topic, 1, one);
            AtomicReference<org.apache.kafka.clients.consumer.ConsumerGroupMetadata> known = new AtomicReference<>();
            one.run(consumer -> known.set(consumer.groupMetadata()));
            equal(group, known.get().groupId(), "group");
            equal("i1", known.get().groupInstanceId().get(), "instance");
            that(known.get().generationId() > 0, "generation or epoch " + known.get().generationId());
            String id = get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group)
                .members().iterator().next().consumerId();
            equal(id, known.get().memberId(), "member id");
        }
    }

    private void classicAssignor(String assignor) throws Exception {
        String topic = cluster.topic("by-" + assignor, 6);
        String group = cluster.name("by-" + assignor);
        String[] strategy = {"partition.assignment.strategy", Member.strategy(assignor)};
        try (Member one = member(group, topic, strategy); Member two = member(group, topic, strategy);
             Member three = member(group, topic, strategy)) {
            Member.share(topic, 6, 2, one, two, three);
            stable(group, 3);
            equal(assignor, get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group)
                .partitionAssignor(), "assignor of the group");
            cluster.write(topic, 0, 120);
            equal(List.of(), readAll(120, one, two, three), "records read twice");
        }
    }

    private void cooperative() throws Exception {
        movesOnlyWhatMustMove("partition.assignment.strategy", Member.strategy("cooperative-sticky"));
    }

    private void incremental() throws Exception {
        movesOnlyWhatMustMove("group.remote.assignor", "uniform");
    }

    private void movesOnlyWhatMustMove(String... pairs) throws Exception {
        String topic = cluster.topic("moves", 6);
        String group = cluster.name("moves");
        try (Member one = member(group, topic, pairs)) {
            Member.share(topic, 6, one);
            Set<TopicPartition> before = one.owned;
            try (Member two = member(group, topic, pairs)) {
                Member.share(topic, 6, 3, one, two);
                Set<TopicPartition> taken = one.events.stream().filter(event -> event.kind().equals("revoked"))
                    .flatMap(event -> event.partitions().stream()).collect(Collectors.toSet());
                equal(3, taken.size(), "partitions taken from the first member");
                Set<TopicPartition> kept = new HashSet<>(before);
                kept.removeAll(taken);
                equal(kept, one.owned, "partitions it never gave up");
                equal(taken, two.owned, "partitions of the second");
            }
        }
    }

    private void eagerToCooperative() throws Exception {
        // KIP-429: first all members learn the second strategy, then all forget the first.
        String topic = cluster.topic("rolls", 4);
        String group = cluster.name("rolls");
        String[] range = {"partition.assignment.strategy", Member.strategy("range")};
        String[] both = {"partition.assignment.strategy", Member.strategy("cooperative-sticky,range")};
        String[] sticky = {"partition.assignment.strategy", Member.strategy("cooperative-sticky")};
        List<Member> all = new ArrayList<>();
        Member[] live = {member(group, topic, range), member(group, topic, range)};
        all.addAll(List.of(live));
        Member.share(topic, 4, 2, live);
        int written = 0;
        for (String[] next : List.of(both, sticky)) {
            for (int i = 0; i < 2; i++) {
                cluster.write(topic, written, written += 50);
                live[i].close();
                live[i] = member(group, topic, next);
                all.add(live[i]);
                Member.share(topic, 4, 2, live);
            }
        }
        equal("cooperative-sticky", get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group)
            .partitionAssignor(), "assignor at the end");
        cluster.write(topic, written, written += 50);
        equal(List.of(), readAll(written, all.toArray(Member[]::new)), "records read twice");
        for (Member member : live) member.close();
    }

    private void enforcedRebalance() throws Exception {
        String topic = cluster.topic("enforced", 2);
        String group = cluster.name("enforced");
        try (Member one = member(group, topic); Member two = member(group, topic)) {
            Member.share(topic, 2, one, two);
            stable(group, 2);
            int calls = two.events.size();
            one.run(consumer -> consumer.enforceRebalance("for the test"));
            eventually("the other member rebalances too", () -> two.events.size() > calls);
            Member.share(topic, 2, one, two);
        }
    }

    private void inconsistentProtocols() throws Exception {
        String topic = cluster.topic("odd", 2);
        String group = cluster.name("odd");
        try (Member one = member(group, topic, "partition.assignment.strategy", Member.strategy("range"));
             Member two = member(group, topic, "partition.assignment.strategy", Member.strategy("roundrobin"))) {
            Member odd = failed(one, two);
            that(odd.failure instanceof InconsistentGroupProtocolException, "refused with " + odd.failure);
            Member.share(topic, 2, odd == one ? two : one);
        }
    }

    /** Waits until one of two members has failed, and answers it. */
    private static Member failed(Member one, Member two) throws Exception {
        eventually("one of the members fails", () -> one.failure != null || two.failure != null);
        return one.failure != null ? one : two;
    }

    private void instanceTakenOver() throws Exception {
        String topic = cluster.topic("taken", 2);
        String group = cluster.name("taken");
        try (Member one = member(group, topic, "group.instance.id", "same")) {
            Member.share(topic, 2, one);
            try (Member two = member(group, topic, "group.instance.id", "same")) {
                eventually("the first is fenced", () -> one.failure instanceof FencedInstanceIdException);
                Member.share(topic, 2, two);
            }
        }
    }

    private void instanceInUse() throws Exception {
        String topic = cluster.topic("in-use", 2);
        String group = cluster.name("in-use");
        try (Member one = member(group, topic, "group.instance.id", "same")) {
            Member.share(topic, 2, one);
            try (Member two = member(group, topic, "group.instance.id", "same")) {
                eventually("the second is refused", () -> two.failure instanceof UnreleasedInstanceIdException);
                Member.share(topic, 2, one);
            }
        }
    }

    private void serverAssignor(String assignor) throws Exception {
        String first = cluster.topic("by-" + assignor, 4);
        String second = cluster.topic("by-" + assignor, 4);
        String group = cluster.name("by-" + assignor);
        String[] properties = Member.properties(group, protocol, "group.remote.assignor", assignor);
        try (Member one = new Member(cluster, (c, l) -> c.subscribe(List.of(first, second), l), properties);
             Member two = new Member(cluster, (c, l) -> c.subscribe(List.of(first, second), l), properties)) {
            eventually("each member owns four of the eight", () -> one.owned.size() == 4 && two.owned.size() == 4);
            stable(group, 2);
            equal(assignor, get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group)
                .partitionAssignor(), "assignor of the group");
            if (assignor.equals("range")) {
                for (Member member : List.of(one, two)) {
                    equal(numbers(member, first), numbers(member, second), "the same partitions of both topics");
                }
            }
        }
    }

    private static Set<Integer> numbers(Member member, String topic) {
        return member.owned.stream().filter(partition -> partition.topic().equals(topic))
            .map(TopicPartition::partition).collect(Collectors.toSet());
    }

    private void unknownAssignor() throws Exception {
        String topic = cluster.topic("odd", 1);
        try (Member one = member(cluster.name("odd"), topic, "group.remote.assignor", "no-such-assignor")) {
            eventually("it is refused", () -> one.failure instanceof UnsupportedAssignorException);
        }
    }

    private void brokerRegex() throws Exception {
        String stem = cluster.name("regex");
        cluster.create(stem + "-a", 2);
        cluster.create(stem + "-other", 2);
        String group = cluster.name("regex");
        try (Member one = new Member(cluster,
                (consumer, listener) -> consumer.subscribe(new SubscriptionPattern(stem + "-[a-c]"), listener),
                Member.properties(group, protocol))) {
            Member.share(stem + "-a", 2, one);
            cluster.create(stem + "-b", 3);
            cluster.create(stem + "-bb", 1);
            Member.share(stem + "-b", 3, one);
            equal(5, one.owned.size(), "partitions of topics that match as a whole");
            try (Member two = member(group, stem + "-b")) {
                // The regex and the names meet in one group.
                eventually("both own some", () -> !two.owned.isEmpty() && one.owned.size() + two.owned.size() == 5);
            }
            get(cluster.admin.deleteTopics(List.of(stem + "-b")).all());
            eventually("only what is left", () -> one.owned.size() == 2);
            // KAFKA-18916: the same name again is another topic. The broker assigns it; Java 4.4 does not take it up.
            cluster.create(stem + "-b", 1);
            eventually("the new topic is assigned", () -> get(cluster.admin.describeConsumerGroups(List.of(group)).all())
                .get(group).members().iterator().next().targetAssignment().get().topicPartitions()
                .contains(new TopicPartition(stem + "-b", 0)));
        }
    }

    private void regexRefused() throws Exception {
        try (Member one = new Member(cluster,
                (consumer, listener) -> consumer.subscribe(new SubscriptionPattern("(unclosed"), listener),
                Member.properties(cluster.name("regex"), protocol))) {
            eventually("it is refused", () -> one.failure instanceof InvalidRegularExpression);
        }
    }
}
