package kohort.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;

/** The Java client as one agent among those of other languages; what it must do and say is in interop/README.md. */
public final class Agent {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int VALUE_BYTES = 100;

    public static void main(String[] words) throws Exception {
        Arguments arguments = new Arguments(words);
        switch (arguments.verb) {
            case "version" -> version();
            case "create" -> create(arguments);
            case "grow" -> grow(arguments);
            case "rewind" -> rewind(arguments);
            case "produce" -> produce(arguments);
            case "consume" -> new Agent(arguments).consume();
            case "describe" -> describe(arguments);
            default -> throw new IllegalArgumentException("no command " + arguments.verb);
        }
    }

    private static void version() {
        Map<String, Object> line = event("version");
        line.put("client", "kafka-clients " + AppInfoParser.getVersion());
        line.put("protocols", List.of("classic", "consumer"));
        line.put("compressions", List.of("none", "gzip", "snappy", "lz4", "zstd"));
        line.put("idempotent", true);
        line.put("static_members", true);
        say(line);
    }

    private static Properties base(Arguments arguments) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments.text("bootstrap"));
        properties.put("client.id", "java");
        properties.put("reconnect.backoff.max.ms", "500");
        return properties;
    }

    private static void create(Arguments arguments) throws Exception {
        String name = arguments.text("topic");
        try (Admin admin = Admin.create(base(arguments))) {
            admin.createTopics(List.of(new NewTopic(name, arguments.number("partitions"), (short) 1))).all().get();
            Checks.eventually("the topic has leaders", () -> admin.describeTopics(List.of(name)).allTopicNames().get()
                .get(name).partitions().stream().allMatch(partition -> partition.leader() != null));
        }
        say(event("created"));
    }

    private static void grow(Arguments arguments) throws Exception {
        String name = arguments.text("topic");
        int count = arguments.number("partitions");
        try (Admin admin = Admin.create(base(arguments))) {
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(count))).all().get();
            Checks.eventually("all partitions have leaders", () -> admin.describeTopics(List.of(name)).allTopicNames().get()
                .get(name).partitions().stream().filter(partition -> partition.leader() != null).count() == count);
        }
        say(event("created"));
    }

    /** Rewinds a live group of kohort's: by an administrator's commit whose metadata says so. */
    private static void rewind(Arguments arguments) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> goals = new HashMap<>();
        for (String pair : arguments.text("offsets").split(",")) {
            // PARTITION:OFFSET, or TOPIC/PARTITION:OFFSET for another topic.
            String[] named = pair.split("/");
            String topic = named.length > 1 ? named[0] : arguments.text("topic");
            String[] parts = named[named.length - 1].split(":");
            goals.put(new TopicPartition(topic, Integer.parseInt(parts[0])),
                new OffsetAndMetadata(Long.parseLong(parts[1]), Optional.empty(), "kohort:rewind"));
        }
        try (Admin admin = Admin.create(base(arguments))) {
            admin.alterConsumerGroupOffsets(arguments.text("group"), goals).all().get();
        }
        say(event("rewound"));
    }

    private static void produce(Arguments arguments) throws Exception {
        Properties properties = base(arguments);
        properties.put("acks", "all");
        properties.put("enable.idempotence", "true");
        properties.put("compression.type", arguments.text("compression"));
        properties.put("linger.ms", "5");
        int start = arguments.number("start");
        int count = arguments.number("count");
        long rate = Long.parseLong(arguments.text("rate", "0"));
        long began = System.nanoTime();
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> acknowledged = new ArrayList<>(count);
            for (int i = start; i < start + count; i++) {
                if (rate > 0) {
                    long early_ns = began + (i - start) * 1_000_000_000L / rate - System.nanoTime();
                    if (early_ns > 0) TimeUnit.NANOSECONDS.sleep(early_ns);
                }
                String value = Integer.toString(i);
                acknowledged.add(producer.send(new ProducerRecord<>(arguments.text("topic"), "k" + i,
                    value + " ".repeat(VALUE_BYTES - value.length()))));
            }
            producer.flush();
            for (Future<RecordMetadata> one : acknowledged) one.get();
        }
        Map<String, Object> line = event("produced");
        line.put("count", count);
        say(line);
    }

    private static void describe(Arguments arguments) throws Exception {
        String group = arguments.text("group");
        String topic = arguments.text("topic");
        try (Admin admin = Admin.create(base(arguments))) {
            ConsumerGroupDescription described =
                admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            List<Map<String, Object>> members = new ArrayList<>();
            for (var member : described.members()) {
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("id", member.consumerId());
                one.put("instance_id", member.groupInstanceId().orElse(null));
                one.put("partitions", member.assignment().topicPartitions().stream()
                    .filter(partition -> partition.topic().equals(topic))
                    .map(TopicPartition::partition).sorted().toList());
                members.add(one);
            }
            Map<Integer, Long> committed = new TreeMap<>();
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
                if (partition.topic().equals(topic) && offset != null) {
                    committed.put(partition.partition(), offset.offset());
                }
            });
            Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
            for (var partition : admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
                asked.put(new TopicPartition(topic, partition.partition()), OffsetSpec.latest());
            }
            Map<Integer, Long> ends = new TreeMap<>();
            admin.listOffsets(asked).all().get()
                .forEach((partition, end) -> ends.put(partition.partition(), end.offset()));
            Map<String, Object> line = event("group");
            line.put("state", described.groupState().toString());
            line.put("members", members);
            line.put("committed", pairs(committed));
            line.put("ends", pairs(ends));
            say(line);
        }
    }

    private final String topic;
    private final KafkaConsumer<String, String> consumer;
    /** Given to the application and not yet committed. */
    private final Map<TopicPartition, OffsetAndMetadata> finished = new HashMap<>();
    private volatile boolean stopping = false;
    /** How long not to let go of what is revoked first; the member commits it again after that. */
    private int hold_ms;
    private final CountDownLatch closed = new CountDownLatch(1);

    private Agent(Arguments arguments) {
        topic = arguments.text("topic");
        String protocol = arguments.text("protocol");
        Properties properties = base(arguments);
        properties.put("group.id", arguments.text("group"));
        properties.put("group.protocol", protocol);
        properties.put("enable.auto.commit", "false");
        String reset = arguments.text("reset", "earliest");
        properties.put("auto.offset.reset", reset);
        // How soon it notices new partitions by itself.
        if (reset.equals("latest")) properties.put("metadata.max.age.ms", "3000");
        String assignor = arguments.text("assignor", null);
        if (protocol.equals("classic")) {
            properties.put("session.timeout.ms", "6000");
            properties.put("heartbeat.interval.ms", "1000");
            if (assignor != null) properties.put("partition.assignment.strategy", Member.strategy(assignor));
        } else if (assignor != null) {
            properties.put("group.remote.assignor", assignor);
        }
        hold_ms = Integer.parseInt(arguments.text("hold-ms", "0"));
        String limit_ms = arguments.text("max-poll-ms", null);
        if (limit_ms != null) properties.put("max.poll.interval.ms", limit_ms);
        String instance = arguments.text("instance-id", null);
        if (instance != null) properties.put("group.instance.id", instance);
        consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private void consume() {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            consumer.wakeup();
            try {
                // A clean stop is a success, which the JVM's own status of a signal is not.
                Runtime.getRuntime().halt(closed.await(30, TimeUnit.SECONDS) ? 0 : 1);
            } catch (InterruptedException interrupted) {
                Runtime.getRuntime().halt(1);
            }
        }));
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                say("assigned", partitions);
            }

            @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                hold(partitions);
                commit();
                finished.keySet().removeAll(partitions);
                say("revoked", partitions);
            }

            @Override public void onPartitionsLost(Collection<TopicPartition> partitions) {
                finished.keySet().removeAll(partitions);
                say("lost", partitions);
            }
        });
        while (!stopping) {
            try {
                deliver(consumer.poll(Duration.ofMillis(200)));
                commit();
            } catch (WakeupException stop) {
                if (!stopping) throw stop;
            }
        }
        commit();
        consumer.close();
        say(event("closed"));
        closed.countDown();
    }

    private void hold(Collection<TopicPartition> partitions) {
        if (hold_ms == 0 || stopping || partitions.isEmpty()) return;
        int ms = hold_ms;
        hold_ms = 0;
        say("holds", partitions);
        try {
            TimeUnit.MILLISECONDS.sleep(ms);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        for (TopicPartition partition : partitions) {
            finished.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        }
    }

    private void deliver(ConsumerRecords<String, String> polled) {
        if (polled.isEmpty()) return;
        List<List<Object>> records = new ArrayList<>(polled.count());
        for (var record : polled) {
            records.add(List.of(record.partition(), record.offset(), Integer.parseInt(record.value().trim())));
            finished.put(new TopicPartition(record.topic(), record.partition()),
                new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), ""));
        }
        Map<String, Object> line = event("records");
        line.put("records", records);
        say(line);
    }

    /** Once; what was refused stays in {@code finished} for the next turn of the loop. */
    private void commit() {
        finished.keySet().retainAll(consumer.assignment());
        if (finished.isEmpty()) return;
        Map<Integer, Long> offsets = new TreeMap<>();
        finished.forEach((partition, offset) -> offsets.put(partition.partition(), offset.offset()));
        while (true) {
            try {
                consumer.commitSync(finished);
                finished.clear();
                Map<String, Object> line = event("committed");
                line.put("offsets", pairs(offsets));
                say(line);
            } catch (WakeupException stop) {
                // The signal must not cost the commit: it is asked for once more, now uninterrupted.
                continue;
            } catch (KafkaException refused) {
                Map<String, Object> line = event("commit_failed");
                line.put("offsets", pairs(offsets));
                line.put("error", refused.toString());
                say(line);
            }
            return;
        }
    }

    private static List<List<Object>> pairs(Map<Integer, Long> offsets) {
        return offsets.entrySet().stream().map(entry -> List.<Object>of(entry.getKey(), entry.getValue())).toList();
    }

    private static Map<String, Object> event(String name) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", name);
        return line;
    }

    private static void say(String name, Collection<TopicPartition> partitions) {
        Map<String, Object> line = event(name);
        line.put("partitions", partitions.stream().map(TopicPartition::partition).sorted().toList());
        say(line);
    }

    private static void say(Map<String, Object> line) {
        try {
            System.out.println(JSON.writeValueAsString(line));
            System.out.flush();
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
