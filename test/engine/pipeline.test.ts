// Statements that are sent before the previous one has ended.
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { createPipeline } from '../../src/database/pipeline.ts'
import { createPool } from '../../src/database/pool.ts'
import { isAway } from '../../src/errors.ts'
import { createDatabase } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'

const setup = async (t: Parameters<typeof createDatabase>[0], max: number) => {
  const { config } = await createDatabase(t)
  const pool = createPool(config, { max })
  t.teardown(() => pool.end())
  await pool.query('select 1') // is connected
  const pipeline = createPipeline(pool)
  const ask = async (text: string) => (await pipeline.query({ text })).rows[0]
  return { pool, ask }
}

const slow = 'select pg_backend_pid() as pid from pg_sleep(0.1)'
const pid = 'select pg_backend_pid() as pid'

t.test('the database begins a statement while this process is busy', async t => {
  const { pool, ask } = await setup(t, 2)
  const answers = [ask('select pg_backend_pid() as pid from pg_sleep(0.01)'), ask(`${pid}, clock_timestamp() as at`)]
  await turn()
  for (const end = Date.now() + 300; Date.now() < end; );
  const busyUntil = new Date()
  const [first, second] = await Promise.all(answers)
  t.equal(second.pid, first.pid)
  t.ok(second.at < busyUntil)
  t.equal(pool.idleCount, pool.totalCount)
})

t.test('takes no connection while nothing is under way', async t => {
  const { pool, ask } = await setup(t, 1)
  const { pid } = await ask(slow)
  t.equal(pool.idleCount, 1)
  t.same(await Promise.all([ask(slow), ask(slow)]), [{ pid }, { pid }])
  t.equal(pool.idleCount, 1)
})

t.test('one that fails does not affect the next, and their connection stays open', async t => {
  const { pool, ask } = await setup(t, 2)
  const before = await ask(pid)
  const refuse = "do $$ begin raise 'no' using errcode = 'QU001'; end $$"
  exactly(t, await Promise.allSettled([ask(refuse), ask(pid), ask(refuse)]), [
    { reason: { code: 'QU001' } },
    { value: before },
    { reason: { code: 'QU001' } }
  ])
  t.same([pool.totalCount, pool.idleCount], [1, 1])
  t.same(await ask(pid), before)
})

t.test('an outdated statement ends the connection, also before one that succeeds', async t => {
  const { pool, ask } = await setup(t, 2)
  const before = await ask(pid)
  const outdated = "do $$ begin raise 'no' using errcode = '0A000'; end $$"
  exactly(t, await Promise.allSettled([ask(outdated), ask(pid)]), [{ reason: { code: '0A000' } }, { value: before }])
  t.equal(pool.totalCount, 0)
})

t.test('a lost connection fails what is under way, and is replaced', async t => {
  const { pool, ask } = await setup(t, 2)
  const before = await ask(pid)
  const answers = await Promise.allSettled([ask('select pg_terminate_backend(pg_backend_pid())'), ask(slow)])
  t.same(
    answers.map(answer => answer.status === 'rejected' && isAway(answer.reason)),
    [true, true]
  )
  t.equal(pool.totalCount, 0)
  t.not((await ask(pid)).pid, before.pid)
})

t.test('a connection that cannot be opened fails only the statements that wait for it', async t => {
  const { pool, ask } = await setup(t, 2)
  const connect = pool.connect
  pool.connect = async () => {
    throw new Error('timeout exceeded when trying to connect')
  }
  exactly(t, await Promise.allSettled([ask(pid), ask(pid)]), [
    { reason: { message: 'timeout exceeded when trying to connect' } },
    { reason: { message: 'timeout exceeded when trying to connect' } }
  ])
  pool.connect = connect
  t.type((await ask(pid)).pid, 'number')
})

t.test('gives the connection to others who wait for it', async t => {
  const { pool, ask } = await setup(t, 1)
  const ended: string[] = []
  const note = (name: string) => () => void ended.push(name)
  const first = ask(slow).then(note('first'))
  await turn()
  const other = pool.query(slow).then(note('other'))
  const next = [ask(slow).then(note('second')), ask(slow).then(note('third'))]
  await Promise.all([first, other, ...next])
  t.same(ended, ['first', 'other', 'second', 'third'])
})
