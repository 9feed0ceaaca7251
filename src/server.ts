/** Starts a replica: configuration, database, migrations, engine and API; stops them in order. `npm start` runs this. */
import { pino } from 'pino'
import { decryptKey } from './accounts/keys.ts'
import type { Api } from './api/api.ts'
import { superviseApi } from './api/supervise.ts'
import { atPort, type Config, ConfigError, loadConfig } from './config.ts'
import { createClock } from './database/clock.ts'
import { createFunctions } from './database/functions.ts'
import { isPooled } from './database/listener.ts'
import { createOutageLog } from './database/outage-log.ts'
import { createPool, startDatabase } from './database/pool.ts'
import { createAddressRules } from './deliveries/address.ts'
import { type Engine, startEngine } from './engine.ts'
import { isAway } from './errors.ts'
import { createMetrics } from './metrics/metrics.ts'
import { migrate, unusable } from './migrate/migrate.ts'
import { firstScreen } from './startup/first-screen.ts'
import { collectGarbage } from './startup/garbage.ts'
import { loggerOptions, together } from './startup/log.ts'
import { whenNpmEnds } from './startup/parent.ts'
import { findPort, refuseToListen } from './startup/port.ts'
import { requireFunctions } from './startup/required-functions.ts'
import { requireSecrets } from './startup/secrets.ts'

/** Milliseconds after which a stopping process exits in any case. */
const stopMs = 29_000

const start = async () => {
  let config = loadConfig(process.env)
  const { roles } = config
  // The last lines are written when the process exits.
  const destination = pino.destination({ dest: 1, sync: false, minLength: together.bytes, periodicFlush: together.ms })
  const logger = pino(loggerOptions(config.logLevel), destination)
  log = logger

  const database = await startDatabase(config, say)
  onStop(() => database.stop())
  // Checked before the engine starts: a replica that cannot listen must not register as an engine.
  config = atPort(database.config, await findPort(config))
  if (config.migrate) await migrate({ connectionString: config.listenUrl, log: say })
  config = Object.freeze({ ...config, pooled: await isPooled(config).catch(error => Promise.reject(unusable(error))) })
  await prepare(config)

  const outageLog = createOutageLog(logger)
  const metrics = createMetrics({ thread: roles.engine ? 'engine' : 'api' })
  const openApi = async (): Promise<Api> => {
    if (roles.api && roles.engine)
      return superviseApi({ config, metrics, outageLog, log: logger, write: lines => destination.write(lines) })
    const { createApi } = await import('./api/api.ts')
    return createApi({ config, metrics, outageLog, logger })
  }
  const api = await openApi()
  let starting: Promise<Engine> | undefined
  const stopEngine = async () => (await starting?.catch(() => undefined))?.stop()
  onStop(async () => {
    const [count] = await Promise.all([stopEngine(), api.stop()])
    attemptsGivenBack = count
  })
  if (roles.engine) {
    const rules = createAddressRules({ allowCidrs: config.callbackAllowCidrs, allowHttp: config.callbackAllowHttp })
    const decrypt = (ciphertext: string) => decryptKey(config.encryptionKeys, ciphertext)
    starting = startEngine({ config, rules, clock: createClock(), decryptKey: decrypt, metrics, outageLog, log: logger })
    await starting
  }
  await api.listen().catch(error => refuseToListen(error, config))
  say(firstScreen(config))
  collectGarbage()
}

/** Checks the database (reachable, has this release's functions, same secrets as other replicas) and stores the limits of the plans. */
const prepare = async (config: Config) => {
  const pool = createPool(config, { max: 1 })
  try {
    const connection = await pool.connect().catch(error => Promise.reject(unusable(error)))
    connection.release()
    await requireFunctions(pool, config)
    const fn = createFunctions(pool)
    await requireSecrets(fn, config)
    await fn.setPlans({ plans: config.plans })
  } finally {
    await pool.end()
  }
}

const say = (line: string) => console.error(line)

// Stops what was started, latest first, even if a signal arrives during startup.
const stops: (() => Promise<unknown>)[] = []
const onStop = (stop: () => Promise<unknown>) => stops.unshift(stop)
let stopping = false
let log: pino.Logger | undefined
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
// The engine runs in this thread, and without it the API must not continue. Node ends the process; other replicas take over its attempts.
process.on('uncaughtExceptionMonitor', error => log?.fatal({ err: error }, 'unhandled error: replica exits'))

start().catch(thrown => {
  if (stopping) return
  const error = isAway(thrown) ? unusable(thrown) : thrown
  say(error instanceof ConfigError ? `pgcue: ${error.message}` : `pgcue: could not start: ${error.stack}`)
  return stop(1)
})
