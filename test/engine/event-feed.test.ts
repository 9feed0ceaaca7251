/**
 * The feed under writers whose transactions take from 1 to 500 ms and end in any order, publishers that are killed, and readers that reconnect at
 * random: each reader gets each event, and those of one object in their order. TEST_CASES=100 makes 200,000 events.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import t, { type Test } from 'tap'
import { createClient, type Event } from '../../src/client/index.ts'
import { below, cases, chance } from '../support/seed.ts'
import { build, eventually } from '../support/setup.ts'

const transactions = cases(8)
const writers = 20
const objects = 40

t.setTimeout(600_000 + 2000 * transactions)

/** Three processes that publish; each is killed now and then, and another one takes its place. */
const startPublishers = (t: Test, url: string) => {
  const stopping = new AbortController()
  const program = fileURLToPath(new URL('../support/publisher.ts', import.meta.url))
  let killed = 0
  const keepOne = async () => {
    while (!stopping.signal.aborted) {
      const child = spawn(process.execPath, [program, url], { stdio: ['ignore', 'pipe', 'ignore'] })
      await once(child.stdout, 'data')
      await delay(2000 + below(4000), undefined, { signal: stopping.signal }).catch(() => {})
      child.kill('SIGKILL')
      killed++
    }
  }
  const running = [keepOne(), keepOne(), keepOne()]
  const stop = async () => {
    stopping.abort()
    await Promise.all(running)
    return killed
  }
  t.teardown(stop)
  return stop
}

type Written = { counts: number[]; committedAt: Map<string, number> }

/** Writes events of objects, each under the lock of its object until the commit; some transactions are rolled back. */
const write = async (t: Test, url: string, account_id: string, written: Written) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  for (let n = 0; n < transactions; n++) {
    const object = below(objects)
    await client.query('begin')
    // Older than the transactions that the lock below waits for.
    await client.query('select pg_current_xact_id()')
    await client.query('select pg_advisory_xact_lock($1)', [object])
    const first = written.counts[object]!
    const count = 1 + below(24)
    await client.query(
      `select cue.add_event($1, 'limit.reached', jsonb_build_object('limit', 'x', 'object', $2::int, 'n', n)) from generate_series($3::int, $4) as n`,
      [account_id, object, first, first + count - 1]
    )
    await delay(1 + below(500))
    if (chance(0.1)) await client.query('rollback')
    else {
      written.counts[object] = first + count
      await client.query('commit')
      const at = performance.now()
      for (let i = 0; i < count; i++) written.committedAt.set(`${object} ${first + i}`, at)
    }
  }
}

/** What a reader has got, by object, without repetitions. */
const createNotes = ({ committedAt }: Written) => {
  const ids = new Set<string>()
  const seen: number[][] = Array.from({ length: objects }, () => [])
  const latencies: number[] = []
  const note = ({ id, type, data }: Event) => {
    const { object, n } = data as { object?: number; n: number }
    // The service's own one says that there were 100,000 in a day.
    if (type !== 'limit.reached' || object === undefined || ids.has(id)) return
    ids.add(id)
    seen[object]!.push(n)
    const at = committedAt.get(`${object} ${n}`)
    if (at !== undefined) latencies.push(performance.now() - at)
  }
  return { seen, latencies, note, count: () => ids.size }
}

t.test('readers get every event, in the order of its object', async t => {
  const { app, account, url } = await build(t)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const baseUrl = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const client = createClient({ baseUrl, apiKey: account.api_key })
  const written: Written = { counts: Array(objects).fill(0), committedAt: new Map() }
  const notes = Array.from({ length: 3 }, () => createNotes(written))
  const reading = new AbortController()
  t.teardown(() => reading.abort())
  /** Reads until it is interrupted, which happens every half second or so, and then again from the latest cursor. */
  const reconnecting = async (read: (cursor: string, signal: AbortSignal) => Promise<string>) => {
    for (let cursor = 'start'; !reading.signal.aborted; ) {
      const signal = AbortSignal.any([reading.signal, AbortSignal.timeout(100 + below(900))])
      cursor = await read(cursor, signal)
    }
  }
  const readers = [
    reconnecting(async (cursor, signal) => {
      const feed = client.events({ after: cursor, limit: 1 + below(100) }, { signal })
      for await (const event of feed) notes[0]!.note(event)
      return feed.cursor ?? cursor
    }),
    reconnecting(async cursor => {
      const page = await client.events({ after: cursor, limit: 1 + below(100), wait: 1 })
      page.events.forEach(notes[1]!.note)
      return page.cursor
    }),
    reconnecting((cursor, signal) => readStream(`${baseUrl}/v1/events`, account.api_key, cursor, signal, notes[2]!.note))
  ]
  const stopPublishers = startPublishers(t, url)
  await Promise.all(Array.from({ length: writers }, () => write(t, url, account.id, written)))
  const total = written.counts.reduce((sum, count) => sum + count, 0)
  await eventually(() => notes.every(({ count }) => count() >= total), 60_000)
  reading.abort()
  await Promise.all(readers)
  t.ok((await stopPublishers()) >= 3, 'publishers were killed')
  const expected = written.counts.map(count => Array.from({ length: count }, (_, n) => n))
  for (const [n, { seen, latencies }] of notes.entries()) {
    t.same(seen, expected, `reader ${n} has all ${total}, in order`)
    latencies.sort((a, b) => a - b)
    t.comment(`reader ${n}: p99 ${Math.round(latencies[Math.floor(latencies.length * 0.99)] ?? 0)} ms after the commit`)
  }
})

/** Reads a stream from a cursor; returns the id of its last message. */
const readStream = async (url: string, key: string, cursor: string, signal: AbortSignal, note: (event: Event) => void): Promise<string> => {
  const from = cursor === 'start' ? '?after=start' : ''
  try {
    const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...(from === '' && { 'last-event-id': cursor }) }
    const response = await fetch(url + from, { headers, signal })
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const messages = (text + chunk).split('\n\n')
      text = messages.pop()!
      for (const message of messages) {
        const [, type, id, data] = /^(?:event: (.*)\n)?id: (.*)\ndata: (.*)$/.exec(message)!
        if (type === undefined) note(JSON.parse(data!))
        cursor = id!
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return cursor
}
