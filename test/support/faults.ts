/**
 * Loaded into a replica by NODE_OPTIONS, once per thread. Requests to these paths break the serving thread: /fault/block blocks it as long as
 * the file FAULTS_HOLD, which it creates, exists; /fault/exhaust fills its heap, /fault/throw throws. SIGUSR2 throws in the main thread.
 * Each package of OpenTelemetry that a thread loads is a line on standard error, and each that the engine should leave to the API.
 */
import { subscribe } from 'node:diagnostics_channel'
import { existsSync, writeFileSync, writeSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'

const blockMsAtMost = 60_000
const never = new Int32Array(new SharedArrayBuffer(4))

const faults: Record<string, () => void> = {
  '/fault/block': () => {
    const file = process.env.FAULTS_HOLD!
    writeFileSync(file, '')
    // Without using the CPU, which belongs to tests of other files.
    for (const end = Date.now() + blockMsAtMost; existsSync(file) && Date.now() < end; ) Atomics.wait(never, 0, 0, 20)
  },
  '/fault/exhaust': () => {
    for (const kept: object[] = []; ; ) kept.push({ n: kept.length })
  },
  '/fault/throw': () => {
    throw new Error('a fault of the API')
  }
}

subscribe('http.server.request.start', message => {
  const { request } = message as { request: IncomingMessage }
  const fault = faults[request.url ?? '']
  if (fault) setImmediate(fault)
})
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.startsWith('@opentelemetry/'))
      writeSync(2, `${isMainThread ? 'engine' : 'api'} loads ${specifier} for ${context.parentURL}\n`)
    return next(specifier, context)
  },
  load: (url, context, next) => {
    if (isMainThread && /\/(node_modules|bundled\/[^/]+)\/(typebox|kysely|fastify|jose)\b/.test(url)) writeSync(2, `engine loads ${url}\n`)
    return next(url, context)
  }
})
if (isMainThread) {
  process.on('SIGUSR2', () => {
    throw new Error('a fault of the engine')
  })
}
