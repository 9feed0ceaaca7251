/** Runs what the command line names on a stage, and ends the stage, whatever happens. */
import { availableParallelism, loadavg } from 'node:os'
import { endStage } from './processes.ts'
import { openStage, type Stage } from './stage.ts'

/** Returns the named members of a table, or all. @throws if there is no such member */
export const pick = (table: object, names: string[], usual = Object.keys(table)): string[] => {
  const unknown = names.find(name => !Object.hasOwn(table, name))
  if (unknown) throw new Error(`there is no ${unknown}; there are ${Object.keys(table).join(', ')}`)
  return names.length > 0 ? names : usual
}

/** Reads a whole number of the command line. */
export const wholeNumber = (name: string, value: string, least = 1): number => {
  if (!/^\d{1,7}$/.test(value) || Number(value) < least) throw new Error(`--${name} must be a whole number from ${least}`)
  return Number(value)
}

/** Exits with 1 if the work throws or resolves to false; then the logs are kept. */
export const onStage = async (options: Parameters<typeof openStage>[0], work: (stage: Stage) => Promise<boolean>): Promise<never> => {
  let isEnding = false
  const end = async (code: number) => {
    if (isEnding) return
    isEnding = true
    await endStage(code === 1)
    process.exit(code)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(130))
  try {
    const stage = await openStage(options)
    const load = loadavg()[0]!.toFixed(1)
    console.log(`Node ${process.version}, PostgreSQL ${stage.version}, ${availableParallelism()} CPUs, load ${load}`)
    const isWell = await work(stage)
    if (!isWell) console.log(`\nThe logs are in ${stage.dir}`)
    await end(isWell ? 0 : 1)
  } catch (error) {
    if (!isEnding) console.error(error) // errors during shutdown are expected
    await end(1)
  }
  return new Promise(() => {}) // `end` exits
}
