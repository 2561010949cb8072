package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.fails;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TimeoutException;

/** What an administrator asks of partitions: offsets, deletion of records, disks, producers. */
final class PartitionChecks {
    private final Cluster cluster;

    private PartitionChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        PartitionChecks here = new PartitionChecks(cluster);
        checks.add("offsets-are-listed", here::offsetsAreListed);
        checks.add("offsets-are-found-by-time", here::offsetsByTime);
        checks.add("offsets-of-unknown-partitions", here::unknownPartitions);
        checks.add("records-are-deleted", here::recordsAreDeleted);
        checks.add("records-to-delete-are-refused", here::deletionRefused);
        checks.add("log-dirs-are-described", here::logDirsAreDescribed);
        checks.add("producers-are-described", here::producersAreDescribed);
    }

    static ListOffsetsResultInfo offset(Cluster cluster, TopicPartition partition, OffsetSpec spec) throws Exception {
        return get(cluster.admin.listOffsets(Map.of(partition, spec)).partitionResult(partition));
    }

    static long latest(Cluster cluster, TopicPartition partition) throws Exception {
        return offset(cluster, partition, OffsetSpec.latest()).offset();
    }

    private TopicPartition filled(String stem, int records) throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic(stem, 1, "retention.ms", "-1"), 0);
        cluster.writeTo(partition, 0, records);
        return partition;
    }

    private void offsetsAreListed() throws Exception {
        TopicPartition partition = filled("offsets", 100);
        var earliest = offset(cluster, partition, OffsetSpec.earliest());
        equal(0L, earliest.offset(), "earliest");
        that(earliest.leaderEpoch().isPresent(), "a leader epoch");
        equal(100L, latest(cluster, partition), "latest");
        equal(100L, get(cluster.admin.listOffsets(Map.of(partition, OffsetSpec.latest()),
            new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).partitionResult(partition)).offset(), "committed");
        equal(0L, offset(cluster, partition, OffsetSpec.earliestLocal()).offset(), "earliest local");
        var newest = offset(cluster, partition, OffsetSpec.maxTimestamp());
        equal(99L, newest.offset(), "offset of the greatest timestamp");
        equal(100_000L, newest.timestamp(), "the greatest timestamp");
        TopicPartition empty = new TopicPartition(cluster.topic("empty", 1), 0);
        equal(0L, latest(cluster, empty), "latest of an empty partition");
        equal(-1L, offset(cluster, empty, OffsetSpec.maxTimestamp()).offset(), "no greatest timestamp when empty");
    }

    private void offsetsByTime() throws Exception {
        TopicPartition partition = filled("times", 100);
        equal(0L, offset(cluster, partition, OffsetSpec.forTimestamp(0)).offset(), "before the first");
        var middle = offset(cluster, partition, OffsetSpec.forTimestamp(49_500));
        equal(49L, middle.offset(), "between two");
        equal(50_000L, middle.timestamp(), "timestamp found");
        equal(99L, offset(cluster, partition, OffsetSpec.forTimestamp(100_000)).offset(), "exactly the last");
        equal(-1L, offset(cluster, partition, OffsetSpec.forTimestamp(100_001)).offset(), "after the last");
    }

    private void unknownPartitions() throws Exception {
        String topic = cluster.topic("narrow", 1);
        // The client takes a partition that is not there for one that is not there yet, and asks until its time is up.
        try (Admin admin = Admin.create(
            cluster.properties("default.api.timeout.ms", "2000", "request.timeout.ms", "1000"))) {
            TopicPartition none = new TopicPartition(topic, 7);
            fails(TimeoutException.class,
                admin.listOffsets(Map.of(none, OffsetSpec.latest())).partitionResult(none), "not there");
        }
    }

    private void recordsAreDeleted() throws Exception {
        TopicPartition partition = filled("shortened", 100);
        equal(40L, get(cluster.admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(40)))
            .lowWatermarks().get(partition)).lowWatermark(), "low watermark");
        equal(40L, offset(cluster, partition, OffsetSpec.earliest()).offset(), "earliest");
        equal(40L, offset(cluster, partition, OffsetSpec.forTimestamp(0)).offset(), "earliest by time");
        try (var consumer = cluster.consumer()) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 10);
            var records = consumer.poll(Duration.ofSeconds(20)).records(partition);
            equal(40L, records.get(0).offset(), "the first record that a reset to earliest finds");
        }
        equal(40L, get(cluster.admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(20)))
            .lowWatermarks().get(partition)).lowWatermark(), "deleting what is gone changes nothing");
        // -1 is the end.
        equal(100L, get(cluster.admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(-1)))
            .lowWatermarks().get(partition)).lowWatermark(), "low watermark at the end");
        equal(100L, offset(cluster, partition, OffsetSpec.earliest()).offset(), "earliest is the end");
        cluster.writeTo(partition, 100, 101);
        equal(101L, latest(cluster, partition), "offsets go on");
    }

    private void deletionRefused() throws Exception {
        TopicPartition partition = filled("kept", 10);
        fails(OffsetOutOfRangeException.class, cluster.admin.deleteRecords(
            Map.of(partition, RecordsToDelete.beforeOffset(11))).all(), "beyond the end");
        equal(0L, offset(cluster, partition, OffsetSpec.earliest()).offset(), "nothing was deleted");
    }

    private void logDirsAreDescribed() throws Exception {
        TopicPartition partition = filled("sized", 500);
        int node = get(cluster.admin.describeCluster().nodes()).iterator().next().id();
        var described = get(cluster.admin.describeLogDirs(List.of(node)).allDescriptions()).get(node);
        that(!described.isEmpty(), "at least one log dir");
        var dir = described.values().stream().filter(d -> d.replicaInfos().containsKey(partition)).findFirst();
        that(dir.isPresent(), "the partition is in one of them");
        equal(null, dir.get().error(), "error of the dir");
        long size = dir.get().replicaInfos().get(partition).size();
        that(size > 500 * 5, "the partition has a size, found " + size);
        equal(0L, dir.get().replicaInfos().get(partition).offsetLag(), "lag");
        that(dir.get().totalBytes().orElse(0) > 0 && dir.get().usableBytes().orElse(0) > 0, "size of the disk");
    }

    private void producersAreDescribed() throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("produced", 1), 0);
        try (var first = cluster.producer(); var second = cluster.producer()) {
            for (int i = 0; i < 10; i++) get(first.send(new ProducerRecord<>(partition.topic(), "a" + i)));
            for (int i = 0; i < 5; i++) get(second.send(new ProducerRecord<>(partition.topic(), "b" + i)));
        }
        eventually("two producers with their last sequences", () -> {
            var producers = get(cluster.admin.describeProducers(Set.of(partition)).partitionResult(partition))
                .activeProducers();
            return producers.size() == 2
                && producers.stream().map(p -> p.lastSequence()).sorted().toList().equals(List.of(4, 9))
                && producers.stream().allMatch(p -> p.producerEpoch() == 0 && p.producerId() >= 0
                    && p.lastTimestamp() > 0 && p.currentTransactionStartOffset().isEmpty())
                && producers.get(0).producerId() != producers.get(1).producerId();
        });
        TopicPartition none = new TopicPartition(partition.topic(), 9);
        try (Admin admin = Admin.create(
            cluster.properties("default.api.timeout.ms", "2000", "request.timeout.ms", "1000"))) {
            fails(TimeoutException.class, admin.describeProducers(Set.of(none)).partitionResult(none), "not there");
        }
    }
}
