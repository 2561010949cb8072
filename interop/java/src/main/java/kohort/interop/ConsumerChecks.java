package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.fails;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;

/** A consumer with partitions of its own choice: positions, offsets, fetching; in both protocols' implementations. */
final class ConsumerChecks {
    private final Cluster cluster;
    private final String protocol;

    private ConsumerChecks(Cluster cluster, String protocol) {
        this.cluster = cluster;
        this.protocol = protocol;
    }

    static void all(Cluster cluster, Checks checks) {
        for (String protocol : List.of("classic", "consumer")) {
            ConsumerChecks here = new ConsumerChecks(cluster, protocol);
            checks.add(protocol + "-consumer-seeks", here::seeks);
            checks.add(protocol + "-consumer-asks-for-offsets", here::asksForOffsets);
            checks.add(protocol + "-consumer-pauses-and-resumes", here::pauses);
            checks.add(protocol + "-consumer-beyond-the-log", here::beyondTheLog);
            checks.add(protocol + "-consumer-resets-by-duration", here::resetsByDuration);
            checks.add(protocol + "-consumer-validates-leader-epochs", here::leaderEpochs);
            checks.add(protocol + "-consumer-commits-without-subscribing", here::commitsByHand);
            checks.add(protocol + "-consumer-sees-metadata", here::metadata);
            checks.add(protocol + "-consumer-long-polls", here::longPolls);
            checks.add(protocol + "-consumer-reads-many-partitions", here::manyPartitions);
            checks.add(protocol + "-consumer-auto-commits", here::autoCommits);
        }
    }

    private KafkaConsumer<String, String> consumer(String... pairs) {
        List<String> all = new ArrayList<>(List.of("group.protocol", protocol));
        // The consumer implementation of the new protocol is chosen only by a consumer that has a group.
        if (!List.of(pairs).contains("group.id")) all.addAll(List.of("group.id", cluster.name("alone")));
        all.addAll(List.of(pairs));
        return cluster.consumer(all.toArray(String[]::new));
    }

    private TopicPartition filled(String stem, int records) throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic(stem, 1, "retention.ms", "-1"), 0);
        cluster.writeTo(partition, 0, records);
        return partition;
    }

    private static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
        var records = consumer.poll(Duration.ofSeconds(20));
        that(!records.isEmpty(), "a record within 20 s");
        return records.iterator().next();
    }

    private void seeks() throws Exception {
        TopicPartition partition = filled("seeks", 100);
        try (var consumer = consumer("max.poll.records", "10")) {
            consumer.assign(List.of(partition));
            equal(0L, next(consumer).offset(), "first record");
            equal(10L, consumer.position(partition), "position after ten");
            equal(OptionalLong.of(90), consumer.currentLag(partition), "lag");
            consumer.seek(partition, 77);
            equal(77L, consumer.position(partition), "position after a seek");
            equal("77", next(consumer).value(), "record after a seek");
            consumer.seekToBeginning(List.of(partition));
            equal(0L, consumer.position(partition), "the beginning");
            equal("0", next(consumer).value(), "record at the beginning");
            consumer.seekToEnd(List.of(partition));
            equal(100L, consumer.position(partition), "the end");
            that(consumer.poll(Duration.ofMillis(300)).isEmpty(), "nothing at the end");
            cluster.writeTo(partition, 100, 101);
            equal("100", next(consumer).value(), "what is written next");
        }
    }

    private void asksForOffsets() throws Exception {
        TopicPartition partition = filled("asks", 100);
        TopicPartition empty = new TopicPartition(cluster.topic("asks-empty", 1), 0);
        get(cluster.admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(5))).all());
        try (var consumer = consumer()) {
            equal(Map.of(partition, 5L, empty, 0L), consumer.beginningOffsets(List.of(partition, empty)), "beginnings");
            equal(Map.of(partition, 100L, empty, 0L), consumer.endOffsets(List.of(partition, empty)), "ends");
            var found = consumer.offsetsForTimes(Map.of(partition, 49_500L, empty, 0L));
            equal(49L, found.get(partition).offset(), "offset by time");
            equal(50_000L, found.get(partition).timestamp(), "timestamp found");
            that(found.get(partition).leaderEpoch().isPresent(), "with a leader epoch");
            equal(null, found.get(empty), "nothing in an empty partition");
            equal(null, consumer.offsetsForTimes(Map.of(partition, 1_000_000L)).get(partition), "nothing so late");
        }
    }

    private void pauses() throws Exception {
        String topic = cluster.topic("pauses", 2, "retention.ms", "-1");
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        cluster.writeTo(zero, 0, 10);
        cluster.writeTo(one, 0, 10);
        try (var consumer = consumer()) {
            consumer.assign(List.of(zero, one));
            consumer.pause(List.of(zero));
            equal(Set.of(zero), consumer.paused(), "paused");
            Set<TopicPartition> seen = new HashSet<>();
            long deadline = System.nanoTime() + 1_500_000_000L;
            int records = 0;
            while (System.nanoTime() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    seen.add(new TopicPartition(record.topic(), record.partition()));
                    records++;
                }
            }
            equal(Set.of(one), seen, "partitions read while one is paused");
            equal(10, records, "its records");
            consumer.resume(List.of(zero));
            equal(0, next(consumer).partition(), "the resumed partition");
        }
    }

    private void beyondTheLog() throws Exception {
        TopicPartition partition = filled("beyond", 50);
        get(cluster.admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(20))).all());
        try (var consumer = consumer("auto.offset.reset", "none")) {
            consumer.assign(List.of(partition));
            fails(NoOffsetForPartitionException.class, () -> consumer.poll(Duration.ofSeconds(10)), "no offset");
            for (long offset : List.of(5L, 51L)) {
                consumer.seek(partition, offset);
                fails(OffsetOutOfRangeException.class, () -> {
                    for (int i = 0; i < 20; i++) consumer.poll(Duration.ofMillis(500));
                    return null;
                }, "offset " + offset);
            }
        }
        try (var consumer = consumer("auto.offset.reset", "latest")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 5);
            that(consumer.poll(Duration.ofMillis(500)).isEmpty(), "nothing after a reset to the end");
            equal(50L, consumer.position(partition), "position after a reset to the end");
        }
        try (var consumer = consumer()) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 999);
            equal(20L, next(consumer).offset(), "the first record after a reset to the beginning");
        }
    }

    private void resetsByDuration() throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("duration", 1, "retention.ms", "-1"), 0);
        cluster.writeTo(partition, 0, 10);
        cluster.write(partition.topic(), 10, 12);
        try (var consumer = consumer("auto.offset.reset", "by_duration:PT1H")) {
            consumer.assign(List.of(partition));
            equal("10", next(consumer).value(), "the first record of the last hour");
        }
    }

    private void leaderEpochs() throws Exception {
        TopicPartition partition = filled("epochs", 100);
        try (var consumer = consumer("auto.offset.reset", "none")) {
            consumer.assign(List.of(partition));
            // A position with an epoch is checked with OffsetForLeaderEpoch before it is fetched from.
            consumer.seek(partition, new OffsetAndMetadata(30, Optional.of(0), ""));
            equal("30", next(consumer).value(), "a position that is valid");
            consumer.seek(partition, new OffsetAndMetadata(300, Optional.of(0), ""));
            try {
                for (int i = 0; i < 20; i++) consumer.poll(Duration.ofMillis(500));
                throw new AssertionError("a position beyond the end of its epoch is not noticed");
            } catch (LogTruncationException truncated) {
                equal(100L, truncated.divergentOffsets().get(partition).offset(), "where the log ends");
            }
        }
    }

    private void commitsByHand() throws Exception {
        TopicPartition partition = filled("by-hand", 20);
        String group = cluster.name("by-hand");
        OffsetAndMetadata offset = new OffsetAndMetadata(7, Optional.of(0), "note");
        try (var consumer = consumer("group.id", group)) {
            consumer.assign(List.of(partition));
            var before = consumer.committed(Set.of(partition));
            equal(null, before.get(partition), "nothing committed yet");
            consumer.commitSync(Map.of(partition, offset));
            equal(offset, consumer.committed(Set.of(partition)).get(partition), "committed");
            CompletableFuture<Void> done = new CompletableFuture<>();
            consumer.commitAsync(Map.of(partition, new OffsetAndMetadata(8)), (offsets, failure) -> {
                if (failure == null) done.complete(null); else done.completeExceptionally(failure);
            });
            for (int i = 0; i < 100 && !done.isDone(); i++) consumer.poll(Duration.ofMillis(50));
            get(done);
            equal(8L, consumer.committed(Set.of(partition)).get(partition).offset(), "committed without waiting");
        }
        try (var consumer = consumer("group.id", group)) {
            consumer.assign(List.of(partition));
            equal("8", next(consumer).value(), "the next consumer begins there");
        }
    }

    private void metadata() throws Exception {
        String topic = cluster.topic("seen", 3);
        try (var consumer = consumer("allow.auto.create.topics", "false")) {
            equal(3, consumer.partitionsFor(topic).size(), "partitions of a topic");
            equal(3, consumer.listTopics().get(topic).size(), "partitions in the list of topics");
            equal(true, consumer.partitionsFor(cluster.name("nowhere"), Duration.ofSeconds(5)).isEmpty(), "unknown");
            fails(InvalidTopicException.class, () -> consumer.partitionsFor("not a topic"), "bad name");
        }
    }

    private void longPolls() throws Exception {
        TopicPartition partition = filled("waits", 1);
        try (var consumer = consumer("fetch.max.wait.ms", "20000")) {
            consumer.assign(List.of(partition));
            next(consumer);
            // The fetch that waits is on its way before the record is written.
            that(consumer.poll(Duration.ofMillis(500)).isEmpty(), "nothing yet");
            long before = System.nanoTime();
            cluster.writeTo(partition, 1, 2);
            next(consumer);
            long waited_ms = (System.nanoTime() - before) / 1_000_000;
            that(waited_ms < 10_000, "a waiting fetch is answered when a record comes, not after " + waited_ms + " ms");
        }
        try (var consumer = consumer("fetch.min.bytes", "1000000", "fetch.max.wait.ms", "700")) {
            consumer.assign(List.of(partition));
            long before = System.nanoTime();
            next(consumer);
            long waited_ms = (System.nanoTime() - before) / 1_000_000;
            that(waited_ms >= 600, "too few bytes wait for fetch.max.wait.ms, answered after " + waited_ms + " ms");
        }
    }

    private void manyPartitions() throws Exception {
        String topic = cluster.topic("many", 40);
        cluster.write(topic, 0, 4000);
        try (var consumer = consumer("max.partition.fetch.bytes", "2000", "fetch.max.bytes", "10000")) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < 40; i++) all.add(new TopicPartition(topic, i));
            consumer.assign(all);
            Set<String> values = new HashSet<>();
            int records = 0;
            long deadline = System.nanoTime() + Checks.PATIENCE_MS * 1_000_000;
            while (records < 4000 && System.nanoTime() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    values.add(record.value());
                    records++;
                }
            }
            equal(4000, records, "records");
            equal(4000, values.size(), "different records");
        }
    }

    private void autoCommits() throws Exception {
        TopicPartition partition = filled("auto", 30);
        String group = cluster.name("auto");
        try (var consumer = consumer("group.id", group, "enable.auto.commit", "true",
            "auto.commit.interval.ms", "200")) {
            consumer.subscribe(List.of(partition.topic()));
            int records = 0;
            long deadline = System.nanoTime() + Checks.PATIENCE_MS * 1_000_000;
            while (records < 30 && System.nanoTime() < deadline) {
                records += consumer.poll(Duration.ofMillis(200)).count();
            }
            equal(30, records, "records");
            Checks.eventually("committed by itself", () -> {
                consumer.poll(Duration.ofMillis(50));
                return committed(group, partition) == 30;
            });
            cluster.writeTo(partition, 30, 33);
            int more = 0;
            while (more < 3 && System.nanoTime() < deadline) more += consumer.poll(Duration.ofMillis(200)).count();
        }
        equal(33L, committed(group, partition), "committed on closing");
    }

    private long committed(String group, TopicPartition partition) throws Exception {
        var offset = get(cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()).get(partition);
        return offset == null ? -1 : offset.offset();
    }
}
