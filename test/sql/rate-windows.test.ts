import t from 'tap'
import { createFunctions } from '../../src/database/functions.ts'
import { createTestClock } from '../support/clock.ts'
import { createDatabase } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { below, cases, chance } from '../support/seed.ts'

const start = Date.parse('2030-01-01T09:00:00Z')

const { pool } = await createDatabase(t)
const clock = createTestClock(start)
const at = (ms: number) => clock.set(new Date(start + ms))
const fn = createFunctions(pool, clock.now)
t.beforeEach(() => at(0))

t.test('the window matches a plain list of hits under any traffic', async t => {
  let ms = 0
  let hits: number[] = []
  for (let i = 0; i < cases(500); i++) {
    ms += chance(0.1) ? below(70_000) : below(2000)
    at(ms)
    hits = hits.filter(hit => hit > ms - 60_000)
    const allowed = hits.length < 25
    if (allowed) hits.push(ms)
    const answer = await fn.allow({ subject: 'list', limit: 25, window: '1 minute' })
    const expected = { allowed, remaining: 25 - hits.length, reset_at: new Date(start + hits[0]! + 60_000) }
    if (answer.allowed !== expected.allowed || answer.remaining !== expected.remaining || +answer.reset_at !== +expected.reset_at) {
      exactly(t, answer, expected, `request ${i}`)
      return
    }
  }
  t.pass()
})

t.test('a limit in the thousands is never exceeded, and at most 1/500 too strict', async t => {
  const hits: number[] = []
  const ask = async (ms: number) => {
    at(ms)
    const { allowed } = await fn.allow({ subject: 'many', limit: 1700, window: '1 minute' })
    if (allowed) hits.push(ms)
    return allowed
  }
  for (let i = 0; i < 1700; i++) if (!(await ask(i * 10))) t.fail(`request ${i}`)
  t.notOk(await ask(59_999))
  // The entry of the first four leaves with the fourth of them.
  t.notOk(await ask(60_000))
  for (let i = 0; i < 4; i++) t.ok(await ask(60_030))
  t.notOk(await ask(60_030))
  for (const hit of hits) t.ok(hits.filter(other => other > hit - 60_000 && other <= hit).length <= 1700)
  const { rows } = await pool.query("select cardinality(hits) as entries from cue.rate_windows where subject = 'many'")
  t.ok(rows[0].entries <= 500)
})

/** Calls the function again for each row, since the subject depends on it. */
const allowEach = `select hit.* from generate_series(1, $1) n
  cross join lateral cue.allow(p_subject => $2 || repeat('', n), p_limit => $3, p_window => '1 minute', p_now => $4) hit`

t.test('hits of one statement count like hits one after the other', async t => {
  const apart: object[] = []
  const together: object[] = []
  let ms = 0
  for (let i = 0; i < 150; i++) {
    ms += chance(0.05) ? below(70_000) : below(1000)
    at(ms)
    for (const limit of chance(0.02) ? [30, 1700] : [40, 1300]) {
      const count = 1 + below(limit / 10)
      const each = [count, `apart ${limit % 100}`, limit, clock.now()]
      apart.push(...(await pool.query(allowEach, each)).rows)
      const subjects = Array.from({ length: count }, () => `together ${limit % 100}`)
      const asked = [['other', ...subjects], [1, ...subjects.map(() => limit)], clock.now()]
      const { rows } = await pool.query("select * from cue.count_hits($1, $2, '1 minute', false, $3) where place > 1 order by place", asked)
      together.push(...rows.map(({ place, ...row }) => row))
    }
  }
  t.same(together, apart)
})

t.test('after a downgrade, refuses until the window is below the new limit', async t => {
  for (let i = 0; i < 10; i++) {
    at(i * 1000)
    await fn.allow({ subject: 'less', limit: 10, window: '1 minute' })
  }
  exactly(t, await fn.allow({ subject: 'less', limit: 4, window: '1 minute' }), { allowed: false, remaining: 0, retry_after: 57 })
  at(66_000)
  exactly(t, await fn.allow({ subject: 'less', limit: 4, window: '1 minute' }), { allowed: true, remaining: 0 })
})

t.test('a limit whose entries count differently starts from nothing', async t => {
  const allow = (limit: number) => fn.allow({ subject: 'other', limit, window: '1 minute' })
  for (let i = 0; i < 10; i++) await allow(10)
  exactly(t, await allow(1000), { allowed: true, remaining: 999 })
  exactly(t, await allow(1000), { allowed: true, remaining: 998 })
  exactly(t, await allow(10), { allowed: true, remaining: 9 })
})

t.test('a window that never empties keeps counting for months', async t => {
  const day = 86_400_000
  for (let i = 0; i < 60; i++) {
    at(i * day)
    exactly(t, await fn.allow({ subject: 'long', limit: 3, window: '3 days' }), { allowed: true, remaining: Math.max(2 - i, 0) })
  }
  exactly(t, await fn.allow({ subject: 'long', limit: 3, window: '3 days' }), { allowed: false, retry_after: 86_400 })
})

t.test('a clock set back locks nobody out for longer than the window', async t => {
  at(3_600_000)
  for (let i = 0; i < 3; i++) await fn.allow({ subject: 'back', limit: 3, window: '1 minute' })
  at(0)
  exactly(t, await fn.allow({ subject: 'back', limit: 3, window: '1 minute' }), { allowed: true, remaining: 2 })
})

t.test('keeps windows of many subjects apart and prunes old ones', async t => {
  await Promise.all(Array.from({ length: 50 }, (_, i) => fn.allow({ subject: `s${i}`, limit: 5 })))
  at(1_800_000)
  exactly(t, await fn.allow({ subject: 's7', limit: 5 }), { allowed: true, remaining: 3 })
  at(3_600_001)
  await fn.prune({})
  const { rows } = await pool.query("select subject from cue.rate_windows where subject ~ '^s[0-9]'")
  t.same(rows, [{ subject: 's7' }])
})
