/** Starts a replica: configuration, database, migrations, API and engine; stops them in order. `npm start` runs this. */
import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import { migrate, unusable } from '../scripts/migrate.ts'
import { decryptKey } from './accounts/keys.ts'
import { build } from './app.ts'
import { atPort, ConfigError, engineConnections, loadConfig } from './config.ts'
import { createPool, startDatabase } from './database.ts'
import { startEngine } from './engine.ts'
import { isAway } from './errors.ts'
import { firstScreen } from './first-screen.ts'
import { isPooled } from './listener.ts'
import { createMetrics } from './metrics/metrics.ts'
import { whenNpmEnds } from './parent.ts'
import { findPort, refuseToListen } from './port.ts'
import { requireFunctions } from './required-functions.ts'
import { requireSecrets } from './secrets.ts'

/** Lines of a tenth of a second are written together: a write for each would cost as much as the rest of a request. What ends the process writes. */
const logOptions = { dest: 1, sync: false, minLength: 8192, periodicFlush: 100 }
/** However things stand, a stopping process ends within this. */
const stopMs = 29_000

const start = async () => {
  let config = loadConfig(process.env)
  const database = await startDatabase(config, say)
  onStop(() => database.stop())
  // The engine tells of itself before the port is bound: a start that could not listen must not get that far.
  config = atPort(database.config, await findPort(config))
  if (config.migrate) await migrate({ connectionString: config.listenUrl, log: say })
  config = Object.freeze({ ...config, pooled: await isPooled(config).catch(error => Promise.reject(unusable(error))) })

  const apiConnections = config.pgPoolMax - (config.roles.engine ? engineConnections : 0)
  const onError = (error: Error) =>
    app.away.lost(error, 'keeping a connection') || app.log.warn({ err: error }, 'an idle connection was lost')
  const pool = createPool(config, { max: apiConnections, onError })
  const metrics = createMetrics()
  const app = await build({ config, pool, metrics, logStream: pino.destination(logOptions) })
  log = app.log
  onStop(() => pool.end())
  const connection = await pool.connect().catch(error => Promise.reject(unusable(error)))
  connection.release()
  await requireFunctions(pool, config)
  await requireSecrets(app.fn, config)
  await app.fn.setPlans({ plans: config.plans })
  if (config.roles.engine) {
    const decrypt = (ciphertext: string) => decryptKey(config.encryptionKeys, ciphertext)
    const engine = await startEngine({
      config,
      rules: app.rules,
      clock: app.clock,
      decryptKey: decrypt,
      metrics,
      away: app.away,
      log: app.log
    })
    onStop(async () => {
      const [count] = await Promise.all([engine.stop(), app.close()])
      attemptsGivenBack = count
    })
  } else onStop(() => app.close())
  await app.listen({ host: config.host, port: config.port, backlog: 2048 }).catch(error => refuseToListen(error, config))
  say(firstScreen(config))
  // A third of the memory is what loading has left, and an idle replica would keep it. `npm start` exposes this.
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

const say = (line: string) => console.error(line)

// What was started is stopped, the latest first; also when a signal comes while the rest is still starting.
const stops: (() => Promise<unknown>)[] = []
const onStop = (stop: () => Promise<unknown>) => stops.unshift(stop)
let stopping = false
let log: FastifyBaseLogger | undefined
let attemptsGivenBack: number | undefined
const stop = async (code: number, signal?: NodeJS.Signals) => {
  if (stopping) return
  stopping = true
  const stoppingAt = performance.now()
  if (signal) log?.info({ signal }, 'stopping')
  setTimeout(() => process.exit(code || 1), stopMs).unref()
  for (const one of stops) await one().catch(error => say(`pgcue: stopping: ${error.message}`))
  if (signal) log?.info({ attempts_given_back: attemptsGivenBack, ms: Math.round(performance.now() - stoppingAt) }, 'stopped')
  process.exit(code)
}
process.on('SIGTERM', signal => stop(0, signal))
process.on('SIGINT', signal => stop(0, signal))
whenNpmEnds(() => stop(0, 'SIGTERM'))

start().catch(thrown => {
  const error = isAway(thrown) ? unusable(thrown) : thrown
  say(error instanceof ConfigError ? `pgcue: ${error.message}` : `pgcue: could not start: ${error.stack}`)
  return stop(1)
})
