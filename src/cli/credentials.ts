/** The service's address and API key: from flags, the environment, the local account, or the file written by `pgcue login`. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type LocalAccount, localFile, readLocalAccount } from '../accounts/local-file.ts'
import { draftIn } from '../directories.ts'
import { CliError, exitCodes, UsageError } from './exit-codes.ts'

type Env = Record<string, string | undefined>
type Stored = { api_key: string; email: string }
/** Stored per service: a key is only sent to the service it belongs to. */
type File = { base_url: string; services: Record<string, Stored> }

const defaultUrl = 'http://localhost:8080'

export const environmentHelp = `Environment
  PGCUE_API_KEY    API key (default: the key stored by pgcue login)
  PGCUE_BASE_URL   address of the service (default: that of the last login, else http://localhost:8080)
  NO_COLOR         disable colours on a terminal
  XDG_CONFIG_HOME  directory of pgcue/credentials.json, which stores keys and only you can read (default: ~/.config)`

const fileOf = (env: Env) => join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'pgcue', 'credentials.json')

const requirePrivate = (file: string): void => {
  if (process.platform === 'win32' || !(statSync(file).mode & 0o077)) return
  throw new CliError(`${file} contains keys and is readable by other users. Run: chmod 600 ${file}`, exitCodes.usage, 'exposed_credentials')
}

/** Where this program is, in a clone of the repository. */
const clone = fileURLToPath(new URL('../..', import.meta.url))

/** The local account of a data directory, if it is the same user's. */
export const localIn = (dataDir: string): LocalAccount | undefined => {
  const file = localFile(resolve(dataDir))
  const owner = statSync(file, { throwIfNoEntry: false })?.uid
  if (owner === undefined || (process.getuid && owner !== process.getuid())) return undefined
  requirePrivate(file)
  return readLocalAccount(file)
}

/** The local account of DATA_DIR, or of `.data` in the clone's folder: another folder might be somebody else's. */
const localOf = ({ DATA_DIR }: Env): LocalAccount | undefined =>
  DATA_DIR || resolve('.') === resolve(clone) ? localIn(DATA_DIR || '.data') : undefined

const read = (env: Env): File | undefined => {
  const file = fileOf(env)
  if (!existsSync(file)) return undefined
  requirePrivate(file)
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const message = `${file} cannot be read: ${(error as Error).message}. Remove it and run: pgcue login`
    throw new CliError(message, exitCodes.usage, 'bad_credentials')
  }
}

const write = (env: Env, content: File): string => {
  const file = fileOf(env)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = draftIn(dirname(file))
  writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, file)
  return file
}

export const baseUrlOf = (env: Env, flag?: string): string => {
  const url = (flag || env.PGCUE_BASE_URL || localOf(env)?.base_url || read(env)?.base_url || defaultUrl).replace(/\/+$/, '')
  if (!/^https?:\/\/[^/]/.test(url)) throw new UsageError(`${url} is not a valid address: it must start with http:// or https://`)
  return url
}

/** @throws CliError if there is no key for this service */
export const apiKeyOf = (env: Env, baseUrl: string, onLocal: (account: LocalAccount) => void = () => {}): string => {
  if (env.PGCUE_API_KEY) return env.PGCUE_API_KEY
  const local = localOf(env)
  if (local?.base_url === baseUrl) onLocal(local)
  const key = local?.base_url === baseUrl ? local.api_key : read(env)?.services[baseUrl]?.api_key
  if (key) return key
  throw new CliError(`No key for ${baseUrl}. Set PGCUE_API_KEY, or run: pgcue login`, exitCodes.usage, 'no_key')
}

/** Stores a key, makes its service the default, and returns the file's path. */
export const storeKey = (env: Env, baseUrl: string, stored: Stored): string =>
  write(env, { base_url: baseUrl, services: { ...read(env)?.services, [baseUrl]: stored } })

/** Returns the email address of the account whose key is stored, if any. */
export const storedEmail = (env: Env, baseUrl: string): string | undefined => read(env)?.services[baseUrl]?.email

/** Removes the stored key; returns false if there was none. */
export const forgetKey = (env: Env, baseUrl: string): boolean => {
  const file = read(env)
  if (!file?.services[baseUrl]) return false
  const { [baseUrl]: _, ...services } = file.services
  const [next] = Object.keys(services)
  if (next === undefined) rmSync(fileOf(env))
  else write(env, { base_url: file.base_url === baseUrl ? next : file.base_url, services })
  return true
}
