"""The agent for confluent-kafka, that is librdkafka."""

import time

import confluent_kafka
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import agent

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


def client_settings(arguments):
    return {
        "bootstrap.servers": arguments.bootstrap,
        "reconnect.backoff.ms": agent.RECONNECT_BACKOFF_MS,
        "reconnect.backoff.max.ms": agent.RECONNECT_BACKOFF_MAX_MS,
    }


def version():
    agent.emit(
        "version",
        client=f"confluent-kafka {confluent_kafka.__version__}"
        f" (librdkafka {confluent_kafka.libversion()[0]})",
        protocols=["classic", "consumer"],
        compressions=COMPRESSIONS,
        idempotent=True,
        static_members=True,
    )


def create(arguments):
    admin = AdminClient(client_settings(arguments))
    topic = NewTopic(arguments.topic, num_partitions=arguments.partitions, replication_factor=1)
    admin.create_topics([topic])[arguments.topic].result(timeout=30)
    until_there(admin, arguments)


def grow(arguments):
    admin = AdminClient(client_settings(arguments))
    more = NewPartitions(arguments.topic, arguments.partitions)
    admin.create_partitions([more])[arguments.topic].result(timeout=30)
    until_there(admin, arguments)


def rewind(arguments):
    admin = AdminClient(client_settings(arguments))
    goals = [
        TopicPartition(topic or arguments.topic, partition, offset, agent.REWIND)
        for topic, partition, offset in arguments.offsets
    ]
    asked = ConsumerGroupTopicPartitions(arguments.group, goals)
    done = admin.alter_consumer_group_offsets([asked])[arguments.group].result(timeout=60)
    for each in done.topic_partitions:
        if each.error:
            raise KafkaException(each.error)
    agent.emit("rewound")


def until_there(admin, arguments):
    while True:
        found = admin.list_topics(timeout=30).topics.get(arguments.topic)
        if found and len(found.partitions) == arguments.partitions:
            break
        time.sleep(0.05)
    agent.emit("created")


def produce(arguments):
    producer = Producer(
        {
            **client_settings(arguments),
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": arguments.compression,
            # Why sequences were repeated or epochs raised, on standard error.
            "debug": "eos",
        }
    )
    acknowledged = 0

    def on_delivery(error, _):
        nonlocal acknowledged
        if error:
            raise KafkaException(error)
        acknowledged += 1

    for number, wait_s in agent.paced(arguments.start, arguments.count, arguments.rate):
        producer.poll(wait_s)
        producer.produce(
            arguments.topic,
            key=agent.key_of(number),
            value=agent.value_of(number),
            on_delivery=on_delivery,
        )
    while acknowledged < arguments.count:
        producer.flush(1)
    agent.emit("produced", count=acknowledged)


def consumer_settings(arguments):
    settings = {
        **client_settings(arguments),
        "group.id": arguments.group,
        "group.protocol": arguments.protocol,
        "auto.offset.reset": arguments.reset,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
    }
    if arguments.reset == "latest":
        settings["topic.metadata.refresh.interval.ms"] = agent.METADATA_AGE_MS
    if arguments.max_poll_ms:
        settings["max.poll.interval.ms"] = arguments.max_poll_ms
    if arguments.instance_id:
        settings["group.instance.id"] = arguments.instance_id
    if arguments.protocol == "classic":
        settings["session.timeout.ms"] = agent.SESSION_TIMEOUT_MS
        settings["heartbeat.interval.ms"] = agent.HEARTBEAT_INTERVAL_MS
        if arguments.assignor:
            settings["partition.assignment.strategy"] = arguments.assignor
    elif arguments.assignor:
        settings["group.remote.assignor"] = arguments.assignor
    return settings


def consume(arguments):
    stop = agent.Stop()
    consumer = Consumer(consumer_settings(arguments))

    def commit(offsets):
        positions = [TopicPartition(arguments.topic, *pair) for pair in offsets.items()]
        for result in consumer.commit(offsets=positions, asynchronous=False):
            if result.error:
                raise KafkaException(result.error)

    progress = agent.Progress(commit)

    def hold(partitions):
        """Does not let go of what is revoked first, and commits it again after that."""
        if not arguments.hold_ms or stop:
            return
        hold_s, arguments.hold_ms = arguments.hold_ms / 1000, 0
        agent.emit("holds", partitions=[each.partition for each in partitions])
        time.sleep(hold_s)
        positions = consumer.position(partitions)
        progress.commit_again({each.partition: each.offset for each in positions if each.offset >= 0})

    # Called by poll and close; whether incrementally or not, each names what changes.
    def on_assign(_, partitions):
        agent.emit("assigned", partitions=[each.partition for each in partitions])

    def on_revoke(_, partitions):
        gone = [each.partition for each in partitions]
        progress.deliver_and_commit()
        hold(partitions)
        progress.forget(gone)
        agent.emit("revoked", partitions=gone)

    def on_lost(_, partitions):
        gone = [each.partition for each in partitions]
        progress.forget(gone)
        agent.emit("lost", partitions=gone)

    consumer.subscribe(
        [arguments.topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost
    )
    while not stop:
        message = consumer.poll(agent.POLL_S)
        while message is not None and not stop:
            if message.error():
                agent.log(message.error())
            else:
                progress.take(message.partition(), message.offset(), message.value())
            if progress.waiting >= agent.BATCH_RECORDS:
                break
            message = consumer.poll(0)
        progress.deliver_and_commit()
    consumer.close()
    agent.emit("closed")


if __name__ == "__main__":
    given = agent.arguments()
    if given.command == "version":
        version()
    else:
        commands = {
            "create": create,
            "grow": grow,
            "produce": produce,
            "consume": consume,
            "rewind": rewind,
        }
        commands[given.command](given)
