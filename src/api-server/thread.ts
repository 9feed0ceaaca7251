/** The API's thread. Its log lines and database outages go to the engine's thread, which started it. */
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { MessageChannel, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { labelOf } from '../cells/settings.ts'
import type { Config } from '../config.ts'
import type { OutageLog } from '../database/outage-log.ts'
import { isUnavailable, unavailable } from '../errors.ts'
import { createMetrics, type MetricValues } from '../metrics/metrics.ts'
import { gatherLines } from '../startup/log.ts'
import { startTraces } from '../traces/start.ts'
import { createApi } from './api.ts'
import type { FromThread, ToThread } from './supervise.ts'

const engineAnswerMs = 5000

/**
 * Where both threads want the same CPU, the engine gets three quarters of it. Linux has a priority for each thread; elsewhere they share evenly.
 */
const yieldToEngine = () => {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), 5)
  } catch {}
}
yieldToEngine()

const send = (message: FromThread, ports: MessagePort[] = []) => parentPort!.postMessage(message, ports)

const outageLogOf = (cell: number): OutageLog => ({
  lost: (error, task, isReported) => {
    if (!isUnavailable(error)) return false
    const { name, message, code, sent } = error as Error & { code?: string; sent?: boolean }
    send({ kind: 'lost', cell, error: { name, message, code, sent }, task, isReported })
    return true
  },
  back: task => send({ kind: 'back', cell, task })
})

const { write, flush } = gatherLines(lines => send({ kind: 'log', lines }))
process.on('uncaughtExceptionMonitor', flush)

/** @throws {ApiError} if the engines do not respond: without their values, counters would seem to have restarted */
const askEngines = async (): Promise<MetricValues[]> => {
  const { port1, port2 } = new MessageChannel()
  try {
    send({ kind: 'metrics', answer: port2 }, [port2])
    const [values] = await once(port1, 'message', { signal: AbortSignal.timeout(engineAnswerMs) })
    return values
  } catch (error) {
    throw unavailable(error)
  } finally {
    port1.close()
  }
}

// A Buffer is cloned to another thread as a plain Uint8Array.
const configs: Config[] = workerData
const cells = configs.map(config => ({
  config: Object.freeze({ ...config, encryptionKeys: config.encryptionKeys.map(key => Buffer.from(key)) }),
  metrics: createMetrics({
    thread: 'api',
    askEngines: config.cell === 1 ? askEngines : undefined,
    cell: labelOf(config),
    replica: config.replicaName
  }),
  outageLog: outageLogOf(config.cell)
}))
// The engine's thread logs whether the collector can be reached.
const traces = await startTraces(process.env)
const api = await createApi({ cells, logStream: { write }, traces })

parentPort!.on('message', async (message: ToThread) => {
  if (message === 'listen') {
    await api.listen()
    flush()
    return send({ kind: 'listening' })
  }
  await api.stop()
  await traces.stop()
  flush()
  process.exit() // ends this thread only
})
