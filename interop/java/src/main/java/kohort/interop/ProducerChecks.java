package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.fails;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;

/** What a producer writes is what a consumer reads. */
final class ProducerChecks {
    private final Cluster cluster;

    private ProducerChecks(Cluster cluster) {
        this.cluster = cluster;
    }

    static void all(Cluster cluster, Checks checks) {
        ProducerChecks here = new ProducerChecks(cluster);
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            checks.add("records-through-" + compression, () -> here.recordsThrough(compression));
        }
        checks.add("compression-set-by-the-topic", here::compressionOfTheTopic);
        checks.add("headers-keys-and-values-of-every-shape", here::shapes);
        checks.add("timestamps-of-the-producer-and-of-the-log", here::timestamps);
        checks.add("acknowledgements-none-one-all", here::acknowledgements);
        checks.add("idempotent-producers-have-gapless-offsets", here::idempotent);
        checks.add("large-records-and-batches", here::large);
        checks.add("records-that-are-refused", here::refused);
        checks.add("topics-are-created-by-producing", here::autoCreation);
    }

    /** The first `count` records of a partition. */
    private List<ConsumerRecord<String, String>> read(TopicPartition partition, int count, String... pairs) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = cluster.consumer(pairs)) {
            consumer.assign(List.of(partition));
            long deadline = System.nanoTime() + Checks.PATIENCE_MS * 1_000_000;
            while (records.size() < count) {
                that(System.nanoTime() < deadline, "only " + records.size() + " of " + count + " records arrive");
                consumer.poll(Duration.ofMillis(500)).forEach(records::add);
            }
        }
        return records;
    }

    private void recordsThrough(String compression) throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("through-" + compression, 1), 0);
        int count = 3000;
        try (KafkaProducer<String, String> producer = cluster.producer("compression.type", compression)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(new ProducerRecord<>(partition.topic(), 0, "k" + i, "value " + i)));
            }
            producer.flush();
            for (int i = 0; i < count; i++) equal((long) i, get(sent.get(i)).offset(), "offset acknowledged");
        }
        var records = read(partition, count);
        for (int i = 0; i < count; i++) {
            equal((long) i, records.get(i).offset(), "offset");
            equal("k" + i, records.get(i).key(), "key");
            equal("value " + i, records.get(i).value(), "value");
        }
        // From the middle of a compressed batch.
        try (KafkaConsumer<String, String> consumer = cluster.consumer()) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 1501);
            equal(1501L, consumer.poll(Duration.ofSeconds(20)).iterator().next().offset(), "offset after a seek");
        }
    }

    private void compressionOfTheTopic() throws Exception {
        TopicPartition partition =
            new TopicPartition(cluster.topic("recompressed", 1, "compression.type", "lz4"), 0);
        cluster.write(partition.topic(), 0, 100);
        var records = read(partition, 100);
        for (int i = 0; i < 100; i++) equal(Integer.toString(i), records.get(i).value(), "value");
    }

    private void shapes() throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("shapes", 1), 0);
        String topic = partition.topic();
        try (KafkaProducer<String, String> producer = cluster.producer()) {
            ProducerRecord<String, String> headers = new ProducerRecord<>(topic, "key", "value");
            headers.headers().add("twice", "first".getBytes(StandardCharsets.UTF_8));
            headers.headers().add("null", null);
            headers.headers().add("twice", "second".getBytes(StandardCharsets.UTF_8));
            headers.headers().add("", new byte[0]);
            headers.headers().add("ключ", new byte[] {0, -1, 127});
            get(producer.send(headers));
            get(producer.send(new ProducerRecord<>(topic, null, "no key")));
            get(producer.send(new ProducerRecord<>(topic, "no value", null)));
            get(producer.send(new ProducerRecord<>(topic, "", "")));
            get(producer.send(new ProducerRecord<>(topic, null, null)));
            get(producer.send(new ProducerRecord<>(topic, "ü", "日本 \u0000")));
        }
        var records = read(partition, 6);
        List<String> names = new ArrayList<>();
        List<String> values = new ArrayList<>();
        for (Header header : records.get(0).headers()) {
            names.add(header.key());
            values.add(Arrays.toString(header.value()));
        }
        equal(List.of("twice", "null", "twice", "", "ключ"), names, "header names in order");
        equal(List.of(Arrays.toString("first".getBytes()), "null", Arrays.toString("second".getBytes()), "[]",
            "[0, -1, 127]"), values, "header values in order");
        equal(null, records.get(1).key(), "null key");
        equal(null, records.get(2).value(), "null value");
        equal("", records.get(3).key(), "empty key");
        equal("", records.get(3).value(), "empty value");
        equal(null, records.get(4).key(), "both null");
        equal(null, records.get(4).value(), "both null");
        equal("ü", records.get(5).key(), "key beyond ASCII");
        equal("日本 \u0000", records.get(5).value(), "value beyond ASCII");
        that(records.get(5).leaderEpoch().isPresent(), "records carry a leader epoch");
    }

    private void timestamps() throws Exception {
        TopicPartition created = new TopicPartition(cluster.topic("created", 1, "retention.ms", "-1"), 0);
        TopicPartition appended = new TopicPartition(
            cluster.topic("appended", 1, "message.timestamp.type", "LogAppendTime"), 0);
        long before = System.currentTimeMillis();
        try (KafkaProducer<String, String> producer = cluster.producer()) {
            var one = get(producer.send(new ProducerRecord<>(created.topic(), 0, 12345L, "k", "v")));
            equal(12345L, one.timestamp(), "timestamp acknowledged");
            var two = get(producer.send(new ProducerRecord<>(appended.topic(), 0, 12345L, "k", "v")));
            that(two.timestamp() >= before, "time of the append acknowledged, found " + two.timestamp());
            get(producer.send(new ProducerRecord<>(created.topic(), 0, 9L, "k", "earlier")));
        }
        var kept = read(created, 2);
        equal(12345L, kept.get(0).timestamp(), "timestamp");
        equal(TimestampType.CREATE_TIME, kept.get(0).timestampType(), "type");
        equal(9L, kept.get(1).timestamp(), "an earlier timestamp after a later one");
        var stamped = read(appended, 1).get(0);
        that(stamped.timestamp() >= before && stamped.timestamp() <= System.currentTimeMillis(), "time of the append");
        equal(TimestampType.LOG_APPEND_TIME, stamped.timestampType(), "type");
    }

    private void acknowledgements() throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("acks", 1), 0);
        for (String acks : List.of("0", "1", "all")) {
            try (KafkaProducer<String, String> producer =
                     cluster.producer("acks", acks, "enable.idempotence", "false")) {
                var answer = get(producer.send(new ProducerRecord<>(partition.topic(), "acks", acks)));
                equal(acks.equals("0") ? -1L : acks.equals("1") ? 1L : 2L, answer.offset(), "offset of acks=" + acks);
            }
        }
        equal(List.of("0", "1", "all"), read(partition, 3).stream().map(ConsumerRecord::value).toList(), "records");
    }

    private void idempotent() throws Exception {
        TopicPartition partition = new TopicPartition(cluster.topic("idempotent", 1), 0);
        try (KafkaProducer<String, String> one = cluster.producer("batch.size", "200", "linger.ms", "0");
             KafkaProducer<String, String> two = cluster.producer("batch.size", "200", "linger.ms", "0")) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                sent.add((i % 2 == 0 ? one : two).send(
                    new ProducerRecord<>(partition.topic(), 0, i % 2 == 0 ? "one" : "two", Integer.toString(i))));
            }
            for (Future<RecordMetadata> each : sent) get(each);
        }
        int[] last = {-1, -1};
        for (var record : read(partition, 1000)) {
            int which = record.key().equals("one") ? 0 : 1;
            int value = Integer.parseInt(record.value());
            that(value > last[which], "records of one producer stay in order");
            last[which] = value;
        }
        equal(1000L, PartitionChecks.latest(cluster, partition), "the end");
    }

    private void large() throws Exception {
        TopicPartition partition =
            new TopicPartition(cluster.topic("large", 1, "max.message.bytes", "12000000"), 0);
        String megabyte = "x".repeat(1_000_000);
        try (KafkaProducer<String, String> producer = cluster.producer("max.request.size", "20000000",
            "buffer.memory", "40000000", "batch.size", "5000000", "linger.ms", "50")) {
            get(producer.send(new ProducerRecord<>(partition.topic(), 0, "one", megabyte.repeat(8))));
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 4; i++) sent.add(producer.send(
                new ProducerRecord<>(partition.topic(), 0, "batch", megabyte)));
            for (Future<RecordMetadata> each : sent) get(each);
        }
        // However small a consumer's limits, it gets on: the first batch is always returned whole.
        var records = read(partition, 5, "fetch.max.bytes", "1024", "max.partition.fetch.bytes", "1024");
        equal(8_000_000, records.get(0).value().length(), "size of the large record");
        for (int i = 1; i < 5; i++) equal(1_000_000, records.get(i).value().length(), "size in the large batch");
    }

    private void refused() throws Exception {
        TopicPartition partition =
            new TopicPartition(cluster.topic("strict", 1, "max.message.bytes", "2000"), 0);
        TopicPartition compacted =
            new TopicPartition(cluster.topic("compacted", 1, "cleanup.policy", "compact"), 0);
        try (KafkaProducer<String, String> producer = cluster.producer("max.block.ms", "3000")) {
            fails(RecordTooLargeException.class, () -> get(producer.send(
                new ProducerRecord<>(partition.topic(), "k", "x".repeat(3000)))), "larger than the topic allows");
            fails(org.apache.kafka.common.InvalidRecordException.class, () -> get(producer.send(
                new ProducerRecord<>(compacted.topic(), null, "no key"))), "no key in a compacted topic");
            fails(InvalidTimestampException.class, () -> get(producer.send(new ProducerRecord<>(partition.topic(), 0,
                System.currentTimeMillis() + 100_000_000, "k", "v"))), "a day in the future");
            fails(InvalidTopicException.class, () -> get(producer.send(
                new ProducerRecord<>("not a topic", "k", "v"))), "bad name");
            fails(TimeoutException.class, () -> get(producer.send(
                new ProducerRecord<>(partition.topic(), 5, "k", "v"))), "a partition that is not there");
            get(producer.send(new ProducerRecord<>(partition.topic(), "k", "good")));
            get(producer.send(new ProducerRecord<>(compacted.topic(), "k", null)));
        }
        equal("good", read(partition, 1).get(0).value(), "only the good one is there");
        equal(1L, PartitionChecks.latest(cluster, partition), "the end");
    }

    private void autoCreation() throws Exception {
        String name = cluster.name("by-producing");
        try (KafkaProducer<String, String> producer = cluster.producer()) {
            get(producer.send(new ProducerRecord<>(name, "k", "v")));
        }
        that(get(cluster.admin.listTopics().names()).contains(name), "the topic is there");
        String shy = cluster.name("by-consuming");
        try (KafkaConsumer<String, String> consumer = cluster.consumer("allow.auto.create.topics", "false")) {
            consumer.assign(List.of(new TopicPartition(shy, 0)));
            consumer.poll(Duration.ofMillis(500));
        }
        that(!get(cluster.admin.listTopics().names()).contains(shy), "a consumer that may not create does not");
    }
}
