package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;

/** A group changes its protocol while it works, member by member, there and back. */
final class MigrationChecks {
    private final Cluster cluster;

    private MigrationChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        MigrationChecks here = new MigrationChecks(cluster);
        for (String assignor : List.of("range", "cooperative-sticky")) {
            checks.add("migration-there-and-back-" + assignor, () -> here.thereAndBack(assignor, false));
            checks.add("migration-of-static-members-" + assignor, () -> here.thereAndBack(assignor, true));
        }
        checks.add("migration-of-an-empty-group", here::emptyGroup);
        checks.add("migration-keeps-a-mixed-group-sharing", here::mixedGroup);
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return get(cluster.admin.describeConsumerGroups(List.of(group)).all()).get(group);
    }

    private Member member(String group, String protocol, String topic, String assignor, boolean fixed, int i) {
        List<String> pairs = new ArrayList<>();
        if (protocol.equals("classic")) {
            pairs.addAll(List.of("partition.assignment.strategy", Member.strategy(assignor)));
        }
        if (fixed) pairs.addAll(List.of("group.instance.id", "instance-" + i));
        return Member.of(cluster, group, protocol, topic, pairs.toArray(String[]::new));
    }

    private void thereAndBack(String assignor, boolean fixed) throws Exception {
        String topic = cluster.topic("migrates", 6);
        String group = cluster.name("migrates");
        AtomicBoolean writing = new AtomicBoolean(true);
        AtomicInteger written = new AtomicInteger();
        Thread writer = new Thread(() -> {
            try (var producer = cluster.producer("linger.ms", "0")) {
                while (writing.get()) {
                    int next = written.get();
                    producer.send(new ProducerRecord<>(topic, "k" + next, Integer.toString(next))).get();
                    written.incrementAndGet();
                    Thread.sleep(5);
                }
            } catch (Exception stop) {
                throw new IllegalStateException(stop);
            }
        });
        writer.setDaemon(true);
        writer.start();
        List<Member> all = new ArrayList<>();
        Member[] live = new Member[3];
        for (int i = 0; i < 3; i++) all.add(live[i] = member(group, "classic", topic, assignor, fixed, i));
        try {
            Member.share(topic, 6, 2, live);
            equal(GroupType.CLASSIC, describe(group).type(), "type at first");
            for (String protocol : List.of("consumer", "classic")) {
                for (int i = 0; i < 3; i++) {
                    live[i].close();
                    all.add(live[i] = member(group, protocol, topic, assignor, fixed, i));
                    Member.share(topic, 6, 1, live);
                    GroupType expected = protocol.equals("consumer") || i < 2 ? GroupType.CONSUMER : GroupType.CLASSIC;
                    eventually("after " + (i + 1) + " of 3 to " + protocol + " the group is stable and of type "
                        + expected, () -> describe(group).type() == expected
                            && describe(group).groupState() == GroupState.STABLE
                            && describe(group).members().size() == 3);
                }
            }
            Member.share(topic, 6, 2, live);
        } finally {
            writing.set(false);
            writer.join(10_000);
        }
        int count = written.get();
        eventually("all records are read", () -> {
            Set<String> seen = new HashSet<>();
            for (Member member : all) seen.addAll(member.values);
            if (seen.size() != count) throw new AssertionError(seen.size() + " of " + count);
            return true;
        });
        int delivered = all.stream().mapToInt(member -> member.values.size()).sum();
        equal(count, delivered, "records delivered, none twice");
        for (Member member : live) member.leave();
        for (Member member : all) equal(null, member.failure, "failure of a member");
        long committed = get(cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
            .values().stream().mapToLong(offset -> offset.offset()).sum();
        equal((long) count, committed, "sum of the committed offsets");
    }

    private void emptyGroup() throws Exception {
        String topic = cluster.topic("empty", 2);
        String group = cluster.name("empty");
        int written = 0;
        for (String protocol : List.of("classic", "consumer", "classic", "consumer")) {
            cluster.write(topic, written, written += 20);
            try (Member member = Member.of(cluster, group, protocol, topic)) {
                eventually("the new records only, in " + protocol, () -> member.values.size() >= 20);
                equal(20, member.values.size(), "records of this turn");
                equal(protocol, describe(group).type().toString().toLowerCase(), "type");
            }
            eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY);
        }
    }

    private void mixedGroup() throws Exception {
        String topic = cluster.topic("mixed", 6);
        String group = cluster.name("mixed");
        try (Member classic = Member.of(cluster, group, "classic", topic)) {
            Member.share(topic, 6, classic);
            mixedWith(classic, topic, group);
        }
    }

    private void mixedWith(Member classic, String topic, String group) throws Exception {
        try (Member consumer = Member.of(cluster, group, "consumer", topic)) {
            Member.share(topic, 6, 3, classic, consumer);
            eventually("one of the members is still a classic one", () -> {
                var members = describe(group).members();
                return members.stream().filter(m -> m.upgraded().equals(Optional.of(false))).count() == 1
                    && members.stream().filter(m -> m.upgraded().equals(Optional.of(true))).count() == 1;
            });
            try (Member third = Member.of(cluster, group, "classic", topic)) {
                Member.share(topic, 6, 2, classic, consumer, third);
            }
            Member.share(topic, 6, 3, classic, consumer);
            cluster.write(topic, 0, 60);
            eventually("all is read once", () -> classic.values.size() + consumer.values.size() == 60);
            that(!classic.values.isEmpty() && !consumer.values.isEmpty(), "both read some");
        }
    }
}
