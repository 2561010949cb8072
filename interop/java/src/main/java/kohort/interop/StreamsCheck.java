package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.stream.Stream;

import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;

/** Two instances of a Kafka Streams application, one of which is killed and started again in the middle. */
final class StreamsCheck {
    private static final int WORDS = 20;
    private static final int ROUND = 2000;
    private static final int PARTITIONS = 4;

    private final Cluster cluster;
    private final Path folder;

    private StreamsCheck(Cluster cluster, Path folder) {
        this.cluster = cluster;
        this.folder = folder;
    }

    static void all(Cluster cluster, Checks checks, Path folder) {
        checks.add("streams-counts-through-a-kill", new StreamsCheck(cluster, folder)::counts);
    }

    private Jvm instance(String name, String application, String input, String output) throws IOException {
        return new Jvm(folder.resolve(name + ".log"), "256m", StreamsProgram.class.getName(), "run",
            "--bootstrap", cluster.bootstrap, "--application", application, "--input", input, "--output", output,
            "--state-dir", folder.resolve(name).toString());
    }

    private void counts() throws Exception {
        String input = cluster.topic("lines", PARTITIONS);
        String output = cluster.topic("counts", PARTITIONS);
        String application = cluster.name("streams");
        try (Jvm first = instance("first", application, input, output);
             Jvm second = instance("second", application, input, output);
             KafkaConsumer<String, String> results = cluster.consumer()) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < PARTITIONS; i++) all.add(new TopicPartition(output, i));
            results.assign(all);
            Map<String, String> counts = new HashMap<>();

            write(input, 0);
            eventually("both instances run", 60_000, () -> running(first) && running(second));
            counted(results, counts, 1);

            write(input, 1);
            first.kill();
            // Without its folder it must get its stores back from the changelog.
            delete(folder.resolve("first"));
            try (Jvm again = instance("first", application, input, output)) {
                counted(results, counts, 2);
                eventually("the killed instance runs again", 60_000,
                    () -> again.output().split("state RUNNING", -1).length > 2);
                write(input, 2);
                counted(results, counts, 3);
                internalTopics(application);
                Checks.report("please restart the broker");
                write(input, 3);
                counted(results, counts, 4);
                again.stop();
                second.stop();
                that(again.output().contains("closed") && second.output().contains("closed"), "both closed");
            }
        }
        eventually("the group is empty", () -> get(cluster.admin.describeClassicGroups(List.of(application)).all())
            .get(application).members().isEmpty());
        long committed = get(cluster.admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata())
            .entrySet().stream().filter(entry -> entry.getKey().topic().equals(input))
            .mapToLong(entry -> entry.getValue().offset()).sum();
        equal(4L * ROUND, committed, "sum of the committed offsets of the input");
    }

    private static boolean running(Jvm instance) throws IOException {
        if (!instance.alive()) throw new AssertionError("an instance ended: " + instance.tail());
        return instance.output().contains("state RUNNING");
    }

    /** Words take turns; each comes with a number of its own each time. */
    private void write(String topic, int round) throws Exception {
        try (KafkaProducer<String, String> producer = cluster.producer("compression.type", "lz4")) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = round * ROUND; i < (round + 1) * ROUND; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, "line" + i, "word" + i % WORDS + " " + i)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) get(one);
        }
    }

    /** Reads results until each word's newest count is that of so many rounds. */
    private void counted(KafkaConsumer<String, String> results, Map<String, String> counts, int rounds)
        throws Exception {
        String expected = Integer.toString(rounds * ROUND / WORDS);
        eventually("every word is counted " + expected + " times", 90_000, () -> {
            results.poll(Duration.ofMillis(200)).forEach(record -> counts.put(record.key(), record.value()));
            boolean complete = counts.size() == WORDS && counts.values().stream().allMatch(expected::equals);
            if (!complete) throw new AssertionError("counts are " + counts);
            return true;
        });
    }

    private void internalTopics(String application) throws Exception {
        Set<String> names = get(cluster.admin.listTopics().names());
        String repartition = application + "-seen-repartition";
        that(names.contains(repartition), "a repartition topic among " + names);
        that(names.contains(application + "-seen-changelog"), "a changelog among " + names);
        eventually("what was read from the repartition topic is purged", () -> {
            long purged = 0;
            for (int i = 0; i < PARTITIONS; i++) {
                purged += PartitionChecks.offset(cluster, new TopicPartition(repartition, i), OffsetSpec.earliest())
                    .offset();
            }
            return purged > 0;
        });
        eventually("the group is stable", () -> get(cluster.admin.describeClassicGroups(List.of(application)).all())
            .get(application).state().toString().equals(GroupState.STABLE.toString()));
    }

    private static void delete(Path folder) throws IOException {
        if (!Files.exists(folder)) return;
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) Files.delete(path);
        }
    }
}
