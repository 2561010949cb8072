// The agent for kafkajs.

import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import { lz4Compress, lz4Decompress } from '@platformatic/wasm-utils'
import * as agent from './agent.mjs'

const { AssignerProtocol, CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs

// kafkajs brings gzip alone and takes the others as plug-ins.
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => Buffer.from(lz4Compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(lz4Decompress(buffer))
})

const COMPRESSIONS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4
}

function client (given) {
  return new Kafka({
    clientId: 'kafkajs',
    brokers: [given.bootstrap],
    connectionTimeout: 1000,
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 8 },
    logLevel: logLevel.INFO,
    logCreator: () => entry => agent.log(entry.label, entry.namespace, entry.log.message)
  })
}

function version () {
  const { version } = createRequire(import.meta.url)('kafkajs/package.json')
  agent.emit('version', {
    client: `kafkajs ${version}`,
    protocols: ['classic'],
    compressions: Object.keys(COMPRESSIONS),
    idempotent: false,
    static_members: false
  })
}

async function create (given) {
  const admin = client(given).admin()
  await admin.connect()
  const topic = { topic: given.topic, numPartitions: given.partitions, replicationFactor: 1 }
  await admin.createTopics({ topics: [topic], waitForLeaders: true })
  await admin.disconnect()
  agent.emit('created')
}

async function produce (given) {
  const producer = client(given).producer({
    idempotent: true,
    maxInFlightRequests: 1
  })
  await producer.connect()
  for await (const numbers of agent.paced(given)) {
    const messages = numbers.map(number => ({
      key: agent.keyOf(number),
      value: agent.valueOf(number)
    }))
    const compression = COMPRESSIONS[given.compression]
    await agent.persist(() =>
      producer.send({ topic: given.topic, acks: -1, compression, messages }))
  }
  await producer.disconnect()
  agent.emit('produced', { count: given.count })
}

// The assignor `range` under the name that other clients give it; kafkajs has its own only.
const rangeAssigner = ({ cluster }) => ({
  name: 'range',
  version: 1,
  async assign ({ members, topics }) {
    const shares = topics.map(topic => {
      const partitions = cluster.findTopicPartitionMetadata(topic).length
      return [topic, agent.range(members.map(member => member.memberId), partitions)]
    })
    return members.map(({ memberId }) => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({
        version: 0,
        assignment: Object.fromEntries(shares.map(([topic, share]) => [topic, share.get(memberId)])),
        userData: Buffer.alloc(0)
      })
    }))
  },
  protocol ({ topics }) {
    const metadata = AssignerProtocol.MemberMetadata.encode({
      // Version 1 has a field more, which kafkajs does not write.
      version: 0,
      topics,
      userData: Buffer.alloc(0)
    })
    return { name: 'range', metadata }
  }
})

async function consume (given) {
  const consumer = client(given).consumer({
    groupId: given.group,
    sessionTimeout: agent.SESSION_TIMEOUT_MS,
    heartbeatInterval: agent.HEARTBEAT_INTERVAL_MS,
    maxWaitTimeInMs: agent.POLL_MS,
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 8 },
    ...(given.assignor === 'range' ? { partitionAssigners: [rangeAssigner] } : {})
  })
  const owned = new agent.Owned()
  const { GROUP_JOIN, REBALANCING, CRASH } = consumer.events
  // kafkajs handles no batch while it rejoins.
  consumer.on(REBALANCING, () => owned.become([]))
  consumer.on(CRASH, () => owned.become([], 'lost'))
  consumer.on(GROUP_JOIN, ({ payload }) => {
    owned.become([], 'lost')
    owned.become(payload.memberAssignment[given.topic] ?? [])
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [given.topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: payload => eachBatch(given, payload)
  })
  await agent.stopped
  await consumer.disconnect()
  agent.emit('closed')
}

async function eachBatch (given, { batch, resolveOffset, commitOffsetsIfNecessary }) {
  const { partition, messages } = batch
  const records = messages.map(message =>
    [partition, Number(message.offset), agent.numberIn(message.value)])
  agent.emit('records', { records })
  const last = messages[messages.length - 1].offset
  const next = Number(last) + 1
  const offset = { partition, offset: String(next) }
  try {
    await commitOffsetsIfNecessary({ topics: [{ topic: given.topic, partitions: [offset] }] })
  } catch (error) {
    agent.emit('commit_failed', { offsets: [[partition, next]], error: String(error) })
    // kafkajs recovers, and gives the same records again if it still owns the partition.
    throw error
  }
  agent.emit('committed', { offsets: [[partition, next]] })
  resolveOffset(last)
}

const given = agent.parse()
await { version, create, produce, consume }[given.command](given)
process.exit(0)
