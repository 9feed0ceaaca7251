/** The engine's heartbeat: it shows that the engine is alive, and returns the number of engines and the database's time. */
import type { FastifyBaseLogger } from 'fastify'
import { version } from '../config.ts'
import type { Clock } from '../database/clock.ts'
import type { Functions } from '../database/functions.ts'
import type { Pump } from '../deliveries/pump.ts'
import type { Ahead } from '../firing/look-ahead.ts'

type Options = {
  fn: Pick<Functions, 'beatEngine'>
  engineId: string
  /** Of its replica. */
  name: string
  /** Length of an outage from which `catch_up` applies. */
  missedAfterMs: number
  pump: Pick<Pump, 'lateness' | 'open' | 'fullAccounts'>
  ahead: Pick<Ahead, 'passedOver' | 'reset'>
  clock: Pick<Clock, 'learn'>
  log: Pick<FastifyBaseLogger, 'warn'>
}

/** Accounts, and cues. */
const reportedAtMost = 1000

export const createHeartbeat = ({ fn, engineId, name, missedAfterMs, pump, ahead, clock, log }: Options) => {
  let engines = 1
  let beatAt = Number.NEGATIVE_INFINITY
  return {
    /** Number of live engines. */
    get engines() {
      return engines
    },
    beat: async (): Promise<void> => {
      const askedAt = performance.now()
      const { database_now, outage_recorded, ...live } = await fn.beatEngine({
        engine_id: engineId,
        name,
        version,
        lateness_ms: pump.lateness,
        open_deliveries: pump.open,
        full_accounts: pump.fullAccounts().slice(0, reportedAtMost),
        passed_over: ahead.passedOver().slice(0, reportedAtMost),
        missed_after: `${missedAfterMs} milliseconds`
      })
      // Whether the clock was set. A Date lacks up to a millisecond.
      clock.learn(database_now.getTime(), askedAt - 1)
      const silentMs = askedAt - beatAt
      beatAt = askedAt
      engines = live.engines
      if (!outage_recorded) return
      const cause = silentMs < missedAfterMs ? "the database's clock jumped" : 'no engine was running'
      log.warn(`${cause}: catch_up of each cue decides about the slots that came due`)
      ahead.reset()
    }
  }
}
