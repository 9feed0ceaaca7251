/** Works on operations, a slice of each in turn. Batches of all operations run one after the other, and for at most half of the time. */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { resumptionOf } from '../cues/next-runs.ts'
import { shown } from '../cues/stored.ts'
import type { Functions, RunOperationRow } from '../database/functions.ts'
import { toApiError } from '../errors.ts'
import { type Computing, createComputing } from '../firing/computing.ts'
import type { Jobs } from '../jobs/boss.ts'
import { readCalendars } from '../schedule/stored-calendars.ts'

type Job = { operation_id: string }
type Used = Pick<Functions, 'runOperation' | 'nextResumed' | 'readCues' | 'namedCalendars' | 'queueOperation'>
type Options = { jobs: Pick<Jobs, 'work'>; fn: Used; computing: Computing; now: () => number; log: Pick<FastifyBaseLogger, 'info'> }

/** Then the job ends, and another goes on; shorter than the time that jobs have when the service stops. */
const sliceMs = 2000

export const startOperations = async ({ jobs, fn, computing, now, log }: Options): Promise<void> => {
  const run = createOperationBatches(fn, now, computing, createQueue())
  await jobs.work<Job>('operations', async ({ operation_id }) => {
    for (const end = performance.now() + sliceMs; ; ) {
      const { status, wait_ms, took_ms } = await run(operation_id)
      if (status !== 'running') return void log.info({ operation_id }, 'operation ended')
      const waitMs = Math.max(wait_ms, took_ms)
      if (performance.now() + waitMs > end) return fn.queueOperation({ operation_id, delay: `${Math.ceil(waitMs)} milliseconds` })
      await delay(waitMs)
    }
  })
}

/** Makes a function that runs the next batch of an operation. What it resumes is computed before its turn. */
export const createOperationBatches =
  (fn: Omit<Used, 'queueOperation'>, now: () => number, computing = createComputing(), inTurn: InTurn = work => work()) =>
  async (operation_id: string) => {
    const resumed = await nextRuns(fn, operation_id, new Date(now()), computing)
    return inTurn(async () => {
      const began = performance.now()
      const row: Partial<RunOperationRow> = (await fn.runOperation({ operation_id, resumed })) ?? {}
      return { status: row.status ?? null, wait_ms: row.wait_ms ?? 0, took_ms: performance.now() - began }
    })
  }

/** The next run of each cue that the next batch resumes, with the version that it was computed from, or why it cannot be resumed. */
const nextRuns = async (
  fn: Pick<Functions, 'nextResumed' | 'readCues' | 'namedCalendars'>,
  operation_id: string,
  now: Date,
  computing: Computing
) => {
  const targets = await fn.nextResumed({ operation_id })
  if (targets.length === 0) return {}
  const { account_id } = targets[0]!
  const cues = await fn.readCues({ account_ids: targets.map(() => account_id), cue_ids: targets.map(({ cue_id }) => cue_id) })
  const stored = cues.map(shown)
  const names = stored.flatMap(({ schedule }) => (schedule?.type !== 'recurring' ? [] : (schedule.exclude_calendars ?? [])))
  const calendars = await readCalendars(fn, account_id, [...new Set(names)])
  const entryOf = (cue: (typeof stored)[0]) => {
    try {
      // Of an active one, nothing changes.
      const change = cue.status === 'active' ? { columns: {} } : resumptionOf(cue, now, calendars)
      return [cue.id, { version: cue.revision, ...change }]
    } catch (error) {
      const { code, message, statusCode } = toApiError(error)
      if (statusCode >= 500) throw error
      return [cue.id, { code, message }]
    }
  }
  return Object.fromEntries(await Promise.all(stored.map(cue => computing.run(account_id, () => entryOf(cue)))))
}

type InTurn = <T>(work: () => Promise<T>) => Promise<T>

const createQueue = (): InTurn => {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const turn = last.then(work, work)
    last = turn.catch(() => {})
    return turn
  }
}
