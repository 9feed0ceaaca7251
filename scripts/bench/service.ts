/** The service under measurement, and its deliveries. */
import { type Figures, sorted } from '../stage/figures.ts'
import { addAccounts, addCues } from '../stage/seed.ts'
import type { Database, Replica, Stage } from '../stage/stage.ts'

/** `n` is a number of cues or the like, or seconds. */
export type Options = { runs: number; n: number }

/** To add a measure, add a line to `measures` in main.ts. What it starts is ended after it. */
export type Measure = {
  /** One line about what is measured, including `n`. */
  title: (n: number) => string
  /** Default number of runs. */
  runs: number
  n: number
  /** The unit of n, unless it is a count. */
  unit?: 'seconds'
  /** Returns the figures of each run. */
  measure: (stage: Stage, options: Options) => Promise<Figures[]>
}

export type Service = Database & { replica: Replica }

/** Starts a replica on a database of its own, or on that of another. It logs as much as it does by default. */
export const startService = async (stage: Stage, name: string, env: Record<string, string> = {}, other?: Database): Promise<Service> => {
  const database = other ?? (await stage.createDatabase(name))
  const replica = await stage.startReplica(name, { DATABASE_URL: database.url, LOG_LEVEL: 'info', ...env })
  return { ...database, replica }
}

type Webhooks = { path?: string; accounts?: number; name?: string }

/** Adds webhook cues of many accounts, which are not due yet. */
export const addWebhooks = async ({ pool }: Database, stage: Stage, count: number, options: Webhooks = {}) => {
  const { path = '/hook', accounts = 100, name = path.slice(1) } = options
  return addCues(pool, { accounts: await addAccounts(pool, accounts, name), count, hook: stage.receiver.url + path })
}

/** Waits for deliveries, and returns the instant of the last one and how late each was, in milliseconds, sorted. */
export const arrived = async (stage: Stage, count: number) => {
  const arrivedCount = await stage.receiver.wait(count)
  if (arrivedCount < count) throw new Error(`only ${arrivedCount} of ${count} deliveries arrived`)
  const { at, due, duplicates } = await stage.receiver.arrivals()
  return { last: at.at(-1)!, late: sorted(at.map((instant, n) => instant - due[n]!)), duplicates }
}
