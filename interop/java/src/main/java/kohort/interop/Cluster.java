package kohort.interop;

import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The broker under test, and the clients that checks open on it. */
final class Cluster implements AutoCloseable {
    final String bootstrap;
    final Admin admin;
    /** Makes names new on a broker that has seen these checks before. */
    private final String run = Long.toString(System.currentTimeMillis() % 100_000_000, 36);
    private final AtomicInteger names = new AtomicInteger();

    Cluster(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(properties());
    }

    /** Client properties: the address, then the given names and values. */
    Properties properties(String... pairs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("default.api.timeout.ms", "30000");
        properties.put("request.timeout.ms", "20000");
        for (int i = 0; i < pairs.length; i += 2) properties.put(pairs[i], pairs[i + 1]);
        return properties;
    }

    String name(String stem) {
        return stem + "-" + run + "-" + names.incrementAndGet();
    }

    /** Creates a topic with a new name and waits until it can be written to. */
    String topic(String stem, int partitions, String... configs) throws Exception {
        String name = name(stem);
        create(name, partitions, configs);
        return name;
    }

    void create(String name, int partitions, String... configs) throws Exception {
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < configs.length; i += 2) map.put(configs[i], configs[i + 1]);
        get(admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(map))).all());
        eventually("topic " + name + " has leaders", () -> get(admin.describeTopics(List.of(name)).allTopicNames())
            .get(name).partitions().stream().allMatch(partition -> partition.leader() != null));
        // Kafka tells of a leader a moment before that leader takes records; one that answers here does.
        Map<TopicPartition, OffsetSpec> all = new HashMap<>();
        for (int i = 0; i < partitions; i++) all.put(new TopicPartition(name, i), OffsetSpec.latest());
        get(admin.listOffsets(all).all());
    }

    KafkaProducer<String, String> producer(String... pairs) {
        Properties properties = properties("linger.ms", "5");
        for (int i = 0; i < pairs.length; i += 2) properties.put(pairs[i], pairs[i + 1]);
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    /** A consumer without a group, unless the pairs name one; reads from the beginning, commits only when told. */
    KafkaConsumer<String, String> consumer(String... pairs) {
        Properties properties = properties("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        for (int i = 0; i < pairs.length; i += 2) properties.put(pairs[i], pairs[i + 1]);
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    /** Writes values {@code from..to} with keys {@code k<value>} and waits for all acknowledgements. */
    void write(String topic, int from, int to) throws Exception {
        try (KafkaProducer<String, String> producer = producer()) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = from; i < to; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, "k" + i, Integer.toString(i))));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) get(one);
        }
    }

    /** As {@link #write}, into one partition, with timestamp {@code 1000 * (value + 1)} each. */
    void writeTo(TopicPartition partition, int from, int to) throws Exception {
        try (KafkaProducer<String, String> producer = producer()) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = from; i < to; i++) {
                sent.add(producer.send(new ProducerRecord<>(partition.topic(), partition.partition(),
                    1000L * (i + 1), "k" + i, Integer.toString(i))));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) get(one);
        }
    }

    @Override public void close() {
        admin.close();
    }
}
