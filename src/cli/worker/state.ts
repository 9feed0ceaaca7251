/** The worker's state on disk, so that neither a claim nor a report is lost with the process. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Held, Spooled } from '../../client/worker/store.ts'
import { makeDirectory } from '../../directories.ts'
import { CliError, exitCodes } from '../exit-codes.ts'
import { parseExactly } from '../io.ts'
import { isRunning, markOf, type ProcessMark } from './process.ts'

/** `process`: the handler's, once started. */
export type CommandClaim = Held & { process?: ProcessMark }

export type State = ReturnType<typeof openState>

/** File name of a claim. Includes the attempt, because an execution may be claimed again while an earlier report is still waiting. */
const nameOf = ({ execution_id, attempt }: Held) => encodeURIComponent(`${execution_id}-${attempt}`)

/**
 * Opens the state of all workers of this machine for a service, as the worker with this id. Without an id, the first free name is used: the
 * host's name, then that with a number.
 * @throws CliError if another process uses the id
 */
export const openState = (root: string, baseUrl: string, workerId: string | undefined) => {
  const dir = join(root, new URL(baseUrl).host.replaceAll(':', '_'))
  const [ids, runs] = [join(dir, 'ids'), join(dir, 'runs')]
  try {
    for (const name of ['ids', 'runs', 'claims', 'reports', 'refused']) makeDirectory(join(dir, name), 0o700)
  } catch (error) {
    throw new CliError(`Cannot write the worker's state directory: ${(error as Error).message}. Set --state-dir.`)
  }
  const names = workerId === undefined ? Array.from({ length: 1000 }, (_, i) => (i ? `${hostname()}-${i + 1}` : hostname())) : [workerId]
  const id = names.find(name => takeLock(lockOf(ids, name)))
  if (id === undefined) {
    const message = `A worker with the id ${workerId} is already running on this machine. Set another --worker-id.`
    throw new CliError(message, exitCodes.usage, 'in_use')
  }
  const isMine = (worker: string) => worker === id || !isRunning(readMark(lockOf(ids, worker)))
  const box = <T extends object>(name: string) => createBox<T>(join(dir, name), id, isMine)
  const runOf = (held: Held) => join(runs, nameOf(held))
  return {
    id,
    claims: box<CommandClaim>('claims'),
    reports: box<Spooled>('reports'),
    /** Reports that the service will never accept. */
    refused: box<Spooled>('refused'),
    /** Creates an empty directory for one run of a handler. */
    openRun: (held: Held): string => {
      const run = runOf(held)
      rmSync(run, { recursive: true, force: true })
      mkdirSync(run, { mode: 0o700 })
      return run
    },
    removeRun: (held: Held) => rmSync(runOf(held), { recursive: true, force: true }),
    close: () => rmSync(lockOf(ids, id), { force: true })
  }
}

/** A directory with one JSON file per claim. Files are written atomically and are on disk when `put` returns. */
const createBox = <T extends object>(dir: string, worker: string, isMine: (worker: string) => boolean) => {
  const fileOf = (held: Held) => join(dir, `${nameOf(held)}.json`)
  return {
    put: (held: Held, value: T) => {
      const draft = join(dir, `${nameOf(held)}.draft`)
      writeFileSync(draft, JSON.stringify({ ...value, worker }), { mode: 0o600, flush: true })
      renameSync(draft, fileOf(held))
    },
    has: (held: Held) => existsSync(fileOf(held)),
    remove: (held: Held) => rmSync(fileOf(held), { force: true }),
    /** Those of this worker, and of workers that are gone. If two workers take one over, the service accepts one report or release. */
    all: (): T[] =>
      readdirSync(dir)
        .filter(name => name.endsWith('.json'))
        .sort()
        .flatMap(name => {
          const value = readJson(join(dir, name)) as (T & { worker: string }) | undefined
          // A worker that writes a file has its lock before, which therefore is looked at afterwards.
          return value && isMine(value.worker) ? [value] : []
        })
  }
}

/** Ids may contain any character and be longer than a file name. */
const lockOf = (ids: string, id: string) => join(ids, createHash('sha256').update(id).digest('hex'))

const takeLock = (file: string): boolean => {
  for (let tries = 0; tries < 2; tries++) {
    try {
      writeFileSync(file, JSON.stringify(markOf(process.pid)), { flag: 'wx', mode: 0o600 })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    if (isRunning(readMark(file))) return false
    rmSync(file, { force: true })
  }
  return false
}

const readMark = (file: string) => readJson(file) as ProcessMark | undefined

/** Undefined if another worker has just removed the file, or is writing it. */
const readJson = (file: string): unknown => {
  try {
    return parseExactly(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
