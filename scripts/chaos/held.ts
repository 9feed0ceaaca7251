/**
 * Executions that wait for others or for a person, over several replicas that crash and lose their database:
 *
 *   chain      20 cues follow one another, webhooks and workers in turn, `--n` times (at most 1,000): each runs once per lineage
 *   approvals  100 executions wait for approval: nothing is lost, each is reminded of once, and each that is approved runs once
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createFunctions } from '../../src/database/functions.ts'
import { quantile } from '../stage/figures.ts'
import { addCues } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { briefly, raise } from './gates.ts'
import { conclude, sentTwice, untilCount, type Verdict } from './world.ts'

type Options = { n: number; replicas: number }

const LENGTH = 20

const playChain = async (stage: Stage, { n, replicas }: Options): Promise<Verdict> => {
  const lineages = Math.min(n, 1000)
  const world = await raise(stage, 'chain', LENGTH / 2, `callback_url = callback_url || '/200/1', ${briefly}`)
  const { pool, rows, account, cues } = world
  const workers = await addCues(pool, { accounts: [account], count: LENGTH / 2 })
  const links = cues.flatMap((id, n) => [id, workers[n]!])
  for (const [n, id] of links.slice(1).entries()) {
    const after = { cues: [links[n]], when: 'success', mode: 'any', within: '1d' }
    await rows('update cue.cues set after = $2, schedule_type = null, cron = null where id = $1', [id, JSON.stringify(after)])
  }
  await rows('select cue.link_cues($1)', [links])
  await world.startAll(replicas)
  await rows('update cue.plans set fires_per_hour = 1000000') // replicas have set it
  const fn = createFunctions(pool)
  let isOver = false
  const work = async () => {
    while (!isOver) {
      const claimed = await rows('select * from cue.claim_executions($1, $2, p_limit => 100)', [account.id, 'w']).catch(() => [])
      const report = ({ execution_id, claim_token }: (typeof claimed)[0]) =>
        fn.reportOutcome({ account_id: account.id, execution_id, success: true, claim_token })
      await Promise.all(claimed.map(report)).catch(() => {})
      if (claimed.length === 0) await delay(10)
    }
  }
  const working = work()
  const fire = () => rows('select cue.fire_cue($1, $2)', [account.id, links[0]])
  const isDone = (count: number) =>
    untilCount(() => world.count("cue.executions where cue_id = $1 and status = 'success'", [links.at(-1)]), count)
  const quiet = Math.min(lineages, 50)
  for (let n = 0; n < quiet; n++) {
    await fire()
    await delay(200)
  }
  await isDone(quiet)
  const starts = await rows(
    `select extract(epoch from coalesce(f.started_at, f.claimed_at) - p.ended_at)::float8 * 1000 as ms
       from cue.executions f join cue.executions p on p.id = (f.parents -> 0 ->> 'execution_id')::uuid
      where f.triggered_by = 'chain' and f.transport = 'webhook' order by 1`
  )
  for (let n = quiet; n < lineages; n++) await fire()
  for (let kills = 0; kills < 8; kills++) {
    await delay(1000 + Math.random() * 3000)
    await world.replace()
  }
  await isDone(lineages)
  await delay(2000)
  isOver = true
  await working
  const times = starts.map(({ ms }) => ms as number)
  const figures = {
    lineages,
    executions: await world.count('cue.executions'),
    // Each link has run once after each run of the one before it.
    links_with_other_numbers: await world.count(
      `unnest($1::text[]) with ordinality as l (id, n)
        where (select (count(*), count(distinct parents -> 0 ->> 'execution_id')) from cue.executions where cue_id = l.id)
              is distinct from ($2::bigint, case when n = 1 then 0 else $2::bigint end)`,
      [links, lineages]
    ),
    unsuccessful: await world.count("cue.executions where status <> 'success'"),
    lost_attempts: await world.count('cue.executions where lost_attempts > 0'),
    start_median_ms: Math.round(quantile(times, 0.5)),
    start_p99_ms: Math.round(quantile(times, 0.99))
  }
  return conclude(world, figures, { links_with_other_numbers: 0, unsuccessful: 0 })
}

const playApprovals = async (stage: Stage, { replicas }: Options): Promise<Verdict> => {
  const approval = `'{"expires": null, "on_expiry": "skip", "message": null}'`
  const world = await raise(stage, 'approvals', 1, `callback_url = callback_url || '/200/1', ${briefly}, approval = ${approval}`)
  const { pool, rows, account } = world
  const approvals = (condition: string) => world.count(`cue.approvals where ${condition}`)
  await world.fire(100)
  await rows("update cue.approvals set remind_at = clock_timestamp() + interval '4 seconds'")
  await world.startAll(replicas)
  await untilCount(() => approvals('reminders > 0'), 1)
  await stage.crash()
  await untilCount(() => approvals('reminders = 1'), 100)
  await delay(3000)
  const fn = createFunctions(pool)
  const ids = (await rows('select execution_id as id from cue.approvals order by 1')).map(({ id }) => id as string)
  const decide = async (execution_id: string) => {
    const decision = () => fn.decideApproval({ account_id: account.id, execution_id, decision: 'approved', actor: 'pgcue' })
    while (!(await decision().catch((error: { code?: string }) => error.code === 'QU074'))) await delay(50)
  }
  const deciding = Promise.all(ids.map(decide))
  await delay(20)
  await stage.crash()
  await deciding
  await world.replace()
  await untilCount(world.succeeded, 100)
  const figures = {
    reminded_once: await approvals('reminders = 1'),
    messages: await world.count("pgboss.job where name = 'mails' and data ->> 'kind' = 'approval_requested'"),
    approved: await approvals("decision = 'approved'"),
    succeeded: await world.succeeded(),
    same_attempt_sent_twice: sentTwice(await stage.receiver.sends())
  }
  return conclude(world, figures, { same_attempt_sent_twice: 0 }, { reminded_once: 100, messages: 200, approved: 100, succeeded: 100 })
}

export const held: Record<string, (stage: Stage, options: Options) => Promise<Verdict>> = { chain: playChain, approvals: playApprovals }
