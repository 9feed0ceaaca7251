/**
 * Gates over several replicas that crash, freeze and lose their database, with real requests:
 *
 *   limits   50 cues share `parallel: 5, rate: 60, per: 10s` for `--seconds`: never six running, never 61 starts within ten seconds
 *   order    `--n` executions of 100 parts, of which some fail or time out at first: each part runs in order, retries included
 *   breaker  the receiver fails, hangs and recovers: few attempts are used up, one probe at a time, then 1, 2, 4, 8 … starts per second
 *   budget   1,000 executions want to start, and the budget is enough for 100
 */
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { conclude, openWorld, sentTwice, untilCount, type Verdict } from './world.ts'

type Options = { n: number; replicas: number; seconds: number; frozenMs: number }

export const briefly = 'timeout_seconds = 1, outcome_deadline_seconds = 300, claim_timeout_seconds = 60'

/** Cues of an account, with a gate or without one. `columns`: SQL that sets some of theirs. */
export const raise = async (stage: Stage, name: string, count: number, columns: string, gate?: object, parts = 0) => {
  const world = await openWorld(stage, `gate_${name}`)
  const { pool, rows } = world
  const [account] = await addAccounts(pool, 1)
  const cues = await addCues(pool, { accounts: [account!], count, hook: stage.receiver.url })
  if (gate) await rows('select cue.put_gate($1, $2, $3)', [account!.id, 'g', JSON.stringify({ max_wait: '1d', ...gate })])
  await rows(
    `update cue.cues c set ${columns}, retry_backoff_minutes = '{0.005}', retry_max_attempts = 8,
            gate = ${gate ? (parts > 0 ? `'g#' || u.n % ${parts}` : "'g'") : 'null'}
       from unnest($1::text[]) with ordinality as u (cue_id, n) where c.id = u.cue_id`,
    [cues]
  )
  await rows('update cue.plans set fires_per_hour = 1000000, executions_per_month = 1000000')
  await rows('update cue.cue_runs set tracked = true')
  await rows(`create view public.attempts as
    select a.execution_id as id, a.attempt, a.result, c.gate, e.scheduled_for, e.ended_at,
           (extract(epoch from case when a.attempt = 1 then e.started_at else a.started_at end) * 1000)::float8 as began,
           (extract(epoch from a.finished_at) * 1000)::float8 as ended
      from cue.attempt_view a join cue.executions e on e.id = a.execution_id join cue.cues c on c.id = e.cue_id`)
  return {
    ...world,
    account: account!,
    cues,
    /** Fires the cues in turn, so many times in all, before replicas set the plans. */
    fire: async (total: number) => {
      for (let n = 0; n < total; n++) await rows('select cue.fire_cue($1, $2)', [account!.id, cues[n % cues.length]])
    },
    succeeded: () => world.count("cue.executions where status = 'success'")
  }
}

/** The largest number of attempts that ran at one instant. */
const mostAtOnce = (condition: string) =>
  `with attempts as materialized (select * from public.attempts where ${condition})
   select max((select count(*)::int from attempts o where o.began <= a.began and o.ended > a.began)) as most from attempts a`

/** The largest number of instants in an interval [t, t + length). */
const mostWithin = (instants: number[], length: number): number => {
  const sorted = instants.toSorted((a, b) => a - b)
  let from = 0
  return sorted.reduce((most, at, n) => {
    while (at - sorted[from]! >= length) from++
    return Math.max(most, n - from + 1)
  }, 0)
}

const playLimits = async (stage: Stage, { replicas, seconds, frozenMs }: Options): Promise<Verdict> => {
  const hook = "callback_url = callback_url || '/200/' || 200 + abs(hashtext(id)) % 901"
  const world = await raise(stage, 'limits', 50, hook, { parallel: 5, rate: 60, per: '10s' })
  await world.fire(Math.ceil(seconds * 6) + 120)
  await world.startAll(replicas)
  const [{ since }] = await world.rows('select extract(epoch from clock_timestamp())::float8 * 1000 as since')
  const at = async (share: number) => delay(Math.max(0, since + seconds * 1000 * share - Date.now()))
  await at(0.15)
  await world.replace()
  await at(0.35)
  await world.freeze(Math.min(frozenMs, seconds * 200))
  await at(0.7)
  await stage.crash()
  await at(1)
  const attempts = await world.rows('select * from public.attempts')
  const [{ most }] = await world.rows(mostAtOnce('true'))
  const sends = await stage.receiver.sends()
  const [began, arrivals] = [attempts.map(attempt => attempt.began as number), sends.map(send => send.at)]
  const begins = new Map(attempts.map(({ id, attempt, began }) => [`${id} ${attempt}`, began as number]))
  const figures = {
    attempts: attempts.length,
    lost: attempts.filter(attempt => attempt.result === 'lost').length,
    running_at_once: most,
    starts_in_window: mostWithin(began, 10_000),
    arrivals_in_window: mostWithin(arrivals, 10_000),
    arrivals_in_9_seconds: mostWithin(arrivals, 9000),
    latest_arrival_ms: Math.round(
      Math.max(...sends.map(send => send.at - (begins.get(`${send.execution_id} ${send.attempt}`) ?? send.at)))
    ),
    percent_of_limit:
      Math.round((began.filter(start => start >= since && start < since + seconds * 1000).length / (seconds * 6)) * 1000) / 10,
    same_attempt_sent_twice: sentTwice(sends)
  }
  return conclude(world, figures, { running_at_once: 5, starts_in_window: 60, arrivals_in_9_seconds: 60, same_attempt_sent_twice: 0 })
}

/** Attempts that began before one that comes earlier in their part, or before the execution before theirs had ended. */
const outOfOrder = `select count(*) filter (where before > row (scheduled_for, id, attempt) or former <> id and over > began)::int as n
  from (select *, lag(row (scheduled_for, id, attempt)) over w as before, lag(id) over w as former, lag(extract(epoch from ended_at) * 1000) over w as over
          from public.attempts window w as (partition by gate order by began, attempt)) a`

const playOrder = async (stage: Stage, { n, replicas, frozenMs }: Options): Promise<Verdict> => {
  // Of the cues, a tenth fails at first, and a hundredth is not answered at first.
  const hook = `callback_url = callback_url || case abs(hashtext(id)) % 100 when 0 then '/0/5' else
      case when abs(hashtext(id)) % 10 = 1 then '/500/' else '/200/' end || 5 + abs(hashtext(id)) % 20 end, ${briefly}`
  const world = await raise(stage, 'order', 200, hook, { ordered: true }, 100)
  await world.fire(n)
  const began = Date.now()
  await world.startAll(replicas)
  const faults = [world.replace, () => world.freeze(Math.min(frozenMs, 8000)), stage.crash, world.replace]
  for (const [nth, strike] of faults.entries()) {
    await stage.receiver.wait(Math.floor((n * (nth + 1)) / 5), 600_000)
    await strike()
  }
  await stage.receiver.wait(n, 600_000)
  await untilCount(() => world.count('cue.executions where ended_at is not null'), n)
  const ms = Date.now() - began
  const attempts = await world.rows('select * from public.attempts')
  const [{ n: wrong }] = await world.rows(outOfOrder)
  // As the receiver saw them: no request of an execution after one of a later execution of its part.
  const place = new Map(attempts.map(({ id, gate, scheduled_for }) => [id, { gate, due: +scheduled_for }]))
  const parts = Map.groupBy(await stage.receiver.sends(), send => place.get(send.execution_id)?.gate)
  const overtaken = [...parts.values()].flatMap(part =>
    part.filter(({ execution_id: id }, k) => {
      const before = part[k - 1]?.execution_id ?? id
      const [last, next] = [place.get(before)!.due, place.get(id)!.due]
      return next < last || (next === last && id < before)
    })
  )
  const figures = {
    executions: await world.count('cue.executions'),
    attempts: attempts.length,
    failed: attempts.filter(attempt => attempt.result === 'failed').length,
    lost: attempts.filter(attempt => attempt.result === 'lost').length,
    unsuccessful: await world.count("cue.executions where status <> 'success'"),
    out_of_order: wrong,
    overtaken_at_the_receiver: overtaken.length,
    ms
  }
  return conclude(world, figures, { unsuccessful: 0, out_of_order: 0, overtaken_at_the_receiver: 0 })
}

const playBudget = async (stage: Stage, { replicas }: Options): Promise<Verdict> => {
  const budget = { budget_limit: '5', budget_unit: 'usd', budget_period: 'month', budget_timezone: 'UTC', budget_reserve: '0.05' }
  const hook = `callback_url = callback_url || '/200/200/0.05', await_outcome = true, ${briefly}`
  const world = await raise(stage, 'budget', 50, hook, budget)
  await world.fire(1000)
  await world.startAll(replicas)
  await stage.receiver.wait(30)
  await world.replace()
  await untilCount(world.succeeded, 100)
  await delay(3000)
  const [{ spent, most }] = await world.rows(
    `select (select sum(amount)::float8 from cue.costs) as spent, max(spent + 0.05 * running)::float8 as most from (
       select (select coalesce(sum(c.amount), 0) from cue.costs c where c.reported_at <= a.started_at) as spent,
              (select count(*) from cue.attempt_view o where o.started_at <= a.started_at and o.finished_at > a.started_at
                 and not exists (select from cue.costs c where c.execution_id = o.execution_id and c.reported_at <= a.started_at)) as running
         from cue.attempt_view a) s`
  )
  const figures = {
    executions: await world.count('cue.executions'),
    succeeded: await world.succeeded(),
    waiting: await world.count('cue.executions where ended_at is null'),
    spent,
    most_spent_and_reserved: most
  }
  return conclude(world, figures, { spent: 5, most_spent_and_reserved: 5 }, { succeeded: 100, waiting: 900 })
}

const playBreaker = async (stage: Stage, { replicas }: Options): Promise<Verdict> => {
  const breaker = { breaker_failures: 10, breaker_open_seconds: 2, breaker_max_open_seconds: 4 }
  const world = await raise(stage, 'breaker', 50, briefly, { parallel: 5, ...breaker })
  const answer = (path: string) => world.rows('update cue.cues set callback_url = $1', [`${stage.receiver.url}${path}`])
  await answer('/502/20')
  await world.fire(1000)
  await world.startAll(replicas)
  await delay(8000)
  await answer('/hang')
  await delay(6000)
  await world.replace()
  await delay(4000)
  await answer('/200/20')
  const recovered = Date.now()
  await untilCount(world.succeeded, 1000)
  const drained_ms = Date.now() - recovered
  const instants = await world.rows(
    "select type, (extract(epoch from at) * 1000)::float8 as at from cue.events where type in ('gate.opened', 'gate.closed') order by at"
  )
  const [opened, closed] = [instants[0]?.at as number, instants.at(-1)?.at as number]
  const startsIn = (from: number, to: number) => world.count('public.attempts where began >= $1 and began < $2', [from, to])
  const [{ most }] = await world.rows(mostAtOnce('began >= $1 and began < $2'), [opened, closed])
  const ramp: [string, number][] = []
  for (let s = 1; s <= 8; s++) ramp.push([`starts_after_${s}_s`, await startsIn(closed, closed + s * 1000)])
  const figures = {
    used_up_before_it_opened: await startsIn(0, opened),
    probes: await startsIn(opened, closed),
    probes_at_once: most,
    closed_after_recovery_ms: Math.round(closed - recovered),
    drained_ms,
    succeeded: await world.succeeded(),
    events: instants.length,
    ...Object.fromEntries(ramp)
  }
  // Up to four others were under way when the tenth failed. After it has closed, 1, 2, 4 … may start in each second.
  const limits = Object.fromEntries(ramp.map(([name], second) => [name, 2 ** (second + 1) - 1]))
  return conclude(world, figures, { used_up_before_it_opened: 14, probes_at_once: 1, ...limits }, { succeeded: 1000 })
}

export const gates: Record<string, (stage: Stage, options: Options) => Promise<Verdict>> = {
  limits: playLimits,
  order: playOrder,
  breaker: playBreaker,
  budget: playBudget
}
