package kohort.interop;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.function.BooleanSupplier;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Many members of one group in one process, and how long its rebalances take; see interop/README.md. */
public final class Herd {
    private static final long SETTLE_LIMIT_MS = 180_000;
    private static final long CALM_MS = 4_000;
    private static final long STEADY_MS = 15_000;

    private final Arguments arguments;
    private final int partitions;
    private final ArrayDeque<Follower> members = new ArrayDeque<>();

    private Herd(Arguments arguments) {
        this.arguments = arguments;
        partitions = arguments.number("partitions");
    }

    public static void main(String[] words) throws Exception {
        Arguments arguments = new Arguments(words);
        Herd herd = new Herd(arguments);
        if (arguments.verb.equals("alone")) {
            herd.add();
            Thread.sleep(Long.MAX_VALUE);
        }
        herd.measure("start", () -> {
            for (int n = 0; n < arguments.number("members"); n++) herd.add();
        });
        say("{\"event\":\"steady_begins\"}");
        Thread.sleep(STEADY_MS);
        say("{\"event\":\"steady_ends\"}");
        for (int n = 0; n < 3; n++) {
            herd.measure("join", herd::add);
            herd.measure("leave", herd::remove);
        }
        for (int rolls = Integer.parseInt(arguments.text("rolls", "1")); rolls > 0; rolls--) {
            herd.measure("roll", () -> {
                for (int left = herd.members.size(); left > 0; left--) {
                    herd.remove();
                    herd.add();
                }
            });
        }
        herd.kill(words);
        say("{\"event\":\"closed\"}");
        // Nobody waits for a hundred to leave.
        Runtime.getRuntime().halt(0);
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void add() {
        members.add(new Follower());
    }

    private void remove() throws InterruptedException {
        Follower first = members.poll();
        first.stopping = true;
        first.join();
    }

    /** Kills a member that is a process of its own. */
    private void kill(String[] words) throws Exception {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElse("java"),
            "-Xmx128m", "-cp", System.getProperty("java.class.path"), Herd.class.getName(), "alone"));
        command.addAll(List.of(words).subList(1, words.length));
        Process other = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        until(() -> !isSettled());
        int least = partitions / (members.size() + 1);
        long calmSince = System.nanoTime();
        while (System.nanoTime() - calmSince < CALM_MS * 1_000_000) {
            int owned = members.stream().mapToInt(Follower::count).sum();
            if (owned < partitions - least - 1 || owned > partitions - least) calmSince = System.nanoTime();
            Thread.sleep(10);
        }
        measure("kill", () -> other.destroyForcibly().waitFor());
    }

    private interface Change {
        void make() throws Exception;
    }

    private void measure(String what, Change change) throws Exception {
        long began = System.nanoTime();
        change.make();
        long changed = System.nanoTime();
        until(this::isSettled);
        long now = System.nanoTime();
        say("{\"event\":\"settled\",\"what\":\"" + what + "\",\"ms\":" + (now - began) / 1_000_000
            + ",\"after_ms\":" + (now - changed) / 1_000_000 + "}");
        Thread.sleep(CALM_MS);
    }

    private void until(BooleanSupplier condition) throws InterruptedException {
        long began = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - began > SETTLE_LIMIT_MS * 1_000_000) {
                throw new IllegalStateException("the group does not settle");
            }
            Thread.sleep(2);
        }
    }

    private boolean isSettled() {
        Set<TopicPartition> all = new HashSet<>();
        int sum = 0;
        for (Follower member : members) {
            synchronized (member.owned) {
                int count = member.owned.size();
                if (count < partitions / members.size() || count > (partitions - 1) / members.size() + 1) return false;
                sum += count;
                all.addAll(member.owned);
            }
        }
        return sum == partitions && all.size() == partitions;
    }

    /** A member with the settings that a consumer has when nobody says anything. */
    private final class Follower extends Thread implements ConsumerRebalanceListener {
        final Set<TopicPartition> owned = new HashSet<>();
        volatile boolean stopping = false;

        Follower() {
            setDaemon(true);
            start();
        }

        int count() {
            synchronized (owned) {
                return owned.size();
            }
        }

        @Override public void run() {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", arguments.text("bootstrap"));
            properties.put("group.id", arguments.text("group"));
            properties.put("group.protocol", arguments.text("protocol"));
            try (KafkaConsumer<byte[], byte[]> consumer =
                     new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(arguments.text("topic")), this);
                while (!stopping) consumer.poll(Duration.ofMillis(100));
            }
            onPartitionsRevoked(List.copyOf(owned));
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> given) {
            synchronized (owned) {
                owned.addAll(given);
            }
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> gone) {
            synchronized (owned) {
                owned.removeAll(gone);
            }
        }
    }
}
