"""The agent for kafka-python."""

import time

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition
from kafka.admin import NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import OffsetAndMetadata

import agent

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


def client_settings(arguments):
    return {
        "bootstrap_servers": arguments.bootstrap,
        "reconnect_backoff_ms": agent.RECONNECT_BACKOFF_MS,
        "reconnect_backoff_max_ms": agent.RECONNECT_BACKOFF_MAX_MS,
    }


def version(_):
    agent.emit(
        "version",
        client=f"kafka-python {kafka.__version__}",
        protocols=["classic"],
        compressions=["none", "gzip", "snappy", "lz4", "zstd"],
        idempotent=True,
        static_members=True,
    )


def create(arguments):
    admin = KafkaAdminClient(**client_settings(arguments))
    admin.create_topics([NewTopic(arguments.topic, arguments.partitions, 1)])
    while True:
        topics = admin.describe_topics([arguments.topic])
        if len(topics[0]["partitions"]) == arguments.partitions:
            break
        time.sleep(0.05)
    admin.close()
    agent.emit("created")


def produce(arguments):
    producer = KafkaProducer(
        **client_settings(arguments),
        acks="all",
        enable_idempotence=True,
        compression_type=None if arguments.compression == "none" else arguments.compression,
    )
    sent = []
    for number, wait_s in agent.paced(arguments.start, arguments.count, arguments.rate):
        if wait_s:
            time.sleep(wait_s)
        key, value = agent.key_of(number), agent.value_of(number)
        sent.append(producer.send(arguments.topic, key=key, value=value))
    producer.flush()
    for each in sent:
        each.get(timeout=60)
    producer.close()
    agent.emit("produced", count=len(sent))


def rewind(arguments):
    admin = KafkaAdminClient(**client_settings(arguments))
    goals = {
        TopicPartition(topic or arguments.topic, partition): OffsetAndMetadata(
            offset, agent.REWIND, None
        )
        for topic, partition, offset in arguments.offsets
    }
    for partition, error in admin.alter_group_offsets(arguments.group, goals).items():
        if error.errno:
            raise error(str(partition))
    admin.close()
    agent.emit("rewound")


class Listener(ConsumerRebalanceListener):
    """kafka-python revokes and assigns from within poll and close."""

    def __init__(self, progress):
        self._progress = progress

    def on_partitions_assigned(self, assigned):
        agent.emit("assigned", partitions=[each.partition for each in assigned])

    def on_partitions_revoked(self, revoked):
        self._progress.deliver_and_commit()
        self._gone("revoked", revoked)

    def on_partitions_lost(self, lost):
        self._gone("lost", lost)

    def _gone(self, event, partitions):
        gone = [each.partition for each in partitions]
        self._progress.forget(gone)
        if gone:
            agent.emit(event, partitions=gone)


def consume(arguments):
    stop = agent.Stop()
    settings = client_settings(arguments)
    if arguments.instance_id:
        settings["group_instance_id"] = arguments.instance_id
    if arguments.assignor:
        settings["partition_assignment_strategy"] = [ASSIGNORS[arguments.assignor]]
    consumer = KafkaConsumer(
        **settings,
        group_id=arguments.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=agent.SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=agent.HEARTBEAT_INTERVAL_MS,
    )

    def commit(offsets):
        consumer.commit(
            {
                TopicPartition(arguments.topic, partition): OffsetAndMetadata(offset, "", -1)
                for partition, offset in offsets.items()
            },
            timeout_ms=agent.COMMIT_MS,
        )

    progress = agent.Progress(commit)
    consumer.subscribe([arguments.topic], listener=Listener(progress))
    while not stop:
        polled = consumer.poll(timeout_ms=int(agent.POLL_S * 1000), max_records=agent.BATCH_RECORDS)
        for partition, records in polled.items():
            for record in records:
                progress.take(partition.partition, record.offset, record.value)
        progress.deliver_and_commit()
    consumer.close(autocommit=False)
    agent.emit("closed")


if __name__ == "__main__":
    given = agent.arguments()
    commands = {
        "version": version,
        "create": create,
        "produce": produce,
        "consume": consume,
        "rewind": rewind,
    }
    commands[given.command](given)
