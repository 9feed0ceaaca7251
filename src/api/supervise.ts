/**
 * The API in a thread of its own beside the engine, so that an expensive request makes no delivery late. A thread that ends, such as one whose heap
 * is full, is replaced; the engine goes on.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type MessagePort, Worker } from 'node:worker_threads'
import type { Config } from '../config.ts'
import type { Away } from '../database/outage-log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Api } from './api.ts'

export type FromThread =
  | { kind: 'listening' }
  | { kind: 'log'; lines: string }
  | { kind: 'lost'; error: object; task: string }
  | { kind: 'back' }
  | { kind: 'metrics'; answer: MessagePort }
export type ToThread = 'listen' | 'stop'

/** Before the next start after a thread ended; doubled while the new ones end, too. */
const restartMs = 1000
const restartMsAtMost = 30_000
const steadyMs = 60_000
/** Requests under way may take so long to end; less than a stopping process has. */
const stopMs = 25_000

type Options = {
  config: Config
  /** The engine's, which the API's /metrics shows, too. */
  metrics: Metrics
  away: Away
  log: { error: (fields: object, message: string) => void; warn: (message: string) => void }
  /** Takes whole lines of the log. */
  write: (lines: string) => void
}

/** Starts loading it. `listen` rejects with what ends the thread before it listens. */
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
      thread.listen().catch(() => {}) // then it has ended
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

const openThread = ({ config, metrics, away, log, write }: Options) => {
  const worker = new Worker(new URL('thread.ts', import.meta.url), { name: 'pgcue API', workerData: config })
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
      else if (message.kind === 'lost') away.lost(message.error, message.task)
      else if (message.kind === 'back') away.back()
      else if (message.kind === 'metrics') void metrics.values().then(values => message.answer.postMessage(values))
      else {
        isListening = true
        resolve()
      }
    })
  })
  listening.catch(() => {}) // also when nobody has asked for it yet

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
