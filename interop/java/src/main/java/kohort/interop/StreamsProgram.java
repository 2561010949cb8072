package kohort.interop;

import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * A Kafka Streams application that counts, for each word, the different numbers it came with. Input values read
 * {@code WORD NUMBER}. The key changes on the way (a repartition topic) and what was seen is kept (a store and its
 * changelog). At-least-once processing may see a record twice; counting different numbers makes the result exact.
 */
public final class StreamsProgram {
    public static void main(String[] words) throws Exception {
        Arguments arguments = new Arguments(words);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments.text("input"))
            .map((key, value) -> {
                String[] parts = value.split(" ");
                return KeyValue.pair(parts[0], parts[1]);
            })
            .groupByKey()
            .aggregate(() -> "", (word, number, seen) -> {
                TreeSet<String> numbers = Arrays.stream(seen.split(",")).filter(one -> !one.isEmpty())
                    .collect(Collectors.toCollection(TreeSet::new));
                numbers.add(number);
                return String.join(",", numbers);
            }, Materialized.as("seen"))
            .toStream()
            .mapValues(seen -> Integer.toString(seen.split(",").length))
            .to(arguments.text("output"));

        Properties properties = new Properties();
        properties.put("application.id", arguments.text("application"));
        properties.put("bootstrap.servers", arguments.text("bootstrap"));
        properties.put("state.dir", arguments.text("state-dir"));
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());
        properties.put("processing.guarantee", "at_least_once");
        properties.put("num.stream.threads", "2");
        properties.put("replication.factor", "1");
        properties.put("commit.interval.ms", "300");
        // What was read from the repartition topic is deleted from it, with DeleteRecords.
        properties.put("repartition.purge.interval.ms", "1000");
        properties.put("consumer.session.timeout.ms", "6000");
        properties.put("consumer.heartbeat.interval.ms", "500");
        properties.put("consumer.auto.offset.reset", "earliest");

        CountDownLatch closed = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
            streams.setStateListener((now, before) -> System.out.println("state " + now));
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                streams.close();
                System.out.println("closed");
                closed.countDown();
            }));
            streams.start();
            closed.await();
        }
    }
}
