/** A replica with both roles runs its API in a thread beside the engine. Load and failures of one do not affect the other. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { collector } from '../support/collector.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { patienceMs, startFaultyReplica } from '../support/faulty-replica.ts'
import { receiver } from '../support/receiver.ts'

const hook = await receiver(t)
const hub = await collector(t)
// Spans are exported when it stops.
const replica = await startFaultyReplica(t, { OTEL_EXPORTER_OTLP_ENDPOINT: hub.url, OTEL_BSP_SCHEDULE_DELAY: '3600000' })
await replica.everySecond(hook.url)
/** So many more deliveries. */
const received = (count: number) => hook.received(hook.requests.length + count, patienceMs)

t.test('/metrics combines the metrics of both threads', async t => {
  await received(2)
  const text = await replica.call('/metrics')
  t.match(text, /^pgcue_attempts_total\{result="success"\} [1-9]/m)
  t.match(text, /^pgcue_lateness_seconds_count [1-9]/m)
  t.ok(text.split('\n').includes('pgcue_http_request_duration_seconds_count{method="POST",route="/v1/cues",status="201"} 1'))
  t.match(text, /^pgcue_pool_connections\{pool="api",state="idle"\} [1-9]/m)
  t.match(text, /^pgcue_pool_connections\{pool="engine",state="idle"\} [1-9]/m)
  t.same(pools(text), ['api', 'engine', 'leases', 'results'])
  t.match(text, /^pgcue_engines 1$/m)
  t.same(threads(text), ['api', 'engine'])

  const alone = await startFaultyReplica(t, { ROLES: 'engine' })
  const own = await alone.call('/metrics')
  t.same(threads(own), ['engine'], 'a replica with one role has one thread')
  t.same(names(text), names(own))
  t.equal([...text.matchAll(/^process_resident_memory_bytes /gm)].length, 1)
})

const threads = (text: string) => [...text.matchAll(/^nodejs_eventloop_utilization\{thread="(\w+)"\}/gm)].map(([, name]) => name).sort()
const pools = (text: string) => [...text.matchAll(/^pgcue_pool_connections\{pool="(\w+)",state="idle"\}/gm)].map(([, name]) => name).sort()
const names = (text: string) => [...text.matchAll(/^# TYPE (.*)$/gm)].map(([, name]) => name).sort()

t.test('the API gives way to the engine where both want the same CPU', { skip: process.platform !== 'linux' }, async t => {
  const tasks = `/proc/${replica.pid}/task`
  // Behind the thread's name, which may contain blanks, the nice value is the seventeenth field.
  const nice = (task: string) => Number(readFileSync(`${tasks}/${task}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[16])
  t.equal(nice(String(replica.pid)), 0)
  t.ok(readdirSync(tasks).map(nice).includes(5))
})

t.test('a cue fires every second while a request blocks the API', async t => {
  const { release } = await replica.block()
  let answered = false
  const status = replica.call('/status').then(() => {
    answered = true
  })
  await received(5)
  t.equal(answered, false, 'the API is still held up')
  release()
  await status
})

for (const [how, message] of [
  ['exhaust', /memory/],
  ['throw', /^a fault of the API$/]
] as const) {
  t.test(`restarts the API after ${how} while the engine continues`, async t => {
    const before = replica.errors().length
    replica.end(how)
    await eventually(() => replica.errors().length > before, patienceMs)
    await received(2)
    await eventually(() => replica.call('/status'), patienceMs)
    exactly(t, replica.errors().slice(before), [{ level: 50, msg: 'API thread ended unexpectedly; restarting it', err: { message } }])
    t.equal(replica.errors().length, before + 1)
  })
}

t.test("logs the API's last requests and exports the spans of both threads when the replica stops", async t => {
  await replica.call('/openapi.json')
  replica.signal('SIGTERM')
  t.equal((await replica.ended).code, 0)
  t.equal(replica.lines().filter(({ route }) => route === '/openapi.json').length, 1)
  // On a busy machine, the line before it may be written later.
  t.equal(replica.lines().filter(({ msg }) => msg === 'stopped').length, 1)
  const names = new Set(hub.spans().map(({ name, attributes }) => `${attributes['pgcue.attempt'] ? 'attempt: ' : ''}${name}`))
  t.same(
    ['attempt: POST', 'cue.take_due_cues', 'GET /openapi.json'].filter(name => !names.has(name)),
    []
  )
})
