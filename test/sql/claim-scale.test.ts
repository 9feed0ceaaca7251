/** Claims under load: never two holders, and no slower with a backlog. TEST_CASES=250 makes a million attempts. */
import t from 'tap'
import { type ClaimExecutionsRow, createFunctions } from '../../src/database/functions.ts'
import { createPool } from '../../src/database/pool.ts'
import { testConfig } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'
import { cases, chance, random } from '../support/seed.ts'
import { addWaiting, serviceAt } from '../support/service.ts'

const serve = serviceAt('2030-01-15T09:00:00Z')
const attempts = cases(4000)

t.test('fifty workers on three replicas never claim the same execution twice', { timeout: 3_600_000 }, async t => {
  const service = await serve()
  const { account, cue, url, clock, rows } = service
  const replicas = [1, 2, 3].map(() => {
    const pool = createPool(testConfig(url), { max: 6 })
    t.teardown(() => pool.end())
    return createFunctions(pool, clock.now)
  })
  const cue_id = await cue({ retry: { max_attempts: 10 } })
  const ids = await addWaiting(service, cue_id, Math.ceil(attempts / 10))
  const wins = new Map<string, ClaimExecutionsRow[]>()
  let left = attempts
  let refused = 0
  // All are after the same few at a time; now and then one takes whatever comes next, or gives back what it has, and others get it.
  const claimer = async (n: number) => {
    const fn = replicas[n % 3]!
    const worker_id = `w${n}`
    while (left-- > 0) {
      const at = Math.floor(((attempts - left) / attempts) * ids.length + random() * 5)
      const claims = await fn.claimExecutions(
        chance(0.8)
          ? { account_id: account.id, worker_id, execution_id: ids[Math.min(at, ids.length - 1)] }
          : { account_id: account.id, worker_id, limit: 2, tasks: chance(0.5) ? ['go'] : undefined }
      )
      if (claims.length === 0) refused++
      for (const claim of claims) {
        wins.set(claim.execution_id, [...(wins.get(claim.execution_id) ?? []), claim])
        if (chance(0.1))
          await fn.releaseExecution({ account_id: account.id, execution_id: claim.execution_id, claim_token: claim.claim_token })
      }
    }
  }
  await Promise.all(Array.from({ length: 50 }, (_, n) => claimer(n)))

  const executions = await rows('select id, status, attempts, lost_attempts, claim_token, claimed_by_worker from cue.executions')
  const twice = executions.filter(({ id, attempts, lost_attempts, status, claim_token }) => {
    const claims = wins.get(id) ?? []
    const numbers = claims.map(claim => claim.attempt).sort((a, b) => a - b)
    const holds =
      status === 'delivering' ? claims.filter(claim => claim.claim_token === claim_token && claim.attempt === attempts).length : 0
    // One claim for each attempt, all but the last given back.
    return numbers.some((number, i) => number !== i + 1) || numbers.length !== attempts || attempts - lost_attempts !== holds
  })
  t.strictSame(twice, [])
  t.equal((await rows('select count(*)::int as n from cue.attempts where result <> $1', ['lost']))[0].n, 0)
  t.ok(refused > attempts / 20, `they were in each other's way: ${refused} of ${attempts} attempts got nothing`)
})

t.test(`claiming and listing read as much with ${spelled(20_000)} waiting executions as with 1,000`, { timeout: 300_000 }, async t => {
  const service = await serve()
  const { account, cue, pool, clock } = service
  const cue_id = await cue()
  const client = await pool.connect()
  t.teardown(() => client.release())
  const buffers = async (call: string, values: unknown[]) => {
    const { rows } = await client.query(`explain (analyze, buffers, timing off, format json) select * from ${call}`, [
      account.id,
      clock.now(),
      ...values
    ])
    const { Plan } = rows[0]['QUERY PLAN'][0]
    if (Plan['Actual Rows'] === 0) throw new Error(`${call} gives nothing`)
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
  }
  const mean = async (call: string, values: () => unknown[] = () => []) => {
    await pool.query('vacuum analyze cue.executions, cue.cue_runs, cue.workers') // what earlier claims wrote would be read, too
    let sum = 0
    for (let n = 0; n < 30; n++) {
      const read = await buffers(call, values())
      if (n >= 10) sum += read / 20 // by then plans are made
    }
    return sum
  }
  const measure = async (ids: string[]) => {
    const unclaimed = ids.toReversed().values()
    return {
      'the next of a task': await mean("cue.claim_executions($1, 'w', p_tasks => '{go}', p_now => $2)"),
      'the next of several': await mean("cue.claim_executions($1, 'w', p_tasks => '{go,a,b}', p_limit => 2, p_now => $2)"),
      'the next of all': await mean("cue.claim_executions($1, 'w', p_limit => 2, p_now => $2)"),
      'one by id': await mean("cue.claim_executions($1, 'w', p_execution_id => $3, p_now => $2)", () => [unclaimed.next().value]),
      'a list of a task': await mean("cue.claimable_page($1, 'go', p_now => $2)"),
      'a list of all': await mean('cue.claimable_page($1, p_now => $2)')
    }
  }
  const few = await measure(await addWaiting(service, cue_id, 1000))
  const many = await measure(await addWaiting(service, cue_id, scaled(20_000) - 1000))
  for (const [what, read] of Object.entries(few)) {
    // A deeper index is a page more for each look into it; a list looks up each of its fifty twice. A claim also passes the versions of rows that
    // those before it have written.
    const deeper = what.startsWith('a list') ? 100 : 30
    const now = many[what as keyof typeof many]
    const found = `${what}: ${Math.round(read)} buffers, then ${Math.round(now)}`
    t.comment(found)
    t.ok(now <= read * 1.2 + deeper, found)
  }
})
