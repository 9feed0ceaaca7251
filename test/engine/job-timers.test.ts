/** Waiting jobs start when they are due, on a real pg-boss: every time limit here is shorter than its poll. */
import { randomUUID } from 'node:crypto'
import { type Logger, pino } from 'pino'
import t, { type Test } from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import { queues, startJobs } from '../../src/jobs/boss.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'

const limitMs = 20_000

/** Runs the jobs of these queues. */
const setup = async (
  t: Test,
  queues: string[],
  handle: (name: string, tries: number) => void = () => {},
  log: Logger = pino({ level: 'silent' })
) => {
  const { pool } = await createDatabase(t)
  const fn = createFunctions(pool)
  const startedAt = new Map<string, number[]>()
  const read = async () => {
    const { job_queues, job_waits_ms } = await fn.nextWakes({})
    jobs.expect(job_queues, job_waits_ms)
  }
  const jobs = await startJobs(pool, log, { onDue: read })
  const reading = setInterval(read, 4000)
  t.teardown(async () => {
    clearInterval(reading)
    await jobs.stop()
  })
  for (const queue of queues) {
    await jobs.work<{ name: string }>(queue, async ({ name }, _, tries) => {
      startedAt.set(name, [...(startedAt.get(name) ?? []), Date.now()])
      handle(name, tries)
    })
  }
  return {
    fn,
    pool,
    jobs,
    startedAt,
    add: (queue: string, name: string, start_after = new Date()) =>
      fn.addJob({ queue, data: { name, account_id: randomUUID() }, start_after })
  }
}

t.test('waiting jobs start when due, including retries', async t => {
  const queues = ['alerts', 'notifications', 'memory_updates', 'tickets', 'mails']
  const { add, jobs, startedAt } = await setup(t, queues, (name, tries) => {
    if (name === 'failing' && tries === 0) throw new Error('not now')
  })
  const due = Date.now() + 7000
  for (const queue of queues) await add(queue, queue, new Date(due))
  await add('alerts', 'failing')
  jobs.wake('alerts')
  for (const queue of queues) {
    const starts = await eventually(() => startedAt.get(queue), limitMs)
    t.equal(starts.length, 1, queue)
    t.ok(starts[0]! >= due, 'not before it is due')
  }
  await eventually(() => startedAt.get('failing')?.[1], limitMs)
  const [first, second] = startedAt.get('failing')!
  t.ok(second! - first! >= 10_000, 'ten seconds apart, as the queue says')
})

t.test('starts a job behind others that fail without delay', async t => {
  const { add, jobs, startedAt } = await setup(t, ['mails'], name => {
    if (name !== 'behind') throw new Error('not now')
  })
  for (const name of ['one', 'two', 'three']) await add('mails', name)
  await add('mails', 'behind')
  jobs.wake('mails')
  t.equal((await eventually(() => startedAt.get('behind'), limitMs)).length, 1)
})

t.test('finds the next start of each queue, excluding executions and running jobs', async t => {
  const { fn, pool } = await setup(t, [])
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000)
  for (const seconds of [90, 60, 120]) await fn.addJob({ queue: 'alerts', data: {}, start_after: inSeconds(seconds) })
  await fn.addJob({ queue: 'mails', data: {}, start_after: inSeconds(-3) })
  await fn.addJob({ queue: 'notifications', data: {}, start_after: inSeconds(5) })
  await pool.query("update pgboss.job set state = 'active' where name = 'notifications'")
  await pool.query("insert into pgboss.job (name, start_after) select 'attempts', now() + interval '1 second' from generate_series(1, 3)")
  const found = async (past: string) =>
    (await pool.query('select * from cue.next_jobs($1)', [past])).rows
      .map(({ queue, wait_ms }) => [queue, Math.round(wait_ms / 10_000) * 10])
      .sort()
  t.same(await found('0 seconds'), [['alerts', 60]])
  t.same(await found('1 minute'), [
    ['alerts', 60],
    ['mails', 0]
  ])
})

t.test('logs each try of a job that fails, in every queue', async t => {
  const lines: Record<string, unknown>[] = []
  const log = pino({}, { write: line => void lines.push(JSON.parse(line)) })
  const names = queues.map(({ name }) => name).filter(name => name !== 'attempts')
  const { fn, pool } = await setup(
    t,
    names,
    name => {
      throw new Error(`not ${name}`)
    },
    log
  )
  const ids = new Map(names.map(name => [name, randomUUID()]))
  for (const [queue, id] of ids) await fn.addJob({ queue, id, data: { name: queue, account_id: randomUUID() } })
  const failed = () => lines.filter(({ msg, tries }) => msg === 'job failed' && tries === 1)
  await eventually(() => failed().length === names.length, limitMs)
  exactly(
    t,
    names.map(queue => failed().find(line => line.queue === queue)),
    names.map(queue => ({ level: 40, queue, job_id: ids.get(queue), err: { message: `not ${queue}` } }))
  )
  // A failure is logged before pg-boss has written when the job is tried again.
  await eventually(async () => {
    await pool.query("update pgboss.job set start_after = now() where name = 'tickets' and state = 'retry'")
    return lines.some(({ queue, tries }) => queue === 'tickets' && tries === 2)
  }, limitMs)
})
