package kohort.interop;

import static kohort.interop.Checks.eventually;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.WakeupException;

/** A consumer of a group on a thread of its own, which commits what it has read and remembers all that happens. */
final class Member implements AutoCloseable {
    /** One call of the rebalance listener. */
    record Event(String kind, Set<TopicPartition> partitions) { }

    final KafkaConsumer<String, String> consumer;
    /** Values delivered, in order, duplicates too. */
    final List<String> values = new CopyOnWriteArrayList<>();
    final List<Event> events = new CopyOnWriteArrayList<>();
    volatile Set<TopicPartition> owned = Set.of();
    volatile Throwable failure;
    private volatile boolean stopping = false;
    private boolean subscribed = true;
    private volatile GroupMembershipOperation leaving = GroupMembershipOperation.DEFAULT;
    /** Work that only the consumer's own thread may do. */
    private final java.util.concurrent.BlockingQueue<Runnable> errands = new java.util.concurrent.LinkedBlockingQueue<>();
    private final Map<TopicPartition, OffsetAndMetadata> finished = new HashMap<>();
    private final Thread thread;

    private final ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            change("assigned", partitions, true);
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
            change("revoked", partitions, false);
        }

        @Override public void onPartitionsLost(Collection<TopicPartition> partitions) {
            finished.keySet().removeAll(partitions);
            change("lost", partitions, false);
        }
    };

    /** Properties of a member of either protocol that rebalances fast; `pairs` come last and win. */
    static String[] properties(String group, String protocol, String... pairs) {
        List<String> all = new ArrayList<>(List.of("group.id", group, "group.protocol", protocol,
            "metadata.max.age.ms", "1000"));
        if (protocol.equals("classic")) {
            all.addAll(List.of("session.timeout.ms", "6000", "heartbeat.interval.ms", "300"));
        }
        all.addAll(List.of(pairs));
        return all.toArray(String[]::new);
    }

    /** The classes of classic assignors, by the names their protocols have on the wire. */
    static String strategy(String names) {
        List<String> classes = new ArrayList<>();
        for (String name : names.split(",")) {
            classes.add("org.apache.kafka.clients.consumer." + switch (name) {
                case "range" -> "RangeAssignor";
                case "roundrobin" -> "RoundRobinAssignor";
                case "sticky" -> "StickyAssignor";
                case "cooperative-sticky" -> "CooperativeStickyAssignor";
                default -> throw new IllegalArgumentException("no assignor " + name);
            });
        }
        return String.join(",", classes);
    }

    static Member of(Cluster cluster, String group, String protocol, String topic, String... pairs) {
        return new Member(cluster, (consumer, listener) -> consumer.subscribe(List.of(topic), listener),
            properties(group, protocol, pairs));
    }

    static Member ofPattern(Cluster cluster, String group, String protocol, String pattern, String... pairs) {
        return new Member(cluster, (consumer, listener) -> consumer.subscribe(Pattern.compile(pattern), listener),
            properties(group, protocol, pairs));
    }

    Member(Cluster cluster, java.util.function.BiConsumer<KafkaConsumer<String, String>, ConsumerRebalanceListener>
        subscribe, String... properties) {
        consumer = cluster.consumer(properties);
        subscribe.accept(consumer, listener);
        thread = new Thread(this::live, "member");
        thread.setDaemon(true);
        thread.start();
    }

    private void live() {
        try {
            while (!stopping) {
                for (Runnable errand = errands.poll(); errand != null; errand = errands.poll()) errand.run();
                if (!subscribed) {
                    Thread.sleep(20);
                    continue;
                }
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(record.value());
                    finished.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), ""));
                }
                commit();
            }
        } catch (WakeupException stop) {
            if (!stopping) failure = stop;
        } catch (Throwable problem) {
            failure = problem;
        } finally {
            try {
                consumer.close(CloseOptions.groupMembershipOperation(leaving).withTimeout(Duration.ofSeconds(15)));
            } catch (Throwable problem) {
                if (failure == null && !stopping) failure = problem;
            }
        }
    }

    private void commit() {
        if (finished.isEmpty()) return;
        try {
            consumer.commitSync(finished);
            finished.clear();
        } catch (RebalanceInProgressException | RetriableException later) {
            finished.keySet().retainAll(consumer.assignment());
        }
    }

    private void change(String kind, Collection<TopicPartition> partitions, boolean added) {
        events.add(new Event(kind, Set.copyOf(partitions)));
        Set<TopicPartition> now = new HashSet<>(owned);
        if (added) now.addAll(partitions); else now.removeAll(partitions);
        owned = Set.copyOf(now);
    }

    /** Runs on the member's thread, between two polls, and waits for it. */
    void run(Consumer<KafkaConsumer<String, String>> errand) throws Exception {
        var done = new java.util.concurrent.CompletableFuture<Void>();
        errands.add(() -> {
            try {
                errand.accept(consumer);
                done.complete(null);
            } catch (Throwable problem) {
                done.completeExceptionally(problem);
            }
        });
        Checks.get(done);
    }

    /** Changes the subscription; to nothing, when no topic is given. */
    void subscribe(String... topics) throws Exception {
        run(consumer -> {
            subscribed = topics.length > 0;
            if (subscribed) consumer.subscribe(List.of(topics), listener); else consumer.unsubscribe();
        });
    }

    List<String> kinds() {
        return events.stream().map(Event::kind).toList();
    }

    /** Waits until these members own all partitions of the topic, each partition once, and each member some. */
    static void share(String topic, int partitions, Member... members) throws Exception {
        share(topic, partitions, 1, members);
    }

    static void share(String topic, int partitions, int atLeast, Member... members) throws Exception {
        eventually(members.length + " members share " + partitions + " partitions of " + topic, 45_000, () -> {
            List<TopicPartition> all = new ArrayList<>();
            for (Member member : members) {
                if (member.failure != null) throw new AssertionError("a member failed", member.failure);
                List<TopicPartition> own = member.owned.stream().filter(p -> p.topic().equals(topic)).toList();
                if (own.size() < atLeast) throw new AssertionError("a member owns " + own);
                all.addAll(own);
            }
            return all.size() == partitions && Set.copyOf(all).size() == partitions;
        });
    }

    /** Goes away without leaving the group, as a process that died. */
    void vanish() throws InterruptedException {
        leaving = GroupMembershipOperation.REMAIN_IN_GROUP;
        close();
    }

    /** Leaves the group for good, a static member too. */
    void leave() throws InterruptedException {
        leaving = GroupMembershipOperation.LEAVE_GROUP;
        close();
    }

    @Override public void close() throws InterruptedException {
        stopping = true;
        thread.join(20_000);
        if (thread.isAlive()) throw new AssertionError("a member does not close within 20 s");
    }
}
