import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { constants } from './catalog.ts'
import { oneServer, readCells, requireOneServer } from './cells/settings.ts'
import { draftIn, makeDirectory } from './directories.ts'
import { isObject } from './json/canonical-json.ts'

export type Plan = 'free' | 'pro' | 'scale'
/** Limits of a plan. Those that may be null are off by default. */
export type Limits = {
  requests_per_minute: number
  cues: number
  executions_per_month: number
  fires_per_hour: number
  open_deliveries: number
  max_timeout_seconds: number | null
  min_interval_seconds: number | null
  payload_bytes_per_day: number | null
}
export type Prices = { [plan in Exclude<Plan, 'free'>]?: { monthly?: string; annual?: string } }
export type Config = ReturnType<typeof loadConfig>

/** An unusable setting. The message is one line that names the variable and never contains its value. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export const version: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version

const optionalLimits = { max_timeout_seconds: null, min_interval_seconds: null, payload_bytes_per_day: null }
const defaultPlans: Record<Plan, Limits> = {
  free: { requests_per_minute: 60, cues: 10, executions_per_month: 300, fires_per_hour: 10, open_deliveries: 50, ...optionalLimits },
  pro: { requests_per_minute: 200, cues: 100, executions_per_month: 5000, fires_per_hour: 10, open_deliveries: 250, ...optionalLimits },
  scale: { requests_per_minute: 500, cues: 500, executions_per_month: 50_000, fires_per_hour: 10, open_deliveries: 1000, ...optionalLimits }
}
/** Minimum and maximum of each limit. */
export const limitBounds: Record<keyof Limits, [number, number]> = {
  requests_per_minute: [1, 2 ** 31 - 1],
  cues: [0, 2 ** 31 - 1],
  executions_per_month: [0, 2 ** 31 - 1],
  fires_per_hour: [1, 2 ** 31 - 1],
  open_deliveries: [1, 2 ** 31 - 1],
  max_timeout_seconds: [1, 3600],
  min_interval_seconds: [1, 2 ** 31 - 1],
  payload_bytes_per_day: [1, Number.MAX_SAFE_INTEGER]
}

/** Connections of PG_POOL_MAX that the engine uses. */
export const engineConnections = 6
/** Minimum for the API beside an engine: with a single connection, one slow statement would block all others. */
const apiConnectionsAtLeast = 2

const limitNames = Object.keys(limitBounds).join(', ')

type Env = Record<string, string | undefined>

/** Readers for each kind of value. Each throws a ConfigError naming the variable if the value is invalid. */
export const readers = (env: Env) => {
  const refuse = (name: string, must: string): never => {
    throw new ConfigError(`${name} ${must}`)
  }
  const raw = (name: string) => env[name]?.trim() || null
  const read = <T, F>(name: string, fallback: F, must: string, parse: (value: string) => T | undefined): T | F => {
    const value = raw(name)
    if (value === null) return fallback
    try {
      const parsed = parse(value)
      if (parsed !== undefined) return parsed
    } catch (error) {
      if (error instanceof ConfigError) throw error
    }
    return refuse(name, must)
  }

  const text = (name: string) => raw(name)
  const token = (name: string) =>
    read(name, null, 'must have at least 16 characters, without blanks', value => (/^\S{16,}$/.test(value) ? value : undefined))
  const integer = (name: string, fallback: number, min: number, max: number) =>
    read(name, fallback, `must be a whole number from ${min} to ${max}`, value => {
      const number = Number(value)
      return /^\d+$/.test(value) && number >= min && number <= max ? number : undefined
    })
  const flag = (name: string, fallback: boolean) => read(name, fallback, 'must be on or off', value => flags[value.toLowerCase()])
  const list = (name: string, must: string, good: (item: string) => boolean) =>
    read(name, [], must, value => {
      const items = value.split(',').map(item => item.trim())
      return items.every(good) ? items : undefined
    })
  const url = <F>(name: string, fallback: F, protocols: string[]) =>
    read(name, fallback, `must be a URL that starts with ${protocols.map(p => `${p}//`).join(' or ')}`, value =>
      protocols.includes(new URL(value).protocol) ? value : undefined
    )
  const webUrl = <F>(name: string, fallback: F) => {
    const value = url(name, fallback, ['http:', 'https:'])
    return typeof value === 'string' ? value.replace(/\/+$/, '') : value
  }
  const postgresUrl = (name: string, fallback: string) => {
    requireOneServer(raw(name) ?? '', () => refuse(name, oneServer))
    return url(name, fallback, ['postgres:', 'postgresql:'])
  }
  return { refuse, raw, read, text, token, integer, flag, list, url, webUrl, postgresUrl }
}

/**
 * Returns the URLs for migrations, which need direct connections: LISTEN_URL, or DATABASE_URL, or those of CELLS.
 * @throws {ConfigError} if none is given or one is invalid
 */
export const loadMigrateUrls = (env: Env): readonly string[] => {
  const reading = readers(env)
  const { databases } = readCells(reading)
  if (databases.length > 1) return databases
  return [reading.postgresUrl('LISTEN_URL', databases[0]!) || reading.refuse('DATABASE_URL', 'is required')]
}

/**
 * Reads the environment into one frozen object. The unit of a duration is the end of its name. In embedded mode, `databaseUrl` and
 * `listenUrl` are empty until `startDatabase` sets them, and missing secrets are generated in DATA_DIR.
 * @throws {ConfigError} for the first invalid variable
 */
export const loadConfig = (env: Env) => {
  const reading = readers(env)
  const { refuse, raw, read, text, token, integer, flag, list, url, webUrl, postgresUrl } = reading

  const cells = readCells(reading)
  const databaseUrl = cells.databases[0]!
  const embedded = databaseUrl === ''
  const dataDir = resolve(raw('DATA_DIR') ?? '.data')
  const secret = (name: string) => {
    if (raw(name) !== null) return raw(name) as string
    if (embedded) return keepSecret(dataDir, name)
    const kept = secretFile(dataDir, name)
    return refuse(
      name,
      `is required with DATABASE_URL; ${existsSync(kept) ? `that of the database in DATA_DIR is in ${kept}` : 'generate one with: openssl rand -base64 32'}`
    )
  }
  const encryptionKeys = secret('ENCRYPTION_KEYS').split(',').map(base64Key)
  const sessionSecret = secret('SESSION_SECRET')
  if (sessionSecret.length < 16) refuse('SESSION_SECRET', 'must have at least 16 characters')

  const roles = read('ROLES', { api: true, engine: true }, 'must be api, engine, or both separated by a comma', parseRoles)
  const port = integer('PORT', 8080, 0, 65_535)
  const baseUrl = webUrl('BASE_URL', `http://localhost:${port}`)

  return Object.freeze({
    embedded,
    host: read('HOST', embedded ? '127.0.0.1' : '0.0.0.0', 'must be an IP address or a host name', v =>
      /^[\w.:-]+$/.test(v) ? v : undefined
    ),
    port,
    baseUrl,
    baseUrlGiven: raw('BASE_URL') !== null,
    databaseUrl,
    listenUrl: postgresUrl('LISTEN_URL', databaseUrl),
    /** The number of the database among those of the service; `cellConfig` has that of another. */
    cell: 1 as number,
    ...cells,
    /** Whether DATABASE_URL leads through a pooler in transaction mode. Determined at start. */
    pooled: false as boolean,
    dataDir,
    migrate: flag('MIGRATE', true),
    pgPoolMax: integer('PG_POOL_MAX', 10, roles.engine ? engineConnections + apiConnectionsAtLeast : 1, 1000),
    roles,
    pollIntervalMs: integer('POLL_INTERVAL_MS', 5000, 10, 60_000),
    deliveryConcurrency: integer('DELIVERY_CONCURRENCY', 200, 1, 10_000),
    encryptionKeys: encryptionKeys.every(key => key !== undefined)
      ? encryptionKeys
      : refuse('ENCRYPTION_KEYS', 'must be a comma-separated list of base64 keys of 32 bytes'),
    sessionSecret,
    secretsChanged: flag('SECRETS_CHANGED', false),
    // Unlike for other variables, an empty value counts: no exemptions, not even the default for loopback.
    callbackAllowCidrs:
      embedded && env.CALLBACK_ALLOW_CIDRS === undefined
        ? ['127.0.0.0/8', '::1/128']
        : list('CALLBACK_ALLOW_CIDRS', 'must be a comma-separated list of address ranges such as 10.0.0.0/8', isCidr),
    callbackAllowHttp: flag('CALLBACK_ALLOW_HTTP', embedded),
    missedAfterSeconds: integer('MISSED_AFTER_SECONDS', constants.missedAfterMs / 1000, 1, 31_536_000),
    plans: read(
      'PLANS',
      defaultPlans,
      `must be JSON such as {"free": {"cues": 25}}; the limits of a plan are ${limitNames}, whole numbers of at least 1 (cues, executions_per_month: 0)`,
      plans
    ),
    rateLimit: flag('RATE_LIMIT', true),
    smtpUrl: url('SMTP_URL', null, ['smtp:', 'smtps:']),
    emailFrom: read('EMAIL_FROM', `pgcue <no-reply@${new URL(baseUrl).hostname}>`, 'must be an email address', v =>
      /^[^@\r\n]+@[^@\s]+$/.test(v) ? v : undefined
    ),
    stripeSecretKey: text('STRIPE_SECRET_KEY'),
    stripeWebhookSecret: text('STRIPE_WEBHOOK_SECRET'),
    stripeApiBase: webUrl('STRIPE_API_BASE', null),
    stripePrices: read('STRIPE_PRICES', {} as Prices, 'must be JSON such as {"pro": {"monthly": "price_1", "annual": "price_2"}}', prices),
    supportGithubRepo: read('SUPPORT_GITHUB_REPO', null, 'must be owner/name', v => (/^[\w.-]+\/[\w.-]+$/.test(v) ? v : undefined)),
    supportGithubToken: text('SUPPORT_GITHUB_TOKEN'),
    githubApiBase: webUrl('GITHUB_API_BASE', 'https://api.github.com'),
    mcpClientIds: list('MCP_CLIENT_IDS', 'must be a comma-separated list of client ids', item => /^\S+$/.test(item)),
    eventRetentionDays: integer('EVENT_RETENTION_DAYS', 7, 1, 31),
    executionRetentionDays: integer('EXECUTION_RETENTION_DAYS', 90, 35, 36_500),
    metricsToken: token('METRICS_TOKEN'),
    operatorToken: token('OPERATOR_TOKEN'),
    replicaName: read('REPLICA_NAME', `${hostname()}:${process.pid}`, 'must have at most 100 printable characters', v =>
      /^[^\p{C}]{1,100}$/u.test(v) ? v : undefined
    ),
    corsOrigins: list('CORS_ORIGINS', 'must be a comma-separated list of origins such as https://example.com', isOrigin),
    trustProxy: read('TRUST_PROXY', false, 'must be on, off, a number of hops, or a comma-separated list of addresses', trustProxy),
    logFormat: read('LOG_FORMAT', process.stdout.isTTY ? 'pretty' : 'json', 'must be pretty or json', v =>
      v === 'pretty' || v === 'json' ? v : undefined
    ),
    logLevel: read('LOG_LEVEL', 'info', 'must be fatal, error, warn, info, debug, trace or silent', v =>
      logLevels.includes(v) ? v : undefined
    )
  })
}

/** Returns the configuration with the port that PORT=0 resolved to. */
export const atPort = (config: Config, port: number): Config =>
  Object.freeze({ ...config, port, baseUrl: config.baseUrlGiven ? config.baseUrl : `http://localhost:${port}` })

const flags: Record<string, boolean | undefined> = { on: true, true: true, 1: true, off: false, false: false, 0: false }
const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

const base64Key = (value: string) => {
  const key = Buffer.from(value.trim(), 'base64')
  return key.length === 32 && /^[A-Za-z0-9+/]{43}=?$/.test(value.trim()) ? key : undefined
}

const parseRoles = (value: string) => {
  const names = value.split(',').map(name => name.trim())
  if (!names.every(name => name === 'api' || name === 'engine')) return undefined
  return { api: names.includes('api'), engine: names.includes('engine') }
}

// ipaddr.js alone would accept 10/8 and read it as 0.0.0.10/8.
const isCidr = (value: string) =>
  ipaddr.isValidCIDR(value) && (ipaddr.IPv6.isValidCIDR(value) || ipaddr.IPv4.isValidCIDRFourPartDecimal(value))

const isOrigin = (value: string) => URL.canParse(value) && new URL(value).origin === value

const trustProxy = (value: string): boolean | number | string[] | undefined => {
  if (/^\d+$/.test(value)) return Number(value)
  const flagValue = flags[value.toLowerCase()]
  if (flagValue !== undefined) return flagValue
  const items = value.split(',').map(item => item.trim())
  const good = (item: string) => ['loopback', 'linklocal', 'uniquelocal'].includes(item) || ipaddr.isValid(item) || isCidr(item)
  return items.every(good) ? items : undefined
}

const plans = (value: string): Record<Plan, Limits> | undefined => {
  const input: unknown = JSON.parse(value)
  if (!isObject(input)) return undefined
  const merged = structuredClone(defaultPlans)
  for (const [plan, limits] of Object.entries(input)) {
    if (!Object.hasOwn(merged, plan)) throw new ConfigError(`PLANS has an unknown plan; the plans are ${Object.keys(merged).join(', ')}`)
    if (!isObject(limits)) return undefined
    for (const [name, limit] of Object.entries(limits)) {
      if (!Object.hasOwn(limitBounds, name)) return undefined
      if (limit === null && Object.hasOwn(optionalLimits, name)) continue
      const [least, greatest] = limitBounds[name as keyof Limits]
      if (!Number.isInteger(limit) || Number(limit) < least || Number(limit) > greatest) return undefined
    }
    Object.assign(merged[plan as Plan], limits)
  }
  return merged
}

const prices = (value: string): Prices | undefined => {
  const input: unknown = JSON.parse(value)
  if (!isObject(input)) return undefined
  const good = Object.entries(input).every(
    ([plan, ids]) =>
      ['pro', 'scale'].includes(plan) &&
      isObject(ids) &&
      Object.entries(ids).every(([interval, id]) => ['monthly', 'annual'].includes(interval) && typeof id === 'string' && id !== '')
  )
  return good ? (input as Prices) : undefined
}

const secretFile = (dataDir: string, name: string) => join(dataDir, name.toLowerCase())

const keepSecret = (dataDir: string, name: string) =>
  inDataDir(() => readOrMake(secretFile(dataDir, name), () => randomBytes(32).toString('base64')))

/** @throws {ConfigError} naming DATA_DIR if `work` fails */
export const inDataDir = <T>(work: () => T): T => {
  try {
    return work()
  } catch (error) {
    throw new ConfigError(`DATA_DIR cannot be used: ${(error as Error).message}`)
  }
}

/**
 * Returns the content of a file readable only by its owner, created on first use. Creating a hard link never replaces a file, so concurrent
 * first starts all read the same, complete content.
 */
export const readOrMake = (file: string, make: () => string): string => {
  if (!existsSync(file)) {
    makeDirectory(dirname(file))
    const draft = draftIn(dirname(file))
    writeFileSync(draft, `${make()}\n`, { mode: 0o600, flush: true })
    try {
      linkSync(draft, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  return readFileSync(file, 'utf8').trim()
}
