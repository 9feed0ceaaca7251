/** The client's worker: the loop, with functions as handlers. */
import { PgcueError } from '../errors.ts'
import type { Methods } from '../methods.ts'
import { failure, mostTimeoutMs, type Outcome, startTask, type Tasks, taskOf, timedOutAfter } from '../tasks.ts'
import type { Claim } from '../types.ts'
import { runLoop } from './loop.ts'
import type { Handling } from './run.ts'
import type { Log } from './store.ts'

export type WorkerOptions = {
  /** Functions by the member `task` of the payload; `*` handles any other task. */
  tasks: Tasks
  /** Maximum tasks at once; 1 by default. */
  concurrency?: number
  /** Belongs to one process at a time: when it starts, it releases what a former one has left behind. Random by default. */
  workerId?: string
  /** When aborted, nothing more is claimed, and running tasks may end. */
  signal?: AbortSignal
  /** Milliseconds after which a task has failed; an hour by default. */
  timeoutMs?: number
  /** Milliseconds for tasks to end once the signal is aborted, before their claims are released; 25,000 by default. */
  drainMs?: number
  /** Milliseconds between heartbeats of a claim; a third of its lease by default. */
  leaseMs?: number
  /** Gets the events of the worker. By default, problems are logged to the console. */
  log?: Log
}

export const runTasks = async (client: Methods, options: WorkerOptions): Promise<void> => {
  const { tasks, concurrency = 1, workerId, signal, timeoutMs = 3_600_000, drainMs = 25_000, leaseMs, log = logProblems } = options
  if (Object.keys(tasks).length === 0) throw new TypeError('a worker needs at least one task')
  if (!Number.isInteger(concurrency) || concurrency < 1) throw new TypeError('concurrency must be a whole number, at least 1')
  if (timeoutMs > mostTimeoutMs) throw new TypeError('timeoutMs must be less than 25 days')
  const id = workerId ?? `worker-${crypto.randomUUID()}`
  await runLoop({
    client,
    workerId: id,
    tasks: Object.keys(tasks),
    concurrency,
    drainMs,
    ...(leaseMs !== undefined && { leaseMs }),
    handle: claim => handle(tasks, claim, timeoutMs),
    recover: async () => {
      if (workerId !== undefined) await releaseAll(client, id, tasks)
    },
    store: { claims: nowhere, reports: nowhere, refused: nowhere },
    log,
    stopping: signal ?? new AbortController().signal,
    dying: new AbortController().signal
  })
}

/** Nothing outlives the process: claims of a killed one lapse, or are released by the next one with its id. */
const nowhere = { put: () => {}, remove: () => {} }

const logProblems: Log = (event, fields) => {
  if (fields?.message !== undefined) console.warn(`pgcue worker: ${event}`, fields)
}

const handle = (tasks: Tasks, claim: Claim, timeoutMs: number): Handling => {
  const { execution_id: executionId, cue_id: cueId, task, payload, attempt, scheduled_for: scheduledFor, execution_token: token } = claim
  const started = startTask(taskOf(tasks, task)!, { executionId, cueId, task, payload, attempt, scheduledFor, token })
  let outcome: Outcome | undefined
  return {
    timeoutMs,
    ended: Promise.race([
      started.outcome.then(value => {
        outcome = value
      }),
      started.aborted
    ]),
    stop: () => {
      if (outcome !== undefined) return false
      started.abort('the result of this task no longer counts')
      return true
    },
    report: timedOut => ({ report: timedOut ? failure(timedOutAfter(timeoutMs)) : outcome! })
  }
}

/** Releases the claims of this worker's id, by removing and registering it. */
const releaseAll = async (client: Methods, id: string, tasks: Tasks) => {
  await client.workers.delete(id).catch(error => {
    if (!(error instanceof PgcueError) || error.status !== 404) throw error
  })
  await client.workers.heartbeat({ worker_id: id, handlers: Object.keys(tasks) })
}
