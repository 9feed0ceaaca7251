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
import type { Replica, Stage } from '../stage/stage.ts'

export type Result = { figures: Record<string, number>; faults: string[] }
type Options = { n: number; replicas: number; seconds: number; frozenMs: number }

export const briefly = 'timeout_seconds = 1, outcome_deadline_seconds = 300, claim_timeout_seconds = 60'

/** Replicas, and cues of an account, with a gate or without one. */
export const raise = async (
  stage: Stage,
  name: string,
  count: number,
  gate: object | null,
  { parts = 0, columns = '', values = [] as unknown[] } = {}
) => {
  const { name: database, url, pool } = await stage.createDatabase(`gate_${name}`)
  const [account] = await addAccounts(pool, 1)
  const replicas: Replica[] = []
  let started = 0
  const start = async () => void replicas.push(await stage.startReplica(`${database}-${++started}`, { DATABASE_URL: url }))
  const rows = async (text: string, parameters: unknown[] = []) => (await pool.query(text, parameters)).rows
  const cues = await addCues(pool, { accounts: [account!], count, hook: stage.receiver.url })
  if (gate) await rows('select cue.put_gate($1, $2, $3)', [account!.id, 'g', JSON.stringify(gate)])
  await rows(
    `update cue.cues c set gate = case when $3 then 'g' end || case when $2::int > 0 then '#' || u.n % $2 else '' end, retry_backoff_minutes = '{0.005}', retry_max_attempts = 8
       from unnest($1::text[]) with ordinality as u (id, n) where c.id = u.id`,
    [cues, parts, gate !== null]
  )
  await rows('update cue.plans set fires_per_hour = 1000000, executions_per_month = 1000000')
  if (columns) await rows(`update cue.cues set ${columns}`, values)
  await rows('update cue.cue_runs set tracked = true')
  await stage.receiver.reset()
  return {
    pool,
    rows,
    account: account!,
    cues,
    replicas,
    start,
    /** Fires the cues in turn, so many times in all, before replicas set the plans. */
    fire: async (total: number) => {
      for (let n = 0; n < total; n++) await pool.query('select cue.fire_cue($1, $2)', [account!.id, cues[n % cues.length]])
    },
    count: async (condition: string) => (await rows(`select count(*)::int as n from cue.executions where ${condition}`))[0].n as number,
    approvals: async (condition: string) => (await rows(`select count(*)::int as n from cue.approvals where ${condition}`))[0].n as number,
    end: async ({ figures, faults }: Result): Promise<Result> => {
      await Promise.all(replicas.map(replica => replica.stop()))
      const errors = replicas.flatMap(replica => replica.errors())
      const [{ deadlocks }] = await rows('select deadlocks::int from pg_stat_database where datname = current_database()')
      if (deadlocks > 0) faults.push(`deadlocks: ${deadlocks}`)
      return { figures: { ...figures, errors_logged: errors.length }, faults: [...faults.slice(0, 10), ...errors.slice(0, 3)] }
    }
  }
}

type World = Awaited<ReturnType<typeof raise>>

export const kill = async ({ replicas, start }: World) => {
  const victim = replicas.shift()!
  await victim.kill()
  await start()
}

const freeze = async ({ replicas }: World, ms: number) => {
  const victim = replicas[0]!
  victim.signal('SIGSTOP')
  await delay(ms)
  victim.signal('SIGCONT')
}

/** The largest number of intervals that contain one instant: [begin, end), in milliseconds. */
export const mostAtOnce = (intervals: [begin: number, end: number][]): number => {
  const changes = intervals.flatMap(([begin, end]) => [[begin, 1] as const, [end, -1] as const])
  let [running, most] = [0, 0]
  for (const [, change] of changes.sort(([a, x], [b, y]) => a - b || x - y)) {
    running += change
    most = Math.max(most, running)
  }
  return most
}

/** The largest number of instants in an interval [t, t + length). */
export const mostWithin = (instants: number[], length: number): number => {
  const sorted = instants.toSorted((a, b) => a - b)
  let [from, most] = [0, 0]
  for (const [n, at] of sorted.entries()) {
    while (at - sorted[from]! >= length) from++
    most = Math.max(most, n - from + 1)
  }
  return most
}

export const untilCount = async (read: () => Promise<number>, wanted: number, limitMs: number) => {
  for (const end = Date.now() + limitMs; Date.now() < end; await delay(250)) if ((await read().catch(() => -1)) === wanted) return
}

const attemptsSql = `select a.execution_id as id, a.attempt, a.result, c.gate, e.scheduled_for,
    (extract(epoch from case when a.attempt = 1 then e.started_at else a.started_at end) * 1000)::float8 as began, (extract(epoch from a.finished_at) * 1000)::float8 as ended
  from cue.attempt_view a join cue.executions e on e.id = a.execution_id join cue.cues c on c.id = e.cue_id`

const playLimits = async (stage: Stage, { replicas, seconds, frozenMs }: Options): Promise<Result> => {
  const world = await raise(
    stage,
    'limits',
    50,
    { parallel: 5, rate: 60, per: '10s', max_wait: '1d' },
    {
      columns: "callback_url = callback_url || '/200/' || 200 + abs(hashtext(id)) % 901"
    }
  )
  await world.fire(Math.ceil(seconds * 6) + 120)
  await Promise.all(Array.from({ length: replicas }, world.start))
  const [{ since }] = await world.rows('select extract(epoch from clock_timestamp())::float8 * 1000 as since')
  const at = async (share: number) => delay(Math.max(0, since + seconds * 1000 * share - Date.now()))
  await at(0.15)
  await kill(world)
  await at(0.35)
  await freeze(world, Math.min(frozenMs, seconds * 200))
  await at(0.7)
  await stage.crash()
  await at(1)
  const attempts = await world.rows(attemptsSql)
  const sends = await stage.receiver.sends()
  const began = attempts.map(attempt => attempt.began as number)
  const begins = new Map(attempts.map(({ id, attempt, began }) => [`${id} ${attempt}`, began as number]))
  const until = since + seconds * 1000
  const figures = {
    attempts: attempts.length,
    lost: attempts.filter(attempt => attempt.result === 'lost').length,
    running_at_once: mostAtOnce(attempts.map(attempt => [attempt.began, attempt.ended])),
    starts_in_window: mostWithin(began, 10_000),
    arrivals_in_window: mostWithin(
      sends.map(send => send.at),
      10_000
    ),
    arrivals_in_9_seconds: mostWithin(
      sends.map(send => send.at),
      9000
    ),
    latest_arrival_ms: Math.round(
      Math.max(...sends.map(send => send.at - (begins.get(`${send.execution_id} ${send.attempt}`) ?? send.at)))
    ),
    percent_of_limit: Math.round((began.filter(start => start >= since && start < until).length / (seconds * 6)) * 1000) / 10,
    same_attempt_sent_twice: sends.length - new Set(sends.map(send => `${send.execution_id} ${send.attempt}`)).size
  }
  const faults: string[] = []
  if (figures.running_at_once > 5) faults.push(`running_at_once: ${figures.running_at_once}`)
  if (figures.starts_in_window > 60) faults.push(`starts_in_window: ${figures.starts_in_window}`)
  if (figures.arrivals_in_9_seconds > 60) faults.push(`arrivals_in_9_seconds: ${figures.arrivals_in_9_seconds}`)
  if (figures.same_attempt_sent_twice > 0) faults.push(`same_attempt_sent_twice: ${figures.same_attempt_sent_twice}`)
  return world.end({ figures, faults })
}

/** Rows of attempts in the order in which they began: one execution of a part after the other, each to its end. */
const outOfOrder = (
  attempts: { id: string; attempt: number; gate: string; began: number; scheduled_for: Date; result: string }[],
  ends: Map<string, number>
): number => {
  const parts = Map.groupBy(attempts, attempt => attempt.gate)
  let wrong = 0
  for (const part of parts.values()) {
    const began = part.toSorted((a, b) => a.began - b.began || a.attempt - b.attempt)
    const due = part.toSorted((a, b) => +a.scheduled_for - +b.scheduled_for || (a.id < b.id ? -1 : a.id > b.id ? 1 : a.attempt - b.attempt))
    for (const [n, attempt] of began.entries()) {
      const before = began[n - 1]
      const isNext = attempt.id === due[n]!.id && attempt.attempt === due[n]!.attempt
      if (!isNext || (before && before.id !== attempt.id && ends.get(before.id)! > attempt.began)) wrong++
    }
  }
  return wrong
}

const playOrder = async (stage: Stage, { n, replicas, frozenMs }: Options): Promise<Result> => {
  const world = await raise(
    stage,
    'order',
    200,
    { ordered: true, max_wait: '1d' },
    {
      parts: 100,
      // Of the cues, a tenth fails at first, and a hundredth is not answered at first.
      columns: `callback_url = callback_url || case abs(hashtext(id)) % 100 when 0 then '/0/5' else
      case when abs(hashtext(id)) % 10 = 1 then '/500/' else '/200/' end || 5 + abs(hashtext(id)) % 20 end,
      ${briefly}`
    }
  )
  await world.fire(n)
  const began = Date.now()
  await Promise.all(Array.from({ length: replicas }, world.start))
  const at = (share: number) => stage.receiver.wait(Math.floor(n * share), 600_000)
  await at(0.2)
  await kill(world)
  await at(0.4)
  await freeze(world, Math.min(frozenMs, 8000))
  await at(0.6)
  await stage.crash()
  await at(0.8)
  await kill(world)
  await at(1)
  await untilCount(() => world.count('ended_at is null'), 0, 60_000)
  const ms = Date.now() - began
  const attempts = (await world.rows(attemptsSql)) as Parameters<typeof outOfOrder>[0]
  const executions = await world.rows('select id, status, (extract(epoch from ended_at) * 1000)::float8 as ended from cue.executions')
  const ends = new Map(executions.map(({ id, ended }) => [id, ended]))
  // As the receiver saw them: no request of an execution after one of a later execution of its part.
  const sends = await stage.receiver.sends()
  const [gates, due] = [new Map(attempts.map(a => [a.id, a.gate])), new Map(attempts.map(a => [a.id, +a.scheduled_for]))]
  let overtaken = 0
  for (const part of Map.groupBy(sends, send => gates.get(send.execution_id)).values())
    for (const [k, send] of part.entries()) {
      const before = part[k - 1]
      const [last, next] = before ? [due.get(before.execution_id)!, due.get(send.execution_id)!] : [0, 0]
      if (before && (next < last || (next === last && send.execution_id < before.execution_id))) overtaken++
    }
  const figures = {
    executions: executions.length,
    attempts: attempts.length,
    failed: attempts.filter(attempt => attempt.result === 'failed').length,
    lost: attempts.filter(attempt => attempt.result === 'lost').length,
    unsuccessful: executions.filter(({ status }) => status !== 'success').length,
    out_of_order: outOfOrder(attempts, ends),
    overtaken_at_the_receiver: overtaken,
    ms
  }
  const mustBeNone = ['unsuccessful', 'out_of_order', 'overtaken_at_the_receiver'] as const
  return world.end({ figures, faults: mustBeNone.flatMap(name => (figures[name] > 0 ? `${name}: ${figures[name]}` : [])) })
}

const playBudget = async (stage: Stage, { replicas }: Options): Promise<Result> => {
  const budget = { budget_limit: '5', budget_unit: 'usd', budget_period: 'month', budget_timezone: 'UTC', budget_reserve: '0.05' }
  const world = await raise(
    stage,
    'budget',
    50,
    { ...budget, max_wait: '1d' },
    {
      columns: `callback_url = callback_url || '/200/200/0.05', await_outcome = true, ${briefly}`
    }
  )
  await world.fire(1000)
  await Promise.all(Array.from({ length: replicas }, world.start))
  await stage.receiver.wait(30)
  await kill(world)
  await untilCount(() => world.count("status = 'success'"), 100, 60_000)
  await delay(3000)
  const [{ spent }] = await world.rows('select sum(amount)::float8 as spent from cue.costs')
  const [{ most }] = await world.rows(
    `select max(spent + 0.05 * running)::float8 as most from (
       select (select coalesce(sum(c.amount), 0) from cue.costs c where c.reported_at <= a.started_at) as spent,
              (select count(*) from cue.attempt_view o where o.started_at <= a.started_at and o.finished_at > a.started_at
                 and not exists (select from cue.costs c where c.execution_id = o.execution_id and c.reported_at <= a.started_at)) as running
         from cue.attempt_view a) s`
  )
  const figures = {
    executions: await world.count('true'),
    succeeded: await world.count("status = 'success'"),
    waiting: await world.count('ended_at is null'),
    spent,
    most_spent_and_reserved: most
  }
  const faults: string[] = []
  if (figures.succeeded !== 100 || spent > 5 || figures.waiting !== 900) faults.push('the budget was not used exactly')
  if (most > 5) faults.push(`most_spent_and_reserved: ${most}`)
  return world.end({ figures, faults })
}

const playBreaker = async (stage: Stage, { replicas }: Options): Promise<Result> => {
  const breaker = { breaker_failures: 10, breaker_open_seconds: 2, breaker_max_open_seconds: 4 }
  const world = await raise(
    stage,
    'breaker',
    50,
    { parallel: 5, ...breaker, max_wait: '1d' },
    {
      columns: briefly
    }
  )
  const answer = (path: string) => world.rows('update cue.cues set callback_url = $1', [`${stage.receiver.url}${path}`])
  await answer('/502/20')
  await world.fire(1000)
  await Promise.all(Array.from({ length: replicas }, world.start))
  await delay(8000)
  await answer('/hang')
  await delay(6000)
  await kill(world)
  await delay(4000)
  await answer('/200/20')
  const recovered = Date.now()
  await untilCount(() => world.count("status = 'success'"), 1000, 120_000)
  const attempts = await world.rows(attemptsSql)
  const instants = await world.rows(
    "select type, (extract(epoch from at) * 1000)::float8 as at from cue.events where type in ('gate.opened', 'gate.closed') order by at"
  )
  const [opened, closed] = [instants[0]?.at as number, instants.at(-1)?.at as number]
  const during = attempts.filter(attempt => attempt.began < closed)
  const probes = during.filter(attempt => attempt.began >= opened)
  const ramp = Array.from(
    { length: 8 },
    (_, second) => attempts.filter(attempt => attempt.began >= closed && attempt.began < closed + (second + 1) * 1000).length
  )
  const figures = {
    used_up_before_it_opened: during.length - probes.length,
    probes: probes.length,
    probes_at_once: mostAtOnce(probes.map(probe => [probe.began, probe.ended])),
    closed_after_recovery_ms: Math.round(closed - recovered),
    drained_ms: Date.now() - recovered,
    succeeded: await world.count("status = 'success'"),
    events: instants.length,
    ...Object.fromEntries(ramp.map((count, second) => [`starts_after_${second + 1}_s`, count]))
  }
  const faults: string[] = []
  // Up to four others were under way when the tenth failed.
  if (figures.used_up_before_it_opened > 14) faults.push(`used_up_before_it_opened: ${figures.used_up_before_it_opened}`)
  if (figures.probes_at_once > 1) faults.push(`probes_at_once: ${figures.probes_at_once}`)
  if (figures.succeeded !== 1000) faults.push(`succeeded: ${figures.succeeded} of 1000`)
  ramp.forEach((count, second) => {
    if (count > 2 ** (second + 1) - 1) faults.push(`${count} starts within ${second + 1} s after it closed`)
  })
  return world.end({ figures, faults })
}

export const gates: Record<string, (stage: Stage, options: Options) => Promise<Result>> = {
  limits: playLimits,
  order: playOrder,
  breaker: playBreaker,
  budget: playBudget
}
