/** Derives service health from the database's figures. */
import type { ServiceHealthRow } from '../database/functions.ts'

type State = 'healthy' | 'degraded' | 'down'

/** Engines send a heartbeat about every 5 seconds; without one for this long, nothing fires. */
const downAfterSeconds = 30
const degradedAfterSeconds = 15
/** Due work normally goes out within milliseconds; from here on, the engines are overloaded. */
const behindSeconds = 5
/** Live engines that take nothing of what is due for this long can't: a disk is full, or a table is locked. */
const stalledSeconds = 60

const seconds = (from: Date | null | undefined, now: Date) =>
  from ? Math.max(0, Math.round((now.getTime() - from.getTime()) / 1000)) : null

/** `last_taken_at`: when engines last took something; `held`: why the operator holds the service. */
export type Found = ServiceHealthRow & { last_taken_at?: Date | null; held?: string | null }

/** @param figures null if the database is unreachable or read-only */
export const judge = (figures: Found | null, now: Date) => {
  const seenAgo = seconds(figures?.last_seen_at, now)
  const oldest = seconds(figures?.oldest_pending_at, now)
  const stalled =
    figures?.last_taken_at === undefined ? 0 : Math.min(oldest ?? 0, seconds(figures.last_taken_at, now) ?? Number.POSITIVE_INFINITY)
  const behind = Math.max(oldest ?? 0, (figures?.lateness_ms ?? 0) / 1000)
  const reasons: { service: 'postgres' | 'poller' | 'delivery'; state: State; reason: string }[] = []
  if (!figures) reasons.push({ service: 'postgres', state: 'down', reason: 'the database is unreachable or read-only' })
  else if (seenAgo === null || seenAgo > degradedAfterSeconds) {
    const state = seenAgo !== null && seenAgo <= downAfterSeconds ? 'degraded' : 'down'
    const reason = seenAgo === null ? 'no engine has run yet' : `no engine has been seen for ${seenAgo} s`
    reasons.push({ service: 'poller', state, reason }, { service: 'delivery', state, reason })
  } else if (figures.held) {
    reasons.push({ service: 'delivery', state: 'degraded', reason: `held: ${figures.held}` })
  } else if (stalled >= stalledSeconds) {
    reasons.push({ service: 'delivery', state: 'down', reason: `due work has not been taken for ${stalled} s` })
  } else if (behind >= behindSeconds) {
    reasons.push({ service: 'delivery', state: 'degraded', reason: `deliveries are ${Math.round(behind)} s behind` })
  }
  const stateOf = (service: string): State => reasons.find(reason => reason.service === service)?.state ?? (figures ? 'healthy' : 'down')
  const first = reasons[0]
  return {
    status: first?.state ?? ('healthy' as State),
    reason: first?.reason,
    services: { postgres: stateOf('postgres'), poller: stateOf('poller'), delivery: stateOf('delivery') },
    poller: { last_run: figures?.last_seen_at ?? null, seconds_ago: seenAgo, lateness_ms: figures?.lateness_ms ?? null },
    workers: { active_count: figures?.active_workers ?? null, last_heartbeat: figures?.last_heartbeat ?? null },
    queue: {
      pending: figures?.pending ?? null,
      retrying: figures?.retrying ?? null,
      delivering: figures?.delivering ?? null,
      pending_worker: figures?.pending_worker ?? null,
      oldest_pending_seconds: figures ? (oldest ?? 0) : null
    },
    replicas: figures?.replicas ?? null
  }
}

type Judged = ReturnType<typeof judge>

/** Several cells as one service: degraded while some of it is up. Counts are those of the cells that answer. */
export const judgeCells = (looks: readonly { id: number; found: Found | null }[], now: Date) => {
  const cells = looks.map(({ id, found: figures }) => ({ id, ...judge(figures, now) }))
  const answers = looks.flatMap(({ found: figures }) => figures ?? [])
  const whole = judge(answers.length > 0 ? merge(answers) : null, now)
  const common = (states: State[]): State => (states.every(state => state === states[0]) ? states[0]! : 'degraded')
  const services = ['postgres', 'poller', 'delivery'] as const
  const unwell = cells.find(({ status }) => status !== 'healthy')
  return {
    ...whole,
    status: common(cells.map(({ status }) => status)),
    reason: unwell && `cell ${unwell.id}: ${unwell.reason}`,
    services: Object.fromEntries(services.map(name => [name, common(cells.map(cell => cell.services[name]))])) as Judged['services'],
    cells
  }
}

const merge = (rows: readonly ServiceHealthRow[]): ServiceHealthRow => {
  const sum = (name: 'pending' | 'retrying' | 'delivering' | 'pending_worker' | 'active_workers') =>
    rows.reduce((total, row) => total + row[name], 0)
  const dates = (name: 'last_seen_at' | 'oldest_pending_at' | 'last_heartbeat') =>
    rows.flatMap(row => row[name] ?? []).sort((a, b) => a.getTime() - b.getTime())
  const latenesses = rows.flatMap(({ lateness_ms }) => lateness_ms ?? [])
  return {
    last_seen_at: dates('last_seen_at').at(-1) ?? null,
    lateness_ms: latenesses.length > 0 ? Math.max(...latenesses) : null,
    replicas: Math.max(...rows.map(({ replicas }) => replicas)),
    pending: sum('pending'),
    retrying: sum('retrying'),
    delivering: sum('delivering'),
    pending_worker: sum('pending_worker'),
    oldest_pending_at: dates('oldest_pending_at')[0] ?? null,
    active_workers: sum('active_workers'),
    last_heartbeat: dates('last_heartbeat').at(-1) ?? null
  }
}
