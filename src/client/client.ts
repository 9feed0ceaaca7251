/** The typed client: the methods of the API, and a worker. */
import { createMethods } from './methods.ts'
import type { ClientOptions } from './transport.ts'
import { runTasks, type WorkerOptions } from './worker/worker.ts'

export type Client = ReturnType<typeof createClient>

/**
 * Creates a client for one service and one key. Calls that are safe to repeat are retried: reads, updates, and reports, which the service
 * accepts once. Rate-limited calls are always retried, when the service allows it. Every method takes `{ signal, timeoutMs, retries,
 * apiKey, ifVersion, idempotencyKey, headers }` as its last argument.
 * @throws {PgcueError} from all methods, and from this function if the key cannot be sent in a header
 */
export const createClient = (options: ClientOptions) => {
  const methods = createMethods(options)
  return {
    ...methods,
    /**
     * Claims executions and runs their tasks, until the signal is aborted and running tasks have ended. A task may run twice: deduplicate
     * its effects by `executionId`. Resolves when the worker has drained.
     * @throws {PgcueError} if the key is invalid
     */
    worker: (worker: WorkerOptions): Promise<void> => runTasks(methods, worker)
  }
}
