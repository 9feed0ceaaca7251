/** Starts a replica: configuration, database, migrations, engine and API; stops them in order. `npm start` runs this. */
import { pino } from 'pino'
import type { Api } from './api-server/api.ts'
import { superviseApi } from './api-server/supervise.ts'
import { atPort, type Config, ConfigError, loadConfig, version } from './config.ts'
import { startDatabase } from './database/pool.ts'
import { openCells, startEngines } from './engine/cells.ts'
import type { Engine } from './engine/engine.ts'
import { isUnavailable } from './errors.ts'
import { unusable } from './migrate/migrate.ts'
import { firstScreen } from './startup/first-screen.ts'
import { collectGarbage } from './startup/garbage.ts'
import { gatherLines, loggerOptions, prettyLines } from './startup/log.ts'
import { whenNpmEnds } from './startup/parent.ts'
import { findAddress, findPort, refuseToListen } from './startup/port.ts'
import { startTraces } from './traces/start.ts'

/** Milliseconds after which a stopping process exits in any case. */
const stopMs = 29_000

const start = async () => {
  let config = loadConfig(process.env)
  const { roles } = config
  const destination = pino.destination({ dest: 1, sync: false })
  // Pino's own gathering counts all bytes that wait again for each line.
  const { write, flush } = gatherLines(lines =>
    destination.write(config.logFormat === 'pretty' ? prettyLines(lines, config.logLevel) : lines)
  )
  process.on('exit', () => {
    flush()
    destination.flushSync()
  })
  const plain = pino(loggerOptions(config.logLevel), { write })
  plain.info({ replica: config.replicaName, version }, 'starting')
  const traces = await startTraces(process.env, plain)
  const logger = plain.child({}, { formatters: { log: traces.line } })
  log = logger
  onStop(() => traces.stop())
  const database = await startDatabase(config, say)
  onStop(() => database.stop())
  // Checked before the engine starts: a replica that cannot listen must not register as an engine.
  config = atPort({ ...database.config, host: await findAddress(config) }, await findPort(config))
  const cells = await openCells(config, logger, say)
  const openApi = async (): Promise<Api> => {
    if (roles.api && roles.engine) return superviseApi({ cells, log: logger, write })
    const { createApi } = await import('./api-server/api.ts')
    return createApi({ cells, logger, traces })
  }
  const api = await openApi()
  let starting: Promise<Engine> | undefined
  const stopEngines = async () => (await starting?.catch(() => undefined))?.stop()
  onStop(async () => {
    const [count] = await Promise.all([stopEngines(), api.stop()])
    attemptsGivenBack = count
  })
  starting = startEngines(cells, { traces, say, onFailed: fail })
  await starting
  await api.listen().catch(error => refuseToListen(error, config))
  say(firstScreen(config, config.embedded && roles.api ? await openLink(cells[0]!.config) : undefined))
  collectGarbage()
}

const openLink = async (config: Config) => (await import('./startup/local-link.ts')).openLocalAccount(config)

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
  for (const stopPart of stops) await stopPart().catch(error => say(`pgcue: stopping: ${error.message}`))
  if (signal) log?.info({ attempts_given_back: attemptsGivenBack, ms: Math.round(performance.now() - stoppingAt) }, 'stopped')
  process.exit(code)
}
process.on('SIGTERM', signal => stop(0, signal))
process.on('SIGINT', signal => stop(0, signal))
whenNpmEnds(() => stop(0, 'SIGTERM'))
// The engine runs in this thread, and without it the API must not continue. Node ends the process; other replicas take over its attempts.
process.on('uncaughtExceptionMonitor', error => log?.fatal({ err: error }, 'unhandled error: replica exits'))

const fail = (thrown: unknown) => {
  if (stopping) return
  const error = isUnavailable(thrown) ? unusable(thrown) : thrown
  say(error instanceof ConfigError ? `pgcue: ${error.message}` : `pgcue: could not start: ${(error as Error).stack}`)
  return stop(1)
}

start().catch(fail)
