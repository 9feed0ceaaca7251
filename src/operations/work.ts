/** Works on operations, a slice of each in turn. Batches of all operations run one after the other, and for at most half of the time. */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { resumptionOf } from '../cues/next-runs.ts'
import { shown } from '../cues/stored.ts'
import type { Functions, RunOperationRow } from '../database/functions.ts'
import { createGiveWay } from '../database/give-way.ts'
import { toApiError } from '../errors.ts'
import type { Jobs } from '../jobs/boss.ts'
import { readCalendars } from '../schedule/stored-calendars.ts'

type Job = { operation_id: string }
type Used = Pick<Functions, 'runOperation' | 'nextResumed' | 'readCues' | 'namedCalendars' | 'queueOperation'>
type Options = { jobs: Pick<Jobs, 'work'>; fn: Used; now: () => number; log: Pick<FastifyBaseLogger, 'info'> }

/** Then the job ends, and another goes on; shorter than the time that jobs have when the service stops. */
const sliceMs = 2000

export const startOperations = async ({ jobs, fn, now, log }: Options): Promise<void> => {
  const run = createBatches(fn, now)
  const inTurn = createQueue()
  await jobs.work<Job>('operations', async ({ operation_id }) => {
    for (const end = performance.now() + sliceMs; ; ) {
      const { done, waitMs } = await inTurn(async () => {
        const began = performance.now()
        const { status, wait_ms } = (await run(operation_id)) ?? { status: null, wait_ms: 0 }
        if (status !== 'running') return { done: true, waitMs: 0 }
        return { done: false, waitMs: Math.max(wait_ms, performance.now() - began) }
      })
      if (done) return void log.info({ operation_id }, 'operation ended')
      if (performance.now() + waitMs > end) return fn.queueOperation({ operation_id, delay: `${Math.ceil(waitMs)} milliseconds` })
      await delay(waitMs)
    }
  })
}

/** Makes a function that runs the next batch of an operation. */
export const createBatches =
  (fn: Omit<Used, 'queueOperation'>, now: () => number) =>
  async (operation_id: string): Promise<RunOperationRow | undefined> => {
    const targets = await fn.nextResumed({ operation_id })
    return fn.runOperation({ operation_id, resumed: targets.length > 0 ? await resumed(fn, targets, new Date(now())) : {} })
  }

/** The next run of each cue when it is resumed, with the version that it was computed from, or why it cannot be resumed. */
const resumed = async (
  fn: Pick<Functions, 'readCues' | 'namedCalendars'>,
  targets: { account_id: string; cue_id: string }[],
  now: Date
) => {
  const cues = await fn.readCues({
    account_ids: targets.map(({ account_id }) => account_id),
    cue_ids: targets.map(({ cue_id }) => cue_id)
  })
  const stored = cues.map(shown)
  const names = stored.flatMap(({ schedule }) => (schedule.type === 'once' ? [] : (schedule.exclude_calendars ?? [])))
  const calendars = await readCalendars(fn, targets[0]!.account_id, [...new Set(names)])
  const giveWay = createGiveWay()
  const entries: Record<string, object> = {}
  for (const cue of stored) {
    try {
      // Of an active one, nothing changes.
      const change = cue.status === 'active' ? { columns: {} } : resumptionOf(cue, now, calendars)
      entries[cue.id] = { version: cue.revision, ...change }
    } catch (error) {
      const { code, message, statusCode } = toApiError(error)
      if (statusCode >= 500) throw error
      entries[cue.id] = { code, message }
    }
    await giveWay()
  }
  return entries
}

const createQueue = () => {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work, work)
    last = turn.catch(() => {})
    return turn
  }
}
