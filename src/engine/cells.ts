/**
 * The databases of a replica and their engines. With several cells, one that is unavailable prevents the others neither from starting nor from
 * running, and joins them when it responds.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { decryptKey } from '../accounts/keys.ts'
import { cellConfig, labelOf } from '../cells/settings.ts'
import type { Config } from '../config.ts'
import { createClock } from '../database/clock.ts'
import { createOutageLog, type OutageLog } from '../database/outage-log.ts'
import { type AddressRules, createAddressRules } from '../deliveries/address.ts'
import { isUnavailable } from '../errors.ts'
import { createMetrics, type Metrics } from '../metrics/metrics.ts'
import { Unreachable } from '../migrate/migrate.ts'
import { prepareCell, requireOrder } from '../startup/prepare.ts'
import type { Traces } from '../traces/traces.ts'
import { type Engine, startEngine } from './engine.ts'

const retryMs = 1000
const retryMsAtMost = 30_000

export type Cell = { config: Config; metrics: Metrics; outageLog: OutageLog; log: FastifyBaseLogger; isPrepared: boolean }

/**
 * Prepares all cells, in the order of their numbers.
 * @throws {ConfigError} if a cell cannot be used, or all are unavailable
 */
export const openCells = async (config: Config, log: FastifyBaseLogger, say: (line: string) => void): Promise<Cell[]> => {
  const configs = config.databases.map((_, index) => cellConfig(config, index + 1))
  // First of all: a new database that is in the wrong place would keep the number of that place.
  if (configs.length > 1) {
    for (const check of await Promise.allSettled(configs.map(requireOrder))) if (check.status === 'rejected') mayPass(check.reason)
  }
  let unavailable: unknown
  const open = async (settings: Config): Promise<Cell> => {
    const label = labelOf(settings)
    const cellLog = label === undefined ? log : log.child({ cell: label })
    const metrics = createMetrics({ thread: config.roles.engine ? 'engine' : 'api', cell: label, replica: config.replicaName })
    const prepared = await prepareCell(settings, sayOf(settings, say)).catch(error => {
      unavailable = error
      if (label === undefined) throw error
      mayPass(error)
      cellLog.warn({ err: error }, 'cell unavailable; trying again')
    })
    return { config: prepared ?? settings, metrics, outageLog: createOutageLog(cellLog), log: cellLog, isPrepared: prepared !== undefined }
  }
  const cells: Cell[] = []
  for (const settings of configs) cells.push(await open(settings))
  if (cells.every(({ isPrepared }) => !isPrepared)) throw unavailable
  return cells
}

type Options = {
  traces: Traces
  say: (line: string) => void
  /** Called if a cell that became available cannot be used. */
  onFailed: (error: unknown) => void
}

/** Starts the engines of all available cells now and of the others later. Stopping returns the number of released attempts. */
export const startEngines = async (cells: readonly Cell[], { traces, say, onFailed }: Options): Promise<Engine> => {
  const stopping = new AbortController()
  const { signal } = stopping
  const engines: Engine[] = []
  const [{ config }] = cells as [Cell]
  const rules = createAddressRules({ allowCidrs: config.callbackAllowCidrs, allowHttp: config.callbackAllowHttp })

  const start = async (cell: Cell) => {
    if (!cell.isPrepared) await prepareCell(cell.config, sayOf(cell.config, say))
    cell.isPrepared = true
    if (cell.config.roles.engine && cell.config.engineCells.includes(cell.config.cell)) engines.push(await startOne(cell, rules, traces))
    cell.outageLog.back()
  }
  const startLater = async (cell: Cell) => {
    for (let waitMs = retryMs; ; waitMs = Math.min(waitMs * 2, retryMsAtMost)) {
      await delay(waitMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      try {
        await start(cell)
        return cell.log.warn('cell available')
      } catch (error) {
        mayPass(error)
      }
    }
  }
  const later: Promise<void>[] = []
  const startNow = (cell: Cell) =>
    start(cell).catch(error => {
      if (cells.length === 1) throw error
      mayPass(error)
      later.push(startLater(cell).catch(onFailed))
    })
  await Promise.all(cells.map(startNow))

  return {
    stop: async () => {
      stopping.abort()
      await Promise.all(later)
      const counts = await Promise.all(engines.map(engine => engine.stop()))
      return counts.reduce((sum, count) => sum + count, 0)
    }
  }
}

const startOne = ({ config, metrics, outageLog, log }: Cell, rules: AddressRules, traces: Traces) =>
  startEngine({
    config,
    rules,
    clock: createClock(undefined, ms => log.warn({ ms }, "the database's clock jumped")),
    decryptKey: (ciphertext, purpose) => decryptKey(config.encryptionKeys, ciphertext, purpose),
    metrics,
    traces,
    outageLog,
    log
  })

/** Throws errors other than those of an unavailable database. */
const mayPass = (error: unknown): void => {
  if (!(error instanceof Unreachable || isUnavailable(error))) throw error
}

const sayOf = (config: Config, say: (line: string) => void) => {
  const label = labelOf(config)
  return label === undefined ? say : (line: string) => say(`cell ${label}: ${line}`)
}
