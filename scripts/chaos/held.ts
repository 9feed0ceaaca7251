/**
 * Executions that wait for others or for a person, over several replicas that crash and lose their database:
 *
 *   chain      20 cues follow one another, webhooks and workers in turn, `--n` times (at most 1,000): each runs once per lineage
 *   approvals  100 executions wait for approval: nothing is lost, each is reminded of once, and each that is approved runs once
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createFunctions } from '../../src/database/functions.ts'
import { addCues } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { briefly, kill, type Result, raise, untilCount } from './gates.ts'

type Options = { n: number; replicas: number }

const LENGTH = 20
const percentile = (values: number[], share: number) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? 0

const playChain = async (stage: Stage, { n, replicas }: Options): Promise<Result> => {
  const lineages = Math.min(n, 1000)
  const world = await raise(stage, 'chain', LENGTH / 2, null, { columns: `callback_url = callback_url || '/200/1', ${briefly}` })
  const { pool, rows, account, cues } = world
  const workers = await addCues(pool, { accounts: [account], count: LENGTH / 2 })
  const links = cues.flatMap((id, n) => [id, workers[n]!])
  for (const [n, id] of links.entries()) {
    const after = { cues: [links[n - 1]], when: 'success', mode: 'any', within: '1d' }
    if (n > 0) await rows('update cue.cues set after = $2, schedule_type = null, cron = null where id = $1', [id, JSON.stringify(after)])
  }
  await rows('select cue.link_cues($1)', [links])
  await Promise.all(Array.from({ length: replicas }, world.start))
  await rows('update cue.plans set fires_per_hour = 1000000') // replicas have set it
  const fn = createFunctions(pool)
  let isOver = false
  const work = async () => {
    while (!isOver) {
      const claimed = await rows('select * from cue.claim_executions($1, $2, p_limit => 100)', [account.id, 'w']).catch(() => [])
      await Promise.all(
        claimed.map(({ execution_id, claim_token }) =>
          fn.reportOutcome({ account_id: account.id, execution_id, success: true, claim_token })
        )
      ).catch(() => {})
      if (claimed.length === 0) await delay(10)
    }
  }
  const working = work()
  const fire = () => rows('select cue.fire_cue($1, $2)', [account.id, links[0]])
  const isDone = (count: number) => untilCount(() => world.count(`cue_id = '${links.at(-1)}' and status = 'success'`), count, 120_000)
  const quiet = Math.min(lineages, 50)
  for (let n = 0; n < quiet; n++) {
    await fire()
    await delay(200)
  }
  await isDone(quiet)
  const starts = await rows(
    `select extract(epoch from coalesce(f.started_at, f.claimed_at) - p.ended_at)::float8 * 1000 as ms
       from cue.executions f join cue.executions p on p.id = (f.parents -> 0 ->> 'execution_id')::uuid where f.triggered_by = 'chain' and f.transport = 'webhook'`
  )
  for (let n = quiet; n < lineages; n++) await fire()
  for (let kills = 0; kills < 8; kills++) {
    await delay(1000 + Math.random() * 3000)
    await kill(world)
  }
  await isDone(lineages)
  await delay(2000)
  isOver = true
  await working
  const runs = await rows(
    "select cue_id, count(*)::int as runs, count(distinct parents -> 0 ->> 'execution_id')::int as parents from cue.executions group by 1"
  )
  const times = starts.map(({ ms }) => ms as number)
  const figures = {
    lineages,
    executions: runs.reduce((sum, { runs }) => sum + runs, 0),
    links_with_other_numbers: links.filter(
      (id, n) => !runs.some(run => run.cue_id === id && run.runs === lineages && run.parents === (n && lineages))
    ).length,
    unsuccessful: await world.count("status <> 'success'"),
    lost_attempts: await world.count('lost_attempts > 0'),
    start_median_ms: Math.round(percentile(times, 0.5)),
    start_p99_ms: Math.round(percentile(times, 0.99))
  }
  const faults = (['links_with_other_numbers', 'unsuccessful'] as const).flatMap(name =>
    figures[name] > 0 ? `${name}: ${figures[name]}` : []
  )
  return world.end({ figures, faults })
}

const playApprovals = async (stage: Stage, { replicas }: Options): Promise<Result> => {
  const approval = JSON.stringify({ expires: null, on_expiry: 'skip', message: null })
  const world = await raise(stage, 'approvals', 1, null, {
    columns: `callback_url = callback_url || '/200/1', ${briefly}, approval = $1`,
    values: [approval]
  })
  const { pool, rows, account } = world
  await world.fire(100)
  await rows("update cue.approvals set remind_at = clock_timestamp() + interval '4 seconds'")
  const starting = Promise.all(Array.from({ length: replicas }, world.start))
  await starting
  await untilCount(() => world.approvals('reminders > 0').then(Math.sign), 1, 30_000)
  await stage.crash()
  await untilCount(() => world.approvals('reminders = 1'), 100, 60_000)
  await delay(3000)
  const fn = createFunctions(pool)
  const ids = (await rows('select execution_id as id from cue.approvals order by 1')).map(({ id }) => id as string)
  const decide = async (execution_id: string) => {
    for (;;) {
      const decided = await fn
        .decideApproval({ account_id: account.id, execution_id, decision: 'approved', actor: 'pgcue' })
        .catch((error: { code?: string }) => error.code === 'QU074')
      if (decided) return
      await delay(50)
    }
  }
  const deciding = Promise.all(ids.map(decide))
  await delay(20)
  await stage.crash()
  await deciding
  await kill(world)
  await untilCount(() => world.count("status = 'success'"), 100, 60_000)
  const [{ asked }] = await rows(
    "select count(*)::int as asked from pgboss.job where name = 'mails' and data ->> 'kind' = 'approval_requested'"
  )
  const sends = await stage.receiver.sends()
  const figures = {
    reminded_once: await world.approvals('reminders = 1'),
    messages: asked as number,
    approved: await world.approvals("decision = 'approved'"),
    succeeded: await world.count("status = 'success'"),
    same_attempt_sent_twice: sends.length - new Set(sends.map(send => `${send.execution_id} ${send.attempt}`)).size
  }
  const wanted = { reminded_once: 100, messages: 200, approved: 100, succeeded: 100, same_attempt_sent_twice: 0 }
  const faults = Object.entries(wanted).flatMap(([name, count]) => {
    const found = figures[name as keyof typeof wanted]
    return found === count ? [] : `${name}: ${found}`
  })
  return world.end({ figures, faults })
}

export const held: Record<string, (stage: Stage, options: Options) => Promise<Result>> = { chain: playChain, approvals: playApprovals }
