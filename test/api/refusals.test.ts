// Refusals cost no more than the refused call, and changes of one cue run one after the other.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pluck } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const hourly = { name: 'hourly', cron: '0 * * * *', worker: true, payload: { task: 'go' } }

/** The service, with a count of its statements by the function called, and of failed ones. */
const watched = async (t: Test) => {
  const service = await build(t, '2030-01-07T08:30:00Z')
  const statements: string[] = []
  let failed = 0
  const query = service.pool.query.bind(service.pool) as (query: { text?: string }, values?: unknown[]) => Promise<unknown>
  service.pool.query = (async (asked: { text?: string }, values?: unknown[]) => {
    statements.push(/from cue\.(\w+)/.exec(asked.text ?? '')?.[1] ?? '')
    try {
      return await query(asked, values)
    } catch (error) {
      failed++
      throw error
    }
  }) as never
  return { ...service, statements, failed: () => failed }
}

t.test('refuses a creation above the limit in the statement that creates cues for others', async t => {
  const { call, as, account, register, pool, statements, failed } = await watched(t)
  const other = await register()
  await pool.query("update cue.plans set cues = 2 where plan = 'free'")
  for (const who of [account, account, other]) await as(who).call('POST', '/v1/cues', hourly)
  statements.length = 0
  const answers = await Promise.all([account, account, account, other, account, other].map(who => as(who).call('POST', '/v1/cues', hourly)))
  t.same(pluck(answers, 'status'), [403, 403, 403, 201, 403, 403])
  t.same(answers[0]!.body.error, {
    code: 'cue_limit_exceeded',
    message: 'Cue limit reached: the plan allows 2 cues. Delete one or change the plan.',
    status: 403
  })
  t.ok(statements.filter(name => name === 'create_each_cue').length < answers.length, 'some of them together')
  t.same(
    statements.filter(name => name === 'create_cue'),
    []
  )
  t.equal(failed(), 0)
  const { body } = await call('GET', '/v1/cues')
  await call('DELETE', `/v1/cues/${body.cues[0].id}`)
  t.equal((await call('POST', '/v1/cues', hourly)).status, 201, 'once one is deleted there is room at once')
})

t.test('25 simultaneous changes of one cue all succeed, one after the other', async t => {
  const { post, call, get, failed } = await watched(t)
  const { id } = await post('/v1/cues', hourly)
  const names = Array.from({ length: 25 }, (_, n) => `name ${n}`)
  const answers = await Promise.all(names.map(name => call('PATCH', `/v1/cues/${id}`, { name, description: `${name}!` })))
  t.same(
    answers.map(({ status, body }) => [status, body.name, body.description]),
    names.map(name => [200, name, `${name}!`])
  )
  t.equal(failed(), 0, 'none had to be computed again')
  const { name, description } = await get(`/v1/cues/${id}`)
  t.equal(description, `${name}!`)
})

t.test('computes a change again if another replica was faster', async t => {
  const { post, call, fn, account } = await watched(t)
  const { id } = await post('/v1/cues', hourly)
  const elsewhere = async (description: string) => {
    for (let version = 1; ; version++) {
      const changed = await fn.updateCue({ account_id: account.id, cue_id: id, version, changes: { description } }).then(
        () => true,
        () => false
      )
      if (changed) return
    }
  }
  const answers = Promise.all([1, 2, 3].map(n => call('PATCH', `/v1/cues/${id}`, { name: `name ${n}` })))
  await Promise.all([elsewhere('x'), elsewhere('y')])
  t.same(pluck(await answers, 'status'), [200, 200, 200])
})

const isOurs = !process.env.TEST_DATABASE_URL // another server's log is not here

t.test("PostgreSQL's log has errors, but no refusals", { skip: !isOurs }, async t => {
  const { as, account, pool } = await watched(t)
  const other = 'a function raises this for the log'
  await t.rejects(pool.query(`do $$ begin raise exception '${other}' using errcode = 'XX001'; end $$`))
  const { status } = await as(account).call('DELETE', '/v1/cues/cue_notInTheLog1')
  t.equal(status, 404)
  const { rows } = await pool.query("select current_setting('data_directory') as directory")
  const log = readFileSync(join(rows[0].directory, '../server.log'), 'utf8')
  t.ok(log.includes(other))
  t.notOk(log.includes('cue_notInTheLog1'))
})
