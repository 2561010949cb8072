// The agent for @platformatic/kafka.

import { createRequire } from 'node:module'
import { Admin, Consumer, Producer, ProduceAcks } from '@platformatic/kafka'
import * as agent from './agent.mjs'

const RETRY = { retries: 20, retryDelay: 100, connectTimeout: 1000, requestTimeout: 10000 }

function version () {
  const entry = createRequire(import.meta.url).resolve('@platformatic/kafka')
  const { version } = createRequire(import.meta.url)(entry.replace(/dist.*$/, 'package.json'))
  agent.emit('version', {
    client: `@platformatic/kafka ${version}`,
    protocols: ['classic', 'consumer'],
    compressions: ['none', 'gzip', 'snappy', 'lz4'],
    idempotent: false,
    static_members: true
  })
}

async function create (given) {
  const admin = new Admin({ clientId: 'create', bootstrapBrokers: [given.bootstrap], ...RETRY })
  await admin.createTopics({ topics: [given.topic], partitions: given.partitions, replicas: 1 })
  for (;;) {
    const metadata = await admin.metadata({ topics: [given.topic], forceUpdate: true })
    if (metadata.topics.get(given.topic)?.partitionsCount === given.partitions) break
    await agent.sleep(50)
  }
  await admin.close()
  agent.emit('created')
}

async function produce (given) {
  const producer = new Producer({
    clientId: 'produce',
    bootstrapBrokers: [given.bootstrap],
    idempotent: true,
    acks: ProduceAcks.ALL,
    compression: given.compression,
    ...RETRY
  })
  for await (const numbers of agent.paced(given)) {
    const messages = numbers.map(number => ({
      topic: given.topic,
      key: Buffer.from(agent.keyOf(number)),
      value: Buffer.from(agent.valueOf(number))
    }))
    await agent.persist(() => producer.send({ messages }))
  }
  await producer.close()
  agent.emit('produced', { count: given.count })
}

// One life of a consumer: it ends when the library gives up, or at SIGTERM.
class Member {
  #given
  #owned
  #consumer
  #messages = []
  #pending = new Map()
  #next = new Map()
  #broken = false
  #began = 0

  constructor (given, owned) {
    this.#given = given
    this.#owned = owned
    this.#consumer = new Consumer({
      clientId: 'consume',
      groupId: given.group,
      bootstrapBrokers: [given.bootstrap],
      groupInstanceId: given.instanceId,
      autocommit: false,
      maxWaitTime: agent.POLL_MS,
      ...RETRY,
      ...(given.protocol === 'consumer'
        ? { groupProtocol: 'consumer', groupRemoteAssignor: given.assignor }
        : {
            sessionTimeout: agent.SESSION_TIMEOUT_MS,
            rebalanceTimeout: 10 * agent.SESSION_TIMEOUT_MS,
            heartbeatInterval: agent.HEARTBEAT_INTERVAL_MS,
            ...(given.assignor === 'range' ? rangeAssignor(given.topic) : {})
          })
    })
  }

  async run (stopping) {
    const stream = await this.#consumer.consume({
      topics: [this.#given.topic],
      mode: 'committed',
      fallbackMode: 'earliest'
    })
    stream.on('data', message => this.#messages.push(message))
    for (const event of ['error', 'close']) {
      stream.on(event, error => {
        if (error) agent.log('stream', error)
        this.#broken = true
      })
    }
    this.#began = Date.now()
    while (!stopping() && !this.#broken && !this.#silent()) {
      this.#notice()
      this.#deliver()
      await this.#commit()
      await agent.sleep(5)
    }
  }

  // The library's heartbeats sometimes end with a connection that broke, and it does not notice.
  #silent () {
    const last = Math.max(this.#consumer.lastHeartbeat?.getTime() ?? 0, this.#began)
    const silent = Date.now() - last > 2 * agent.SESSION_TIMEOUT_MS
    if (silent) agent.log('no heartbeat for twice the session timeout')
    return silent
  }

  // The library changes the assignment beneath its user; this sees it soon after.
  #notice () {
    this.#owned.become(this.#assigned())
    for (const ofPartition of [this.#next, this.#pending]) {
      for (const partition of ofPartition.keys()) {
        if (!this.#owned.has(partition)) ofPartition.delete(partition)
      }
    }
  }

  #deliver () {
    const messages = this.#messages.filter(message => this.#isNew(message))
    this.#messages = []
    if (messages.length === 0) return
    const records = messages.map(message =>
      [message.partition, Number(message.offset), agent.numberIn(message.value)])
    agent.emit('records', { records })
    for (const { partition, offset } of messages) this.#pending.set(partition, offset + 1n)
  }

  // The library does not stop for rebalances: what it fetched before a partition was taken away
  // is not ours to handle, and what it fetches again after it joined was handled already.
  #isNew ({ partition, offset }) {
    if (!this.#owned.has(partition) || offset < (this.#next.get(partition) ?? 0n)) return false
    this.#next.set(partition, offset + 1n)
    return true
  }

  // A commit that a rebalance refused is sent again by the library when it has joined: for
  // partitions that are others' by then, who began at the commit before.
  async #commit () {
    if (this.#pending.size === 0) return
    const pairs = [...this.#pending]
    const printed = pairs.map(([partition, offset]) => [partition, Number(offset)])
    const offsets = pairs.map(([partition, offset]) =>
      ({ topic: this.#given.topic, partition, offset, leaderEpoch: -1 }))
    const generation = this.#consumer.generationId
    try {
      await this.#consumer.commit({ offsets })
    } catch (error) {
      agent.emit('commit_failed', { offsets: printed, error: String(error) })
      return
    }
    const isMine = ([partition]) => generation === this.#consumer.generationId || this.#assigned().includes(partition)
    const overtaken = printed.filter(pair => !isMine(pair))
    if (overtaken.length > 0) agent.emit('commit_overtaken', { offsets: overtaken })
    agent.emit('committed', { offsets: printed.filter(isMine) })
    this.#pending.clear()
  }

  #assigned () {
    const mine = this.#consumer.assignments?.find(each => each.topic === this.#given.topic)
    return mine?.partitions ?? []
  }

  async close () {
    await this.#consumer.close(true)
  }
}

function rangeAssignor (topic) {
  return {
    // The library writes version 0, whatever it is told to call it.
    protocols: [{ name: 'range', version: 0 }],
    partitionAssigner (_, members, topics, metadata) {
      const partitions = metadata.topics.get(topic).partitionsCount
      const share = agent.range(members.keys(), partitions)
      return [...share].map(([memberId, owned]) => ({
        memberId,
        assignments: new Map([[topic, { topic, partitions: owned }]])
      }))
    }
  }
}

async function consume (given) {
  let stopping = false
  agent.stopped.then(() => { stopping = true })
  const owned = new agent.Owned()
  while (!stopping) {
    const member = new Member(given, owned)
    try {
      await member.run(() => stopping)
    } catch (error) {
      agent.log('run', error)
    }
    if (!stopping) owned.become([], 'lost')
    try {
      await member.close()
    } catch (error) {
      agent.log('close', error)
    }
    await agent.sleep(200)
  }
  agent.emit('closed')
}

const given = agent.parse()
await { version, create, produce, consume }[given.command](given)
process.exit(0)
