/**
 * Runs work on small JSON at once, and on large JSON in a thread, so that the event loop can serve other requests. The thread starts when it is
 * first needed, and ends when it has been idle for a while.
 */
import { Worker } from 'node:worker_threads'
import { unavailable } from '../errors.ts'
import { JsonError } from './canonical-json.ts'
import { type Answered, type Asked, threadData, work } from './json-worker.ts'

/** Bytes or characters. The slowest text of this size takes about 10 ms. */
const SMALL = 32 * 1024
const IDLE_MS = 30_000

type Work = typeof work
type Beside = { [Name in keyof Work]: (...args: Parameters<Work[Name]>) => Promise<ReturnType<Work[Name]>> }
export type LargeJson = Beside & { close: () => Promise<void> }

type Waiting = { resolve: (result: never) => void; reject: (error: unknown) => void }

/** Rejects with JsonError for invalid JSON, and with ApiError unavailable if the thread ends, such as for lack of memory. */
export const createLargeJson = (): LargeJson => {
  let thread: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let lastId = 0
  const waiting = new Map<number, Waiting>()

  const start = (): Worker => {
    const started = new Worker(new URL(`./json-worker${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: threadData,
      resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 }
    })
    started.unref()
    started.on('message', ({ id, result, fault }: Answered) => {
      const { resolve, reject } = waiting.get(id)!
      waiting.delete(id)
      if (waiting.size === 0) idle = setTimeout(close, IDLE_MS).unref()
      if (fault) reject(new JsonError(fault.reason, fault.message))
      else resolve(result as never)
    })
    const lost = (error: unknown) => {
      if (thread === started) forget(error)
    }
    started.on('error', lost)
    started.on('exit', lost)
    return started
  }

  const forget = (error: unknown): void => {
    clearTimeout(idle)
    thread = undefined
    for (const { reject } of waiting.values()) reject(unavailable(error))
    waiting.clear()
  }

  const close = async (): Promise<void> => {
    const ending = thread
    forget(new Error('the service stops'))
    await ending?.terminate()
  }

  const ask = (name: keyof Work, args: unknown[]) =>
    new Promise<never>((resolve, reject) => {
      clearTimeout(idle)
      thread ??= start()
      waiting.set(++lastId, { resolve, reject })
      thread.postMessage({ id: lastId, name, args } satisfies Asked)
    })

  const beside =
    (name: keyof Work) =>
    async (...args: never[]) =>
      args.every(isSmall) ? (work[name] as (...args: never[]) => unknown)(...args) : ask(name, args)

  const all = Object.fromEntries(Object.keys(work).map(name => [name, beside(name as keyof Work)])) as Beside
  return { ...all, close }
}

const isSmall = (arg: unknown) => !(typeof arg === 'string' || arg instanceof Uint8Array) || arg.length <= SMALL
