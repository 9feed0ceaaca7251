/** The ten questions of sql/README.md, "On call", as cue_operator asks them. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import pg from 'pg'
import t, { type Test } from 'tap'
import { questions } from '../../src/operator/on-call.ts'
import { nominalSlots } from '../../src/schedule/schedule.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { listening } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'
import { build, error } from '../support/setup.ts'
import { type Row, refused, resultsOf, stage } from '../support/stage.ts'
import { connectAdmin } from '../support/template.ts'

const OPERATOR_TOKEN = 'operator-token-0123456789'
const readme = readFileSync(new URL('../../sql/README.md', import.meta.url), 'utf8')
const [, section = ''] = /\n## On call\n([\s\S]*?)\n## /.exec(readme)!
/** Question → statement, in their order. */
const answers = [...section.matchAll(/^\*\*(.+\?)\*\*[\s\S]*?```sql\n(.+;)\n```/gm)].map(([, question = '', sql = '']) => ({
  question,
  sql
}))

/** A login with only the rights of cue_operator. */
const asOperator = async (t: Test, url: string) => {
  const [name, password] = [`test_${randomBytes(6).toString('hex')}`, randomBytes(12).toString('hex')]
  const admin = await connectAdmin()
  await admin.client.query(`create role ${name} login password '${password}' in role cue_operator`).finally(() => admin.end())
  const client = new pg.Client(Object.assign(new URL(url), { username: name, password }).href)
  await client.connect()
  t.teardown(async () => {
    await client.end()
    const admin = await connectAdmin()
    await admin.client.query(`drop role ${name}`).catch(() => {})
    await admin.end()
  })
  return { name, ask: async (sql: string): Promise<Row[]> => (await client.query(sql)).rows }
}

t.test('each of the ten questions has one statement that cue_operator can run, and one command', async t => {
  const stage = await listening(t, await build(t, undefined, { env: { RATE_LIMIT: 'on', OPERATOR_TOKEN } }))
  const { url, post, fn, account } = stage
  const hook = { name: 'hook', callback_url: 'http://127.0.0.1:9999/', cron: '* * * * *' }
  const { id } = await post('/v1/cues', hook)
  await post(`/v1/cues/${id}/pause`, { reason: 'a flood' })
  const failing = await post('/v1/cues', { ...hook, name: 'failing', cron: '0 0 1 1 *', retry: { max_attempts: 3, backoff_minutes: [10] } })
  await post(`/v1/cues/${failing.id}/fire`)
  await fn.beatEngine({ engine_id: '00000000-0000-0000-0000-000000000001', name: 'blue', version: 'v', missed_after: '1 day' })
  await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), refused, new Date()))
  const { name, ask } = await asOperator(t, url)
  t.same(
    answers.map(({ question }) => question),
    Object.values(questions).map(({ text }) => text)
  )
  const replies = []
  for (const { sql } of answers) replies.push(await ask(sql.replaceAll('cue_…', id).replaceAll('<account id>', account.id)))
  const [late, floods, forecast, stuck, changes, retries, replicas, destinations, disk, held] = replies as [Row[], ...Row[][]] & Row[][]
  exactly(t, late, [{ cue_id: id, late_by: null, paused: 'user: a flood', held: null, no_engine: false }])
  exactly(t, floods, [{ account_id: account.id, email: account.email, executions: '1', requests: '4' }])
  t.equal(forecast!.length, 60)
  t.same(stuck, [])
  exactly(
    t,
    changes!.map(({ event, actor }) => `${event} by ${actor.slice(0, 4)}`),
    ['cue.paused by key:', 'cue.created by key:']
  )
  exactly(t, retries, [{ waiting: '1' }])
  t.ok(retries![0].last_at > Date.now() + 9 * 60_000)
  exactly(t, replicas, [{ name: 'blue', is_alive: true }])
  exactly(t, destinations, [{ host: '127.0.0.1:9999', accounts: '1', attempts: '1', failures: '1', response_p95_ms: 5 }])
  t.same(
    disk!.map(row => [row.name, row.bytes_per_day > 0]),
    [
      ['executions', true],
      ['attempts', true],
      ['WAL', true],
      ['whole database', false]
    ]
  )
  exactly(t, held, [{ account_id: null, reason: 'a flood of retries', by: name }])

  const env = { PGCUE_API_KEY: OPERATOR_TOKEN }
  const cli = (...args: string[]) => stage.cli(['operator', ...args], { env })
  for (const [n, [question, { text, needsCue }]] of Object.entries(questions).entries()) {
    const answer = await stage.json(['operator', question, ...(needsCue ? [id] : [])], { env })
    t.equal(answer.question, text)
    const columns = (rows: Row[]) => rows.map(row => Object.keys(row))
    if (question !== 'holds') t.same(columns(answer.rows), columns(replies[n]!), question)
  }
  exactly(t, await cli('late', id), {
    code: 0,
    out: /^Why is this cue late\?\ncue id +cue_\w+\naccount id +\S+\nheld +a flood of retries\npaused +user: a flood\n$/
  })
  exactly(t, await cli('replicas'), { code: 0, out: /\nNAME +IS_ALIVE [^\n]+\nblue +true / })
  exactly(t, await cli('holds'), { code: 0, out: /a flood of retries/ })
  exactly(t, await cli('release', '--account', account.id), { code: 0, out: 'It was not held.\n' })
  exactly(t, await cli('release'), { code: 0, out: 'Released.\n' })
  exactly(t, await cli('holds'), { code: 0, out: /\nNothing is held\. To stop everything: pgcue operator hold REASON\n$/ })
  exactly(t, await cli('hold', 'spam', '--account', account.id), { code: 0, out: /^account id +\S+\nreason +spam\nby +operator\n/ })
  exactly(t, await cli('release', '--account', account.id), { code: 0, out: 'Released.\n' })
  exactly(t, await cli('late', 'cue_000000000000'), { code: 3, err: /not found/ })
  exactly(t, await cli('late'), { code: 2, err: /missing argument CUE_ID/ })
  exactly(t, await cli('why'), { code: 2, err: /unknown question why: late, floods,/ })
  exactly(t, await stage.call('GET', '/v1/operator/on-call/floods'), error('insufficient_scope', 403))
})

t.test('why_late names each reason, and only those that apply', async t => {
  const { fn, rows, cue, account_id, clock, connect, beat } = await stage(t)
  const engine_id = '00000000-0000-0000-0000-000000000001'
  const report = (reports: object) => fn.beatEngine({ engine_id, version: 'v', missed_after: '1 day', ...reports })
  const reasons = async (id: string) => {
    const [row] = await rows('select * from cue.why_late($1, $2)', [id, clock.now()])
    const { cue_id, account_id, due_at, late_by, ...rest } = row
    return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== false))
  }
  const id = await cue()
  clock.advance('5 seconds')
  await beat()
  t.same(await reasons(id), {})
  exactly(t, await rows('select late_by::text from cue.why_late($1, $2)', [id, clock.now()]), [{ late_by: /^00:00:05(\.000\d+)?$/ }])
  await report({ full_accounts: [account_id] })
  t.same(await reasons(id), { account_full: true })
  await report({ passed_over: [id] })
  t.same(await reasons(id), { passed_over: true })
  await report({})
  await fn.hold({ reason: 'flood', account_id, actor: 'x' })
  t.same(await reasons(id), { held: 'flood' })
  await fn.release({ account_id })
  const { client } = await connect()
  for (const statement of [
    `select from cue.cue_runs where cue_id = '${id}' for update`,
    `select from cue.cues where id = '${id}' for update`,
    `select from cue.accounts where id = '${account_id}' for update`
  ]) {
    await client.query(`begin; set local application_name = 'somebody'; ${statement}`)
    exactly(t, await reasons(id), { locked_by: /^process \d+ \(.*\), since \d{4}-/ }, statement)
    await client.query('rollback')
  }
  t.same(await reasons(id), {})
  await rows('update cue.accounts set limit_reached_at = $1', [new Date(clock.now().getTime() - 25 * 3_600_000)])
  t.same(await reasons(id), { over_limit: true })
  await rows('update cue.accounts set limit_reached_at = null')
  const work = await cue({ transport: 'worker', callback_url: null }, { next_run: null })
  const [execution] = await rows('select id from cue.fire_cue($1, $2, p_now => $3)', [account_id, work, clock.now()])
  t.same(await reasons(work), { no_worker: true })
  const queued = await cue({ overlap: 'skip' }, { next_run: null })
  const [running] = await rows('select id from cue.fire_cue($1, $2, p_now => $3)', [account_id, queued, clock.now()])
  t.same(await reasons(queued), { previous_run: running.id })
  await rows('select cue.put_gate($1, $2, $3, p_now => $4)', [account_id, 'g', '{"parallel": 5}', clock.now()])
  await rows('select cue.pause_gate($1, $2, p_now => $3)', [account_id, 'g', clock.now()])
  const gated = await cue({ gate: 'g#a' }, { next_run: null })
  await rows('select cue.fire_cue($1, $2, p_now => $3)', [account_id, gated, clock.now()])
  exactly(t, await reasons(gated), { gate: /^g#a: paused, since \d{4}-/ })
  t.ok(execution.id)
  clock.advance('1 minute')
  t.same(await reasons(id), { no_engine: true })
  await t.rejects(rows("select * from cue.why_late('cue_000000000000')"), { code: 'QU001' })
})

t.test('the forecast counts all slots of every kind of schedule, until they end', async t => {
  const { rows, cue, clock } = await stage(t, '2030-01-15T09:00:30Z')
  const at = (time: string) => new Date(`2030-01-15T${time}Z`)
  const rules = (schedule_rules: object) => ({ cron: null, schedule_rules })
  for (let n = 0; n < 3; n++) await cue({ cron: '*/10 * * * *' }, { next_run: at('09:10:00') })
  await cue({ cron: '0,30 5 9 * * *' }, { next_run: at('09:05:00') })
  await cue({ cron: null, schedule_type: 'once', at: '2030-01-15T09:07:00Z' }, { next_run: at('09:07:00') })
  await cue(rules({ every: '25m' }), { next_run: at('09:12:00') })
  await cue(rules({ crons: ['15 * * * *', '*/15 9 * * *'] }), { next_run: at('09:15:00') })
  await cue({ cron: '20 * * * *', schedule_rules: { max_runs: 1 } }, { next_run: at('09:20:00') })
  await cue(rules({ every: '1m', ends_at: '2030-01-15T09:42:00Z' }), { next_run: at('09:41:00') })
  await cue({ cron: '0 0 * * *' }, { next_run: at('09:00:10') })
  await cue({}, { next_run: null })
  const forecast = await rows('select * from cue.forecast($1)', [clock.now()])
  t.equal(forecast.length, 60)
  t.same(
    forecast.filter(({ slots }) => Number(slots) > 0).map(({ minute, slots }) => [minute.toISOString().slice(11, 16), Number(slots)]),
    [
      ['09:05', 2],
      ['09:07', 1],
      ['09:10', 3],
      ['09:12', 1],
      ['09:15', 1],
      ['09:20', 4],
      ['09:30', 4],
      ['09:37', 1],
      ['09:40', 3],
      ['09:41', 1],
      ['09:42', 1],
      ['09:45', 1],
      ['09:50', 3]
    ]
  )
})

const list = (item: fc.Arbitrary<string>) => fc.array(item, { minLength: 1, maxLength: 3 }).map(items => items.join(','))
const field = (min: number, max: number, names: string[] = []) => {
  const value = fc.oneof(fc.integer({ min, max }).map(String), ...(names.length > 0 ? [fc.constantFrom(...names)] : []))
  const range = fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map(pair => pair.sort((a, b) => a - b).join('-'))
  return list(fc.oneof(fc.constantFrom('*', '?', '*/2', `${min}/3`), value, range))
}
const cron = fc
  .tuple(
    fc.constantFrom('', '0 ', '*/20 ', '5,7-9 '),
    field(0, 59),
    fc.oneof(fc.constant('*'), field(0, 23)),
    fc.oneof(fc.constant('*'), field(1, 31)),
    fc.oneof(fc.constant('*'), field(1, 12, ['jan', 'FEB', 'mar'])),
    fc.oneof(fc.constant('*'), field(0, 7, ['sun', 'MON', 'sat']))
  )
  .map(([seconds, ...fields]) => `${seconds}${fields.join(' ')}`)

t.test('cron expressions have the same slots in SQL as in the service', async t => {
  const { rows } = await stage(t)
  const zones = ['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/New_York']
  await always(
    fc.asyncProperty(
      fc.oneof(cron, fc.constantFrom('@hourly', '@DAILY', ' 0 9 * * 1-5 ')),
      fc.constantFrom(...zones),
      fc.integer({ min: 0, max: 20_000 }),
      async (cron, timezone, hours) => {
        // Not in the hours in which clocks are changed.
        const from = Date.UTC(2030, 5, 1) + ((hours * 3_600_000) % (120 * 86_400_000))
        const until = from + 3_600_000
        let slots: ReturnType<typeof nominalSlots>
        try {
          slots = nominalSlots({ type: 'recurring', cron, timezone })
        } catch {
          return // a step larger than the range, or no such day
        }
        const expected: number[] = []
        for (let at = slots.next(from - 1); at < until; at = slots.next(at)) expected.push(at)
        const found = await rows('select s from cue.cron_slots($1, $2, $3, $4) as s order by s', [
          cron,
          timezone,
          new Date(from),
          new Date(until)
        ])
        t.same(
          found.map(({ s }) => Number(s)),
          expected,
          `${cron} ${timezone}`
        )
      }
    )
  )
})

t.test('a flood shows which account it comes from: requests by key and session, executions, for five minutes', async t => {
  const { fn, rows, clock, account_id, account, cue } = await stage(t)
  const other = await account()
  const key = '00000000-0000-7000-8000-00000000000a'
  await rows(
    `insert into cue.api_keys (id, account_id, label, key_hash, prefix, scopes, is_default, created_by, created_at)
     values ($1, $2, 'k', '\\x00', 'svc_sk_a', '{read}', false, 'register', $3)`,
    [key, other, clock.now()]
  )
  const ask = async (subject: string, times: number) => {
    for (let n = 0; n < times; n++) await fn.allow({ subject, limit: 1000, window: '1 minute' })
  }
  const floods = async () =>
    Object.fromEntries(
      (await rows('select * from cue.floods($1)', [clock.now()])).map(row => [
        row.account_id,
        [Number(row.executions), Number(row.requests)]
      ])
    )
  await ask(`key:${key}`, 3)
  clock.advance('1 minute')
  await ask(`key:${key}`, 2)
  await ask(`sessions:${account_id}`, 1)
  await ask('address:127.0.0.1', 5)
  const id = await cue({}, { next_run: null })
  for (let n = 0; n < 2; n++) await fn.fireCue({ account_id, cue_id: id })
  t.same(await floods(), { [other]: [0, 5], [account_id]: [2, 1] })
  clock.advance('4 minutes')
  t.same(await floods(), { [other]: [0, 2], [account_id]: [2, 1] })
  clock.advance('70 seconds')
  t.same(await floods(), {})
})
