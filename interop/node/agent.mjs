// What the Node agents share: the command line and the output of interop/README.md.

import { parseArgs } from 'node:util'
import { writeSync } from 'node:fs'

export const VALUE_BYTES = 100
export const SESSION_TIMEOUT_MS = 6000
export const HEARTBEAT_INTERVAL_MS = 1000
export const POLL_MS = 100

export function parse () {
  const [command, ...rest] = process.argv.slice(2)
  const names = ['bootstrap', 'topic', 'partitions', 'compression', 'start', 'count', 'rate',
    'group', 'protocol', 'instance-id', 'assignor']
  const options = Object.fromEntries(names.map(name => [name, { type: 'string' }]))
  const { values } = parseArgs({ args: rest, options })
  return {
    command,
    bootstrap: values.bootstrap,
    topic: values.topic,
    partitions: Number(values.partitions ?? 1),
    compression: values.compression ?? 'none',
    start: Number(values.start ?? 0),
    count: Number(values.count ?? 0),
    rate: Number(values.rate ?? 0),
    group: values.group,
    protocol: values.protocol ?? 'classic',
    instanceId: values['instance-id'],
    assignor: values.assignor
  }
}

// Written at once, whatever standard output is.
export function emit (event, fields = {}) {
  writeSync(1, `${JSON.stringify({ event, ...fields })}\n`)
}

export function log (...words) {
  console.error(...words)
}

export function sleep (ms) {
  return new Promise(resolve => setTimeout(resolve, ms))
}

export const keyOf = number => `k${number}`
export const valueOf = number => String(number).padEnd(VALUE_BYTES)
export const numberIn = value => Number(value.toString().trim())

// The numbers to produce, in batches, at most `rate` a second; 0 is without limit.
export async function * paced ({ start, count, rate }, largest = 100) {
  const began = Date.now()
  let sent = 0
  while (sent < count) {
    const due = rate ? Math.floor((Date.now() - began) * rate / 1000) + 1 : count
    const size = Math.min(due, count, sent + largest) - sent
    if (size <= 0) {
      await sleep(5)
      continue
    }
    yield Array.from({ length: size }, (_, index) => start + sent + index)
    sent += size
  }
}

// Sends again and again until it succeeds. Both libraries give up when the broker is away, and
// an application that cannot lose a record then has to send it once more: an acknowledgement
// that got lost may leave it in the log twice, idempotent or not.
export async function persist (send) {
  for (;;) {
    try {
      return await send()
    } catch (error) {
      log('send', error)
      await sleep(200)
    }
  }
}

// The partitions that each member gets from the assignor `range`, of one topic.
export function range (memberIds, partitions) {
  const sorted = [...memberIds].sort()
  const share = Math.floor(partitions / sorted.length)
  const larger = partitions % sorted.length
  let next = 0
  return new Map(sorted.map((memberId, index) => {
    const size = share + (index < larger ? 1 : 0)
    const owned = Array.from({ length: size }, (_, offset) => next + offset)
    next += size
    return [memberId, owned]
  }))
}

// Resolves on SIGTERM or SIGINT.
export const stopped = new Promise(resolve => {
  process.once('SIGTERM', resolve)
  process.once('SIGINT', resolve)
})

// What a member owns, by what a library says that it owns now.
export class Owned {
  #partitions = []

  has (partition) {
    return this.#partitions.includes(partition)
  }

  // Prints how the assignment changes; `event` names how partitions go.
  become (partitions, event = 'revoked') {
    const gone = this.#partitions.filter(each => !partitions.includes(each))
    const come = partitions.filter(each => !this.#partitions.includes(each))
    this.#partitions = [...partitions]
    if (gone.length > 0) emit(event, { partitions: gone })
    if (come.length > 0) emit('assigned', { partitions: come })
  }
}
