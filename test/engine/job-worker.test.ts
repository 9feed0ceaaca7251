// Jobs that call users' servers, on a real pg-boss.
import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import { startJobs } from '../../src/jobs/boss.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

/** Works off a queue whose jobs end when the test says so. */
const setup = async (t: Test, queue = 'notifications') => {
  const { pool } = await createDatabase(t)
  const fn = createFunctions(pool)
  const jobs = await startJobs(pool, pino({ level: 'silent' }))
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= jobs.stop())
  t.teardown(stop)
  const underWay = new Map<string, { end: () => void; fail: (error: Error) => void }>()
  await jobs.work<{ name: string }>(
    queue,
    ({ name }) => new Promise<void>((resolve, reject) => void underWay.set(name, { end: resolve, fail: reject }))
  )
  return {
    underWay,
    stop,
    add: async (account_id: string, name: string) => {
      await fn.addJob({ queue, data: { name, account_id }, singleton_key: name })
      jobs.wake(queue)
    },
    end: (name: string) => {
      underWay.get(name)!.end()
      underWay.delete(name)
    },
    states: async () => {
      const { rows } = await pool.query("select data ->> 'name' as name, state from pgboss.job where name = $1 order by 1", [queue])
      return Object.fromEntries(rows.map(({ name, state }) => [name, state]))
    }
  }
}

t.test('runs few jobs of an account at once, beside those of others', async t => {
  const { add, end, underWay, states } = await setup(t)
  const [hanging, other] = [randomUUID(), randomUUID()]
  for (let n = 0; n < 30; n++) await add(hanging, `hanging ${n}`)
  await add(other, 'other')
  await eventually(() => underWay.has('other'))
  t.equal(underWay.size, 6)
  end('other')
  await eventually(async () => (await states()).other === 'completed')
  for (let ended = 0; ended < 30; ended++) {
    await eventually(() => underWay.size > 0)
    t.ok(underWay.size <= 5)
    end([...underWay.keys()][0]!)
  }
  await eventually(async () => Object.values(await states()).every(state => state === 'completed'))
})

t.test("notifies an account's subscribers one after the other", async t => {
  const { add, end, underWay } = await setup(t, 'memory_updates')
  const [account, other] = [randomUUID(), randomUUID()]
  for (const name of ['a', 'b']) await add(account, name)
  await add(other, 'other')
  await eventually(() => underWay.has('other') && underWay.size === 2)
  const [first] = [...underWay.keys()].filter(name => name !== 'other')
  end(first!)
  await eventually(() => underWay.has(first === 'a' ? 'b' : 'a'))
})

t.test('retries a job whose handler rejects', async t => {
  const { add, underWay, states } = await setup(t)
  await add(randomUUID(), 'one')
  await eventually(() => underWay.has('one'))
  underWay.get('one')!.fail(new Error('not now'))
  await eventually(async () => (await states()).one === 'retry')
})

t.test('stopping returns jobs that take longer', async t => {
  const { add, underWay, states, stop } = await setup(t)
  await add(randomUUID(), 'long')
  await eventually(() => underWay.has('long'))
  await stop()
  t.same(await states(), { long: 'retry' })
})
