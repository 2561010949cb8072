package kohort.interop;

import static kohort.interop.Checks.equal;
import static kohort.interop.Checks.eventually;
import static kohort.interop.Checks.get;
import static kohort.interop.Checks.that;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Two distributed workers of Kafka Connect carry a file into a topic and out again; one is killed in the middle. */
final class ConnectCheck {
    private static final int ROUND = 300;

    private final Cluster cluster;
    private final Path folder;
    private final HttpClient http = HttpClient.newHttpClient();
    private int written = 0;

    private ConnectCheck(Cluster cluster, Path folder) {
        this.cluster = cluster;
        this.folder = folder;
    }

    static void all(Cluster cluster, Checks checks, Path folder) {
        checks.add("connect-carries-lines-through-a-kill", new ConnectCheck(cluster, folder)::carries);
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private Jvm worker(String name, String group, int port) throws IOException {
        Path settings = folder.resolve(name + ".properties");
        Files.write(settings, List.of(
            "bootstrap.servers=" + cluster.bootstrap,
            "group.id=" + group,
            "config.storage.topic=" + group + "-configs",
            "offset.storage.topic=" + group + "-offsets",
            "status.storage.topic=" + group + "-status",
            "config.storage.replication.factor=1",
            "offset.storage.replication.factor=1",
            "status.storage.replication.factor=1",
            "offset.storage.partitions=3",
            "status.storage.partitions=2",
            "key.converter=org.apache.kafka.connect.storage.StringConverter",
            "value.converter=org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms=500",
            "session.timeout.ms=6000",
            "heartbeat.interval.ms=1000",
            "rebalance.timeout.ms=10000",
            // The tasks of a worker that is gone are given away at once, not after five minutes.
            "scheduled.rebalance.max.delay.ms=0",
            "plugin.discovery=service_load",
            "listeners=http://127.0.0.1:" + port));
        return new Jvm(folder.resolve(name + ".log"), "384m", "org.apache.kafka.connect.cli.ConnectDistributed",
            settings.toString());
    }

    private void carries() throws Exception {
        String group = cluster.name("connect");
        String topic = cluster.topic("carried", 2);
        Path source = folder.resolve("in.txt");
        Path sink = folder.resolve("out.txt");
        Files.writeString(source, "");
        int onePort = freePort();
        int twoPort = freePort();
        try (Jvm one = worker("one", group, onePort); Jvm two = worker("two", group, twoPort)) {
            ready(one, onePort);
            ready(two, twoPort);
            put(onePort, "source", "\"connector.class\":\"org.apache.kafka.connect.file.FileStreamSourceConnector\","
                + "\"file\":\"" + source + "\",\"topic\":\"" + topic + "\",\"tasks.max\":\"1\"");
            put(onePort, "sink", "\"connector.class\":\"org.apache.kafka.connect.file.FileStreamSinkConnector\","
                + "\"file\":\"" + sink + "\",\"topics\":\"" + topic + "\",\"tasks.max\":\"1\"");
            eventually("both tasks run", 60_000, () -> runs(twoPort, "source") && runs(twoPort, "sink"));
            round(source);
            arrived(sink);
            description(group, 2);

            // Whoever has the source: it has tasks to hand over in any case, and lines to lose.
            boolean first = ask(onePort, "source/status").contains("\"worker_id\":\"127.0.0.1:" + onePort + "\"");
            Jvm victim = first ? one : two;
            int survivorPort = first ? twoPort : onePort;
            round(source);
            victim.kill();
            round(source);
            eventually("the other worker runs both tasks", 60_000,
                () -> runsAt(survivorPort, "source", survivorPort) && runsAt(survivorPort, "sink", survivorPort));
            arrived(sink);
            String name = first ? "one" : "two";
            int port = first ? onePort : twoPort;
            try (Jvm again = worker(name, group, port)) {
                ready(again, port);
                round(source);
                arrived(sink);
                description(group, 2);
                Checks.report("please restart the broker");
                round(source);
                arrived(sink);
                eventually("both tasks run", 60_000, () -> runs(port, "source") && runs(port, "sink"));
                again.stop();
                (first ? two : one).stop();
            }
        }
        String sinkGroup = "connect-sink";
        long committed = get(cluster.admin.listConsumerGroupOffsets(sinkGroup).partitionsToOffsetAndMetadata())
            .entrySet().stream().filter(entry -> entry.getKey().topic().equals(topic))
            .mapToLong(entry -> entry.getValue().offset()).sum();
        that(committed >= written, "the sink committed all, sum of offsets is " + committed);
        get(cluster.admin.deleteConsumerGroups(List.of(sinkGroup)).all());
    }

    private void ready(Jvm worker, int port) throws Exception {
        eventually("a worker answers", 90_000, () -> {
            if (!worker.alive()) throw new AssertionError("a worker ended: " + worker.tail());
            return ask(port, "").startsWith("[");
        });
    }

    private String ask(int port, String path) throws Exception {
        return http.send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/connectors/" + path))
            .timeout(Duration.ofSeconds(10)).build(), HttpResponse.BodyHandlers.ofString()).body();
    }

    private void put(int port, String name, String config) throws Exception {
        // A worker in the middle of a rebalance answers 409: ask again.
        eventually("connector " + name + " is accepted", () -> {
            var answer = http.send(HttpRequest.newBuilder(
                    URI.create("http://127.0.0.1:" + port + "/connectors/" + name + "/config"))
                .timeout(Duration.ofSeconds(30)).header("Content-Type", "application/json")
                .PUT(HttpRequest.BodyPublishers.ofString("{" + config + "}")).build(),
                HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() / 100 != 2) throw new AssertionError(answer.statusCode() + " " + answer.body());
            return true;
        });
    }

    private boolean runs(int port, String name) throws Exception {
        String status = ask(port, name + "/status");
        if (!status.contains("\"tasks\":[{\"id\":0,\"state\":\"RUNNING\"")) throw new AssertionError(status);
        return true;
    }

    private boolean runsAt(int port, String name, int workerPort) throws Exception {
        String status = ask(port, name + "/status");
        String tasks = status.substring(Math.max(0, status.indexOf("\"tasks\"")));
        if (!tasks.contains("\"state\":\"RUNNING\"") || !tasks.contains("127.0.0.1:" + workerPort)) {
            throw new AssertionError(status);
        }
        return true;
    }

    /** Appends lines, some at a time as an application would. */
    private void round(Path source) throws IOException {
        int end = written + ROUND;
        while (written < end) {
            StringBuilder lines = new StringBuilder();
            for (int i = 0; i < 50; i++) lines.append("line ").append(written++).append('\n');
            Files.writeString(source, lines, StandardOpenOption.APPEND);
        }
    }

    private void arrived(Path sink) throws Exception {
        eventually("all " + written + " lines arrive", 60_000, () -> {
            Set<String> lines = new HashSet<>(Files.readAllLines(sink));
            int missing = 0;
            for (int i = 0; i < written; i++) if (!lines.contains("line " + i)) missing++;
            if (missing > 0) throw new AssertionError(missing + " lines are missing");
            return true;
        });
    }

    /** The workers' own group is of another protocol type, which the broker does not look into. */
    private void description(String group, int workers) throws Exception {
        eventually("the group of workers is stable", () -> {
            var described = get(cluster.admin.describeClassicGroups(List.of(group)).all()).get(group);
            equal("connect", described.protocol(), "protocol type");
            equal(workers, described.members().size(), "workers");
            return described.state().toString().equals("Stable");
        });
    }
}
