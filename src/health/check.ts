/** Derives service health from the database's figures. */
import type { ServiceHealthRow } from '../database/functions.ts'

type State = 'healthy' | 'degraded' | 'down'

/** Engines send a heartbeat every 5 seconds; without one for this long, nothing fires. */
const downAfterSeconds = 30
const degradedAfterSeconds = 15
/** Due work normally goes out within milliseconds; beyond this, the engines are overloaded. */
const behindSeconds = 60

const seconds = (from: Date | null | undefined, now: Date) =>
  from ? Math.max(0, Math.round((now.getTime() - from.getTime()) / 1000)) : null

/** @param found null if the database is unreachable or read-only */
export const judge = (found: ServiceHealthRow | null, now: Date) => {
  const seenAgo = seconds(found?.last_seen_at, now)
  const oldest = seconds(found?.oldest_pending_at, now)
  const behind = Math.max(oldest ?? 0, (found?.lateness_ms ?? 0) / 1000)
  const reasons: { service: 'postgres' | 'poller' | 'delivery'; state: State; reason: string }[] = []
  if (!found) reasons.push({ service: 'postgres', state: 'down', reason: 'the database is unreachable or read-only' })
  else if (seenAgo === null || seenAgo > degradedAfterSeconds) {
    const state = seenAgo !== null && seenAgo <= downAfterSeconds ? 'degraded' : 'down'
    const reason = seenAgo === null ? 'no engine has run yet' : `no engine has been seen for ${seenAgo} s`
    reasons.push({ service: 'poller', state, reason }, { service: 'delivery', state, reason })
  } else if (behind > behindSeconds) {
    reasons.push({ service: 'delivery', state: 'degraded', reason: `deliveries are ${Math.round(behind)} s behind` })
  }
  const stateOf = (service: string): State => reasons.find(reason => reason.service === service)?.state ?? (found ? 'healthy' : 'down')
  const first = reasons[0]
  return {
    status: first?.state ?? ('healthy' as State),
    reason: first?.reason,
    services: { postgres: stateOf('postgres'), poller: stateOf('poller'), delivery: stateOf('delivery') },
    poller: { last_run: found?.last_seen_at ?? null, seconds_ago: seenAgo, lateness_ms: found?.lateness_ms ?? null },
    workers: { active_count: found?.active_workers ?? null, last_heartbeat: found?.last_heartbeat ?? null },
    queue: {
      pending: found?.pending ?? null,
      retrying: found?.retrying ?? null,
      delivering: found?.delivering ?? null,
      pending_worker: found?.pending_worker ?? null,
      oldest_pending_seconds: found ? (oldest ?? 0) : null
    },
    replicas: found?.replicas ?? null
  }
}
