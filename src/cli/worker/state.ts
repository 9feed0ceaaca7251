/** The worker's state on disk, so that neither a claim nor a report is lost with the process. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import type { Held, Spooled } from '../../client/worker/store.ts'
import { makeDirectory } from '../../files/directories.ts'
import { CliError, exitCodes } from '../exit-codes.ts'
import { parseExactly } from '../json.ts'
import { isRunning, markOf, type ProcessMark } from './process.ts'

/** `process`: the handler's, once started. */
export type CommandClaim = Held & { process?: ProcessMark }

export type State = ReturnType<typeof openState>

/** File name of a claim. Includes the attempt, because an execution may be claimed again while an earlier report is still waiting. */
const nameOf = ({ execution_id, attempt }: Held) => encodeURIComponent(`${execution_id}-${attempt}`)

const makeDir = (dir: string) => {
  try {
    makeDirectory(dir, 0o700)
  } catch (error) {
    throw new CliError(`Cannot write the worker's state directory: ${(error as Error).message}. Set --state-dir.`)
  }
}

/** A directory with one JSON file per claim. Files are written atomically and are on disk when `put` returns. */
const createBox = <T>(dir: string) => {
  makeDir(dir)
  const fileOf = (held: Held) => join(dir, `${nameOf(held)}.json`)
  return {
    put: (held: Held, value: T) => {
      const draft = join(dir, `${nameOf(held)}.draft`)
      writeFileSync(draft, JSON.stringify(value), { mode: 0o600, flush: true })
      renameSync(draft, fileOf(held))
    },
    has: (held: Held) => existsSync(fileOf(held)),
    remove: (held: Held) => rmSync(fileOf(held), { force: true }),
    all: (): T[] =>
      readdirSync(dir)
        .filter(name => name.endsWith('.json'))
        .sort()
        .flatMap(name => {
          try {
            return [parseExactly(readFileSync(join(dir, name), 'utf8')) as T]
          } catch {
            renameSync(join(dir, name), join(dir, `${name}.broken`)) // not written by a worker, or damaged; kept for inspection
            return []
          }
        })
  }
}

/**
 * Takes a worker's state directory for this process. Without an id, the first free name is used: the host's name, then that with a number.
 * Also takes over the state of workers that are gone.
 * @throws CliError if another process uses the directory
 */
export const openState = (root: string, baseUrl: string, workerId: string | undefined) => {
  const service = join(root, new URL(baseUrl).host.replaceAll(':', '_'))
  const workers = workerId === undefined ? Array.from({ length: 1000 }, (_, i) => (i ? `${hostname()}-${i + 1}` : hostname())) : [workerId]
  const id = workers.find(one => takeLock(dirOf(service, one)))
  if (id === undefined) {
    throw new CliError(
      `A worker with the id ${workerId} is already running on this machine. Set another --worker-id.`,
      exitCodes.usage,
      'in_use'
    )
  }
  const dir = dirOf(service, id)
  adopt(service, dir)
  const runs = join(dir, 'runs')
  makeDir(runs)
  const runOf = (held: Held) => join(runs, nameOf(held))
  return {
    id,
    claims: createBox<CommandClaim>(join(dir, 'claims')),
    reports: createBox<Spooled>(join(dir, 'reports')),
    /** Reports that the service will never accept. */
    refused: createBox<Spooled>(join(dir, 'refused')),
    /** Creates an empty directory for one run of a handler. */
    openRun: (held: Held): string => {
      const run = runOf(held)
      rmSync(run, { recursive: true, force: true })
      mkdirSync(run, { mode: 0o700 })
      return run
    },
    removeRun: (held: Held) => rmSync(runOf(held), { recursive: true, force: true }),
    close: () => rmSync(join(dir, lock), { force: true })
  }
}

const lock = 'lock.json'

/** Ids may contain any character and be longer than a file name. */
const dirOf = (service: string, id: string): string => {
  const name = encodeURIComponent(id.toWellFormed())
  return join(service, `worker-${name.length > 200 ? createHash('sha256').update(id).digest('hex') : name}`)
}

const takeLock = (dir: string): boolean => {
  makeDir(dir)
  const file = join(dir, lock)
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

const readMark = (file: string): ProcessMark | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/** Takes over claims and reports of workers that are gone; they don't depend on the worker's id. */
const adopt = (service: string, own: string) => {
  for (const name of readdirSync(service)) {
    const dir = join(service, name)
    if (dir === own || !name.startsWith('worker-') || !takeLock(dir)) continue
    for (const box of ['claims', 'reports', 'refused', 'runs']) {
      makeDir(join(own, box))
      for (const file of namesIn(join(dir, box))) renameSync(join(dir, box, file), join(own, box, basename(file)))
    }
    rmSync(dir, { recursive: true, force: true })
  }
}

const namesIn = (dir: string): string[] => {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}
