"""The agent for aiokafka."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

import agent

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


async def version(_):
    agent.emit(
        "version",
        client=f"aiokafka {aiokafka.__version__}",
        protocols=["classic"],
        compressions=["none", "gzip", "snappy", "lz4", "zstd"],
        idempotent=True,
        static_members=True,
    )


async def create(arguments):
    admin = AIOKafkaAdminClient(bootstrap_servers=arguments.bootstrap)
    await admin.start()
    answer = await admin.create_topics([NewTopic(arguments.topic, arguments.partitions, 1)])
    for topic, code, *_ in answer.topic_errors:
        if code:
            raise RuntimeError(f"{topic}: error {code}")
    while True:
        topics = await admin.describe_topics([arguments.topic])
        if len(topics[0]["partitions"]) == arguments.partitions:
            break
        await asyncio.sleep(0.05)
    await admin.close()
    agent.emit("created")


async def produce(arguments):
    producer = AIOKafkaProducer(
        bootstrap_servers=arguments.bootstrap,
        acks="all",
        enable_idempotence=True,
        compression_type=None if arguments.compression == "none" else arguments.compression,
    )
    await producer.start()
    sent = []
    for number, wait_s in agent.paced(arguments.start, arguments.count, arguments.rate):
        if wait_s:
            await asyncio.sleep(wait_s)
        key, value = agent.key_of(number), agent.value_of(number)
        sent.append(await producer.send(arguments.topic, key=key, value=value))
    await asyncio.gather(*sent)
    await producer.stop()
    agent.emit("produced", count=len(sent))


class Member(ConsumerRebalanceListener):
    """A consumer whose rebalances, which run beside the loop, wait while records are handled."""

    def __init__(self, arguments):
        self._topic = arguments.topic
        self._lock = asyncio.Lock()
        self._progress = agent.Progress()
        strategy = ASSIGNORS[arguments.assignor or "range"]
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=arguments.bootstrap,
            group_id=arguments.group,
            group_instance_id=arguments.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=(strategy,),
            session_timeout_ms=agent.SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=agent.HEARTBEAT_INTERVAL_MS,
        )

    async def step(self):
        # Waits by itself while the group rebalances, so it must not hold the lock.
        polled = await self.consumer.getmany(
            timeout_ms=int(agent.POLL_S * 1000), max_records=agent.BATCH_RECORDS
        )
        async with self._lock:
            for partition, records in polled.items():
                for record in records:
                    self._progress.take(partition.partition, record.offset, record.value)
            await self._deliver_and_commit()

    async def _deliver_and_commit(self):
        offsets = self._progress.deliver()
        if not offsets:
            return
        try:
            await self.consumer.commit(
                {TopicPartition(self._topic, each): offset for each, offset in offsets.items()}
            )
        except Exception as error:
            self._progress.outcome(offsets, error)
        else:
            self._progress.outcome(offsets)

    async def on_partitions_revoked(self, revoked):
        gone = [each.partition for each in revoked]
        async with self._lock:
            await self._deliver_and_commit()
            self._progress.forget(gone)
            if gone:
                agent.emit("revoked", partitions=gone)

    async def on_partitions_assigned(self, assigned):
        agent.emit("assigned", partitions=[each.partition for each in assigned])


async def consume(arguments):
    stop = agent.Stop()
    member = Member(arguments)
    member.consumer.subscribe([arguments.topic], listener=member)
    await member.consumer.start()
    while not stop:
        await member.step()
        await asyncio.sleep(0)
    await member.consumer.stop()
    agent.emit("closed")


if __name__ == "__main__":
    given = agent.arguments()
    commands = {"version": version, "create": create, "produce": produce, "consume": consume}
    asyncio.run(commands[given.command](given))
