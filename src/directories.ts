import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** Creates a directory and its missing parents. Node's recursive mkdir never returns where a directory cannot be created, as in /proc. */
export const makeDirectory = (path: string, mode?: number): void => {
  const parent = dirname(path)
  if (!existsSync(parent)) makeDirectory(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

/** A path in a directory for what is renamed when it is complete. Drafts of processes that have died are removed. */
export const draftIn = (dir: string): string => {
  for (const name of readdirSync(dir)) {
    const [, pid] = /^draft-(\d+)$/.exec(name) ?? []
    // In a container, the next process may have the same id. A program that the dead one had started may still be writing.
    if (pid && (Number(pid) === process.pid || !isAlive(Number(pid))))
      rmSync(join(dir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
  return join(dir, `draft-${process.pid}`)
}

export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** A path below the working directory as people write it; any other is absolute. */
export const shortPath = (path: string): string => {
  const short = relative('', path)
  return short === '' || short.startsWith('..') ? path : short
}

/** The folder of mails without a mail server, null with one. Beyond this machine, nobody needs to know its path. */
export const outboxOf = ({ smtpUrl, embedded, dataDir }: { smtpUrl: string | null; embedded: boolean; dataDir: string }): string | null =>
  smtpUrl ? null : join(embedded ? shortPath(dataDir) : 'DATA_DIR', 'outbox')
