// Gates under random starts, ends, lost replicas, pauses and changes of limits, by three engines at once: every start is one that the limits allow at that
// instant, by the rows of all executions; nothing that waits is forgotten.
import t from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { gatesStage } from '../support/gates-stage.ts'
import { below, cases, chance, pick, random } from '../support/seed.ts'
import { type Row, refused } from '../support/stage.ts'

const steps = cases(400)
type Settings = { parallel?: number; rate?: number; per?: string; ordered?: boolean }

const draw = (): Settings =>
  pick<() => Settings>([
    () => ({ parallel: 1 + below(4) }),
    () => ({ rate: 1 + below(4), per: pick(['1s', '10s', '2m']) }),
    () => ({ parallel: 1 + below(3), rate: 1 + below(5), per: pick(['5s', '1m']) }),
    () => ({ ordered: true }),
    () => ({ ordered: true, rate: 1 + below(3), per: '10s' })
  ])()
const perMs = (per: string) => Number.parseInt(per, 10) * (per.endsWith('m') ? 60_000 : 1000)

t.test(`no start breaks a limit (${steps} steps)`, async t => {
  const s = await gatesStage(t)
  const { rows, fn, account_id } = s
  const engines: Functions[] = [fn, (await s.connect()).fn, (await s.connect()).fn]
  let settings = draw()
  let isPaused = false
  await s.gate(settings)
  await rows('update cue.plans set fires_per_hour = 1000000, executions_per_month = 100000000')
  const parts = ['g', 'g#a', 'g#b']
  const cues: { id: string; gate: string; isWorker: boolean }[] = []
  for (const gate of [...parts, ...parts]) {
    for (const isWorker of [false, true]) {
      const columns = isWorker ? { transport: 'worker', callback_url: null } : {}
      cues.push({ id: await s.cue({ gate, retry_backoff_minutes: [0.05], ...columns }), gate, isWorker })
    }
  }
  /** Starts of attempts by gate, in microseconds. */
  const starts = new Map(parts.map(gate => [gate, [] as number[]]))
  const flown: BegunAttempt[] = []
  const claims: { execution_id: string; claim_token: string }[] = []

  const live = (gate: string): Promise<Row[]> =>
    rows(
      `select e.id, e.status, e.created_at, e.started_at, e.transport, (extract(epoch from coalesce(e.claimed_at, e.last_attempt_at)) * 1000000)::bigint as began
         from cue.executions e join cue.cues c on c.id = e.cue_id where c.gate = $1 and e.ended_at is null order by e.scheduled_for, e.id`,
      [gate]
    )

  /** Compares what began now with the limits. */
  const check = async (begun: string[]) => {
    if (begun.length > 0 && isPaused) t.fail('started behind a paused gate')
    for (const gate of parts) {
      const all = await live(gate)
      const mine = all.filter(row => begun.includes(row.id))
      if (mine.length === 0) continue
      const running = all.filter(row => row.status === 'delivering')
      const limit = settings.ordered ? 1 : settings.parallel
      if (limit !== undefined && running.length > limit) t.fail(`${running.length} run, of ${limit}: ${JSON.stringify(running)}`)
      const times = starts.get(gate)!
      for (const { began } of mine) times.push(Number(began))
      times.sort((a, b) => a - b)
      if (settings.rate !== undefined) {
        const from = times.at(-1)! - perMs(settings.per!) * 1000
        const inWindow = times.filter(at => at > from && at >= ratedSince).length
        if (inWindow > settings.rate) t.fail(`${inWindow} starts within ${settings.per}, of ${settings.rate}`)
      }
      if (settings.ordered && all.every(row => +row.created_at > changedAt)) {
        const holder = all.findIndex(row => row.id === mine[0]!.id)
        if (holder > 0) t.fail(`${mine[0]!.id} started before ${JSON.stringify(all.slice(0, holder))}`)
      }
    }
  }
  // Starts are recorded while a gate has a rate; what began under other settings is not compared with the new ones.
  let ratedSince = 0
  let changedAt = 0

  const begin = async (by: Functions) => {
    const attempts = await s.begin(by)
    flown.push(...attempts)
    return attempts.map(attempt => attempt.execution_id)
  }
  const claim = async (by: Functions) => {
    const made = await by.claimExecutions({ account_id, worker_id: 'w', limit: 1 + below(3) })
    claims.push(...made)
    return made.map(({ execution_id }) => execution_id)
  }
  const take = <T>(list: T[]): T | undefined => list.splice(below(list.length), 1)[0]
  const settle = async () => {
    const attempt = take(flown)
    if (!attempt) return
    if (chance(0.5)) await s.finish([attempt])
    else await s.settle([attempt], chance(0.3) ? { ...refused, http_status: 503, retry_after_ms: below(4000) } : refused)
  }
  const report = async () => {
    const claimed = take(claims)
    if (claimed) await fn.reportOutcome({ account_id, ...claimed, success: chance(0.5) }).catch(() => {})
  }
  const cancel = async () => {
    const row = (await live(pick(parts)))[0]
    if (row) await fn.cancelExecution({ account_id, execution_id: row.id, running: true })
  }
  const change = async () => {
    const before = settings
    settings = draw()
    await s.gate(settings)
    if (!before.rate || before.per !== settings.per) ratedSince = +s.clock.now() * 1000 + 1000
    if (!before.ordered) changedAt = +s.clock.now()
  }
  const pause = async () => {
    isPaused = !isPaused
    await (isPaused ? s.pause('x') : s.resume())
  }
  const moves: [weight: number, move: () => Promise<unknown>][] = [
    [5, async () => s.fire(pick(cues).id)],
    [4, async () => s.later(pick([1, 20, 500, 1000, 3100, 11_000]))],
    [4, settle],
    [3, report],
    [1, cancel],
    [0.5, change],
    [0.3, pause],
    [
      1,
      async () => {
        s.later(5000)
        await fn.recoverFlights({})
      }
    ],
    [2, s.sweep]
  ]
  const total = moves.reduce((sum, [weight]) => sum + weight, 0)
  const drawMove = () => {
    let at = random() * total
    for (const [weight, move] of moves) {
      at -= weight
      if (at < 0) return move
    }
    return moves[0]![1]
  }

  const consistent = async () => {
    const wrong = await rows(
      `select e.id, e.status, h.* from cue.executions e left join cue.held_executions h on h.execution_id = e.id
        where coalesce('infinity' in (e.attempt_due_at, e.claimable_at), false) <> (h.execution_id is not null and h.released_at is null)`
    )
    if (wrong.length > 0) t.fail(JSON.stringify(wrong))
  }

  /** With engines, workers and the clock only, everything ends. */
  const drain = async () => {
    if (isPaused) await pause()
    for (let round = 0; round < 3000; round++) {
      if ((await Promise.all(parts.map(live))).flat().length === 0) break
      s.later(1100)
      await s.sweep()
      await begin(fn)
      await claim(fn)
      while (flown.length > 0) await s.finish([flown.pop()!])
      while (claims.length > 0) await fn.reportOutcome({ account_id, ...claims.pop()!, success: true }).catch(() => {})
      if (round % 5 === 0) await fn.recoverFlights({})
      if (round % 300 === 0) await fn.recoverLeases({})
    }
    const left = [...(await Promise.all(parts.map(live))).flat(), ...(await rows('select * from cue.held_executions'))]
    if (left.length > 0) t.fail(`these never end: ${JSON.stringify(left)}`)
    await rows('delete from cue.executions; delete from cue.attempts; delete from cue.fires')
    for (const times of starts.values()) times.splice(0, Math.max(0, times.length - 100))
  }

  for (let step = 1; step <= steps; step++) {
    if (chance(0.5)) await drawMove()()
    else {
      const begun = await Promise.all(engines.map(by => (chance(0.7) ? begin(by) : claim(by))))
      await check(begun.flat())
    }
    if (step % 20 === 0) await consistent()
    if (step % 400 === 0) await drain()
  }
  await drain()
  t.pass('every start was within the limits')
})
