/**
 * Runs work on small JSON at once, and on large JSON in a thread, so that the event loop can serve other requests. The thread starts when it is
 * first needed, and ends when it has been idle for a while.
 */
import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { unavailable } from '../errors.ts'
import { JsonError } from './canonical-json.ts'
import { type Answered, type Asked, threadData, work } from './json-worker.ts'

/** Bytes or characters. The slowest text of this size takes about 10 ms. */
const SMALL = 32 * 1024
const IDLE_MS = 30_000

type Work = typeof work
type Beside = { [Name in keyof Work]: (...args: Parameters<Work[Name]>) => Promise<ReturnType<Work[Name]>> }
export type LargeJson = Beside & { close: () => Promise<void> }

type Thread = { worker: Worker; ended: AbortSignal }

/** Rejects with JsonError for invalid JSON, and with ApiError unavailable if the thread ends, such as for lack of memory. */
export const createLargeJson = (): LargeJson => {
  let thread: Thread | undefined
  let idle: NodeJS.Timeout | undefined
  let open = 0

  const start = (): Thread => {
    const worker = new Worker(new URL(`./json-worker${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: threadData,
      resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 }
    })
    worker.unref()
    const ending = new AbortController()
    const end = (error: unknown) => {
      ending.abort(error)
      if (thread?.worker === worker) thread = undefined
    }
    worker.once('error', end).once('exit', end)
    return { worker, ended: ending.signal }
  }

  const close = async (): Promise<void> => {
    clearTimeout(idle)
    const worker = thread?.worker
    thread = undefined
    await worker?.terminate()
  }

  const ask = async (name: keyof Work, args: unknown[]) => {
    clearTimeout(idle)
    open++
    thread ??= start()
    const { worker, ended } = thread
    const { port1, port2 } = new MessageChannel()
    try {
      worker.postMessage({ name, args, port: port2 } satisfies Asked, [port2])
      const [{ result, fault }] = (await once(port1, 'message', { signal: ended })) as [Answered]
      if (fault) throw new JsonError(fault.reason, fault.message)
      return result
    } catch (error) {
      throw error instanceof JsonError ? error : unavailable(error)
    } finally {
      port1.close()
      if (--open === 0) idle = setTimeout(close, IDLE_MS).unref()
    }
  }

  const beside =
    (name: keyof Work) =>
    async (...args: never[]) =>
      args.every(isSmall) ? (work[name] as (...args: never[]) => unknown)(...args) : ask(name, args)

  const all = Object.fromEntries(Object.keys(work).map(name => [name, beside(name as keyof Work)])) as Beside
  return { ...all, close }
}

const isSmall = (arg: unknown) => !(typeof arg === 'string' || arg instanceof Uint8Array) || arg.length <= SMALL
