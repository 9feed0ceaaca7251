/**
 * Runs the API in its own thread beside the engine, so that an expensive request delays no delivery. If the thread ends, for example
 * because its heap is full, a new one is started; the engine continues.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type MessagePort, Worker } from 'node:worker_threads'
import type { Api, ApiCell } from './api.ts'

export type FromThread =
  | { kind: 'listening' }
  | { kind: 'log'; lines: string }
  | { kind: 'lost'; cell: number; error: object; task: string; isReported?: boolean }
  | { kind: 'back'; cell: number; task?: string }
  | { kind: 'metrics'; answer: MessagePort }
export type ToThread = 'listen' | 'stop'

/** Wait before restarting a thread that ended; doubled each time until one runs for `steadyMs`. */
const restartMs = 1000
const restartMsAtMost = 30_000
const steadyMs = 60_000
/** Time for requests in progress to end; less than a stopping process has. */
const stopMs = 25_000

type Options = {
  /** Each with its engine's metrics, which the API's /metrics includes. */
  cells: readonly ApiCell[]
  log: { error: (fields: object, message: string) => void; warn: (message: string) => void }
  /** Writes whole lines to the log. */
  write: (lines: string) => void
}

/** Starts loading the thread. `listen` rejects with the error that ended the thread before it listened. */
export const superviseApi = (options: Options): Api => {
  const { log } = options
  let thread = openThread(options)
  let stopping = false

  const supervise = async () => {
    let waitMs = restartMs
    for (;;) {
      const startedAt = performance.now()
      const error = await thread.ended
      if (stopping) return
      if (performance.now() - startedAt > steadyMs) waitMs = restartMs
      log.error({ err: error, restart_ms: waitMs }, 'API thread ended unexpectedly; restarting it')
      await delay(waitMs)
      if (stopping) return
      waitMs = Math.min(waitMs * 2, restartMsAtMost)
      thread = openThread(options)
      thread.listen().catch(() => {}) // on failure, `ended` resolves too
    }
  }

  return {
    listen: async () => {
      await thread.listen()
      void supervise()
    },
    stop: () => {
      stopping = true
      return thread.stop()
    }
  }
}

const openThread = ({ cells, log, write }: Options) => {
  const outageLogOf = (cell: number) => cells[cell - 1]!.outageLog
  const measure = () => Promise.all(cells.map(({ metrics }) => metrics.values()))
  const worker = new Worker(new URL('thread.ts', import.meta.url), { name: 'pgcue API', workerData: cells.map(({ config }) => config) })
  const send = (message: ToThread) => worker.postMessage(message)
  let isListening = false

  const ended = new Promise<Error>(resolve => {
    worker.once('error', resolve)
    worker.once('exit', code => resolve(new Error(`API thread exited with code ${code}`)))
  })
  const listening = new Promise<void>((resolve, reject) => {
    void ended.then(reject)
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'log') write(message.lines)
      else if (message.kind === 'lost') outageLogOf(message.cell).lost(message.error, message.task, message.isReported)
      else if (message.kind === 'back') outageLogOf(message.cell).back(message.task)
      else if (message.kind === 'metrics') void measure().then(values => message.answer.postMessage(values))
      else {
        isListening = true
        resolve()
      }
    })
  })
  listening.catch(() => {}) // may reject before anybody awaits it

  return {
    ended,
    listen: () => {
      send('listen')
      return listening
    },
    stop: async () => {
      const end = () => worker.terminate()
      if (!isListening) return void (await end())
      send('stop')
      const timer = setTimeout(() => {
        log.warn('API did not stop in time')
        void end()
      }, stopMs)
      await ended
      clearTimeout(timer)
    }
  }
}
