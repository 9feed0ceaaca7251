/** Tasks: functions that run an execution, in a worker or behind a webhook. */
import type { Report } from './types.ts'

/** An execution to run. It may be delivered twice: deduplicate effects by `executionId`. */
export interface TaskExecution<P = unknown> {
  executionId: string
  cueId: string
  task: string | null
  payload: P
  /** 1 for the first attempt. */
  attempt: number
  /** ISO 8601 in UTC. */
  scheduledFor: string
  /** An API key for this execution only. */
  token: string
  /** Aborted when the result no longer counts: the time is over, or another worker may have the execution. */
  signal: AbortSignal
}

/** What a task returns: whether it has succeeded, and evidence. */
export type Outcome = Report

export type Task<P = unknown> = (execution: TaskExecution<P>) => Outcome | Promise<Outcome>

/** By the member `task` of the payload; `*` handles any other task. */
// biome-ignore lint/suspicious/noExplicitAny: each task says what its payload is
export type Tasks = Record<string, Task<any>>

const mostCharacters = 2000
/** With a longer time, a timer would end at once. */
export const mostTimeoutMs = 2 ** 31 - 1

export const taskOf = (tasks: Tasks, name: string | null): Task | undefined =>
  name !== null && Object.hasOwn(tasks, name) ? tasks[name] : tasks['*']

/** The beginning of a text, without what the service rejects: NUL and lone surrogates. */
export const clip = (text: string): string =>
  Array.from(text.slice(0, 2 * mostCharacters), character => (/[\0\ud800-\udfff]/u.test(character) ? '\ufffd' : character))
    .slice(0, mostCharacters)
    .join('')

export const failure = (reason: string): Outcome => ({ success: false, error: clip(reason) })

/** Starts a task. `outcome` is a failure if it throws, or returns anything but an outcome. A task that ignores its signal goes on. */
export const startTask = (task: Task, execution: Omit<TaskExecution, 'signal'>) => {
  const controller = new AbortController()
  const aborted = new Promise<void>(resolve => controller.signal.addEventListener('abort', () => resolve(), { once: true }))
  const run = async () => {
    try {
      return outcomeOf(await task({ ...execution, signal: controller.signal }))
    } catch (error) {
      return failure(error instanceof Error ? `${error.name}: ${error.message}` : `the task threw ${String(error)}`)
    }
  }
  return { outcome: run(), aborted, abort: (reason: string) => controller.abort(new Error(reason)) }
}

const outcomeOf = (value: unknown): Outcome => {
  if (typeof (value as Outcome | undefined)?.success !== 'boolean')
    return failure(`the task returned ${shown(value)} instead of an outcome, such as { success: true }`)
  const text = JSON.stringify(value)
  return JSON.parse(text)
}

const shown = (value: unknown): string => {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

export const timedOutAfter = (ms: number) => `timed out after ${ms / 1000} s`
