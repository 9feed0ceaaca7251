import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cellConfig } from '../../src/cells/settings.ts'
import { atPort, ConfigError, loadConfig, loadMigrateUrls } from '../../src/config.ts'
import { exactly } from '../support/exactly.ts'

const key = Buffer.alloc(32, 7).toString('base64')
const server = { DATABASE_URL: 'postgres://cue:pw@db/cue', ENCRYPTION_KEYS: key, SESSION_SECRET: 's'.repeat(32) }
const refusal = (env: Record<string, string>) => {
  try {
    loadConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

t.test('uses server defaults with DATABASE_URL', async t => {
  const config = loadConfig(server)
  exactly(t, config, {
    embedded: false,
    host: '0.0.0.0',
    port: 8080,
    baseUrl: 'http://localhost:8080',
    listenUrl: server.DATABASE_URL,
    migrate: true,
    pgPoolMax: 10,
    roles: { api: true, engine: true },
    pollIntervalMs: 5000,
    deliveryConcurrency: 200,
    callbackAllowHttp: false,
    missedAfterSeconds: 60,
    plans: { free: { requests_per_minute: 60, cues: 10, executions_per_month: 300 }, scale: { executions_per_month: 50_000 } },
    rateLimit: true,
    smtpUrl: null,
    githubApiBase: 'https://api.github.com',
    eventRetentionDays: 7,
    executionRetentionDays: 90,
    trustProxy: false,
    logLevel: 'info'
  })
  t.same(config.callbackAllowCidrs, [])
  t.ok(Object.isFrozen(config))
})

t.test('without DATABASE_URL, listens on loopback and allows callbacks there over http', async t => {
  const config = loadConfig({ DATA_DIR: t.testdir({}) })
  exactly(t, config, { embedded: true, host: '127.0.0.1', databaseUrl: '', callbackAllowHttp: true })
  t.same(config.callbackAllowCidrs, ['127.0.0.0/8', '::1/128'])
})

t.test('generates embedded secrets once, readable by their owner only', async t => {
  const dataDir = t.testdir({})
  const first = loadConfig({ DATA_DIR: dataDir })
  const second = loadConfig({ DATA_DIR: dataDir })
  t.same(second.encryptionKeys, first.encryptionKeys)
  t.equal(first.encryptionKeys[0]?.length, 32)
  t.equal(second.sessionSecret, first.sessionSecret)
  t.same(readdirSync(dataDir).sort(), ['encryption_keys', 'session_secret'], 'no temporary file remains')
  for (const file of readdirSync(dataDir)) t.equal(statSync(join(dataDir, file)).mode & 0o777, 0o600)
})

t.test('uses a given secret instead of generating one', async t => {
  const dataDir = t.testdir({})
  const { sessionSecret, encryptionKeys } = loadConfig({ ...server, DATABASE_URL: '', DATA_DIR: dataDir })
  t.equal(sessionSecret, server.SESSION_SECRET)
  t.same(encryptionKeys, [Buffer.alloc(32, 7)])
  t.same(readdirSync(dataDir), [])
})

t.test('empty means unset, except an empty CALLBACK_ALLOW_CIDRS', async t => {
  const config = loadConfig({ DATA_DIR: t.testdir({}), DATABASE_URL: ' ', PORT: '', ROLES: '', PLANS: '', CALLBACK_ALLOW_CIDRS: '' })
  exactly(t, config, { embedded: true, port: 8080, roles: { api: true, engine: true } })
  t.same(config.callbackAllowCidrs, [])
})

t.test('lists, JSON and switches are parsed', async t => {
  const config = loadConfig({
    ...server,
    ROLES: 'engine',
    ENCRYPTION_KEYS: `${key}, ${Buffer.alloc(32, 8).toString('base64')}`,
    CALLBACK_ALLOW_CIDRS: '10.0.0.0/8, fd00::/8',
    PLANS: '{"free": {"cues": 25}}',
    STRIPE_PRICES: '{"pro": {"monthly": "price_1"}}',
    MCP_CLIENT_IDS: 'a, b',
    CORS_ORIGINS: 'https://a.example,http://b.example:3000',
    TRUST_PROXY: 'loopback, 10.0.0.0/8',
    RATE_LIMIT: 'OFF',
    MIGRATE: 'false',
    BASE_URL: 'https://cue.example/',
    LISTEN_URL: 'postgresql://direct/cue'
  })
  exactly(t, config, {
    roles: { api: false, engine: true },
    plans: { free: { requests_per_minute: 60, cues: 25, executions_per_month: 300 }, pro: { cues: 100 } },
    stripePrices: { pro: { monthly: 'price_1' } },
    rateLimit: false,
    migrate: false,
    baseUrl: 'https://cue.example',
    emailFrom: 'pgcue <no-reply@cue.example>',
    listenUrl: 'postgresql://direct/cue'
  })
  t.equal(config.encryptionKeys.length, 2)
  t.same(config.callbackAllowCidrs, ['10.0.0.0/8', 'fd00::/8'])
  t.same(config.mcpClientIds, ['a', 'b'])
  t.same(config.corsOrigins, ['https://a.example', 'http://b.example:3000'])
  t.same(config.trustProxy, ['loopback', '10.0.0.0/8'])
  t.equal(loadConfig({ ...server, TRUST_PROXY: 'true' }).trustProxy, true)
  t.equal(loadConfig({ ...server, TRUST_PROXY: '2' }).trustProxy, 2)
  t.equal(loadConfig(server).plans.free.cues, 10, 'an override does not leak into the next load')
})

t.test('the base URL contains the port chosen for PORT=0, unless BASE_URL is set', async t => {
  exactly(t, atPort(loadConfig({ ...server, PORT: '0' }), 4711), { port: 4711, baseUrl: 'http://localhost:4711' })
  exactly(t, atPort(loadConfig({ ...server, PORT: '0', BASE_URL: 'https://cue.example' }), 4711), { baseUrl: 'https://cue.example' })
})

t.test('rejects an invalid value in one line that names the variable and hides the value', async t => {
  const bad: Record<string, string[]> = {
    HOST: ['a b'],
    REPLICA_NAME: ['a\nb', 'x'.repeat(101)],
    PORT: ['http', '65536', '-1', '80.5', '0x50'],
    BASE_URL: ['localhost:8080', 'ftp://cue.example'],
    DATABASE_URL: ['mysql://secretword@db', 'db'],
    LISTEN_URL: ['http://secretword@db'],
    MIGRATE: ['maybe'],
    PG_POOL_MAX: ['0', '7', 'many'],
    ROLES: ['api,worker', ','],
    POLL_INTERVAL_MS: ['0', '5s'],
    DELIVERY_CONCURRENCY: ['0', '-5'],
    ENCRYPTION_KEYS: ['secretword', `${key},`, Buffer.alloc(31).toString('base64')],
    SESSION_SECRET: ['secretword'],
    METRICS_TOKEN: ['secretword', 'x'.repeat(15), 'a secretword of many'],
    OPERATOR_TOKEN: ['secretword', 'x'.repeat(15), 'a secretword of many'],
    CALLBACK_ALLOW_CIDRS: ['10.0.0.0', '10/8', 'localhost', '10.0.0.0/33'],
    CALLBACK_ALLOW_HTTP: ['yes please'],
    MISSED_AFTER_SECONDS: ['0', 'never'],
    PLANS: [
      '{',
      '[]',
      '{"gold": {}}',
      '{"free": {"cues": -1}}',
      '{"free": {"cuse": 1}}',
      '{"free": 5}',
      '{"free": {"requests_per_minute": 0}}',
      '{"free": {"cues": "5"}}'
    ],
    RATE_LIMIT: ['60'],
    SMTP_URL: ['http://secretword@mail'],
    EMAIL_FROM: ['nobody', 'a@b\r\nBcc: c@d'],
    STRIPE_API_BASE: ['stripe'],
    STRIPE_PRICES: ['{"free": {"monthly": "p"}}', '{"pro": {"weekly": "p"}}', '{"pro": {"monthly": 5}}'],
    SUPPORT_GITHUB_REPO: ['name', 'a/b/c'],
    GITHUB_API_BASE: ['github'],
    MCP_CLIENT_IDS: ['a,,b'],
    EVENT_RETENTION_DAYS: ['0', '32', 'all'],
    EXECUTION_RETENTION_DAYS: ['34', '0', 'forever'],
    CORS_ORIGINS: ['*', 'https://a.example/'],
    TRUST_PROXY: ['everyone'],
    LOG_LEVEL: ['verbose', 'INFO'],
    LOG_FORMAT: ['text', 'JSON']
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      const message = refusal({ ...server, [name]: value })
      t.match(message, new RegExp(`^${name} [^\\n]+$`), `${name}=${value}`)
      t.notOk(message!.includes('secretword'))
    }
  }
})

t.test('PG_POOL_MAX has a minimum that depends on the roles', async t => {
  for (const ROLES of ['api,engine', 'engine']) {
    t.match(refusal({ ...server, ROLES, PG_POOL_MAX: '7' }), /whole number from 8 to/)
    t.equal(loadConfig({ ...server, ROLES, PG_POOL_MAX: '8' }).pgPoolMax, 8)
  }
  t.equal(loadConfig({ ...server, ROLES: 'api', PG_POOL_MAX: '1' }).pgPoolMax, 1)
})

t.test('an error in PLANS lists what is allowed', async t => {
  t.equal(refusal({ ...server, PLANS: '{"gold": {}}' }), 'PLANS has an unknown plan; the plans are free, pro, scale')
  t.match(
    refusal({ ...server, PLANS: '{"free": {"requests_per_minute": 0}}' }),
    /whole numbers of at least 1 \(cues, executions_per_month: 0\)$/
  )
  t.match(
    refusal({ ...server, PLANS: '{"free": {"cuse": 1}}' }),
    /limits of a plan are requests_per_minute, cues, executions_per_month, fires_per_hour, open_deliveries/
  )
  for (const limit of ['"open_deliveries": 0', '"open_deliveries": null', '"max_timeout_seconds": 3601', '"min_interval_seconds": 0.5']) {
    t.match(refusal({ ...server, PLANS: `{"free": {${limit}}}` }), /^PLANS must be JSON/, limit)
  }
  const { free } = loadConfig({ ...server, PLANS: '{"free": {"max_timeout_seconds": 60, "min_interval_seconds": null}}' }).plans
  t.same([free.open_deliveries, free.max_timeout_seconds, free.min_interval_seconds], [50, 60, null])
})

t.test('migrates LISTEN_URL, or DATABASE_URL, and needs no other setting', async t => {
  t.same(loadMigrateUrls({ DATABASE_URL: server.DATABASE_URL, LISTEN_URL: '' }), [server.DATABASE_URL])
  t.same(loadMigrateUrls({ DATABASE_URL: server.DATABASE_URL, LISTEN_URL: 'postgres://direct/cue' }), ['postgres://direct/cue'])
  t.throws(() => loadMigrateUrls({ DATABASE_URL: 'secretword' }), {
    name: 'ConfigError',
    message: /^DATABASE_URL must be a URL(?!.*secret)/
  })
  t.throws(() => loadMigrateUrls({}), { message: 'DATABASE_URL is required' })
})

t.test('CELLS are URLs or a file of them, and take the place of DATABASE_URL', async t => {
  const urls = ['postgres://a/cue', 'postgres://b/cue', 'postgresql://c/cue']
  const { DATABASE_URL: _, ...rest } = server
  const config = loadConfig({ ...rest, CELLS: `${urls[0]}  ${urls[1]}\n${urls[2]}\n` })
  t.same([config.embedded, config.databases, config.engineCells], [false, urls, [1, 2, 3]])
  exactly(t, cellConfig(config, 2), { cell: 2, databaseUrl: urls[1], listenUrl: urls[1] })
  t.same(loadMigrateUrls({ CELLS: urls.join(' ') }), urls)
  const file = join(t.testdir({ cells: `${urls.join('\n')}\n` }), 'cells')
  t.same(loadConfig({ ...rest, CELLS: file, ENGINE_CELLS: '1,3' }).engineCells, [1, 3])
  t.same(loadConfig({ ...rest, CELLS: file }).databases, urls)

  const alone = loadConfig({ ...rest, CELLS: urls[0]!, LISTEN_URL: 'postgres://direct/cue' })
  t.equal(cellConfig(alone, 1), alone)
  t.equal(alone.listenUrl, 'postgres://direct/cue')

  const two = urls.slice(0, 2).join(' ')
  t.match(refusal({ ...server, CELLS: two }), /^DATABASE_URL cannot be combined with CELLS/)
  t.match(refusal({ ...rest, CELLS: two, LISTEN_URL: urls[0]! }), /^LISTEN_URL cannot be combined with several CELLS/)
  for (const CELLS of [
    `${urls[0]} ${urls[0]}`,
    'http://a/cue',
    '/no/such/file',
    Array.from({ length: 62 }, (_, i) => `postgres://${i}/cue`).join(' ')
  ])
    t.match(refusal({ ...rest, CELLS }), /^CELLS must be PostgreSQL URLs separated by whitespace, 61 at most, or a file with one per line$/)
  for (const ENGINE_CELLS of ['0', '3', '1;2', 'x'])
    t.match(
      refusal({ ...rest, CELLS: two, ENGINE_CELLS }),
      /^ENGINE_CELLS must be a comma-separated list of numbers of CELLS, from 1 to 2$/
    )
})

t.test('requires the secrets with DATABASE_URL', async t => {
  t.throws(() => loadConfig({ ...server, ENCRYPTION_KEYS: undefined }), { message: /^ENCRYPTION_KEYS is required/ })
  t.throws(() => loadConfig({ ...server, SESSION_SECRET: '' }), { message: /^SESSION_SECRET is required/ })
})

t.test('names the keys of an existing DATA_DIR instead of advising new ones', async t => {
  const DATA_DIR = t.testdir({ encryption_keys: key, session_secret: 's'.repeat(32) })
  for (const name of ['ENCRYPTION_KEYS', 'SESSION_SECRET']) {
    const file = join(DATA_DIR, name.toLowerCase())
    t.equal(
      refusal({ ...server, DATA_DIR, [name]: '' }),
      `${name} is required with DATABASE_URL; that of the database in DATA_DIR is in ${file}`
    )
  }
})

t.test('refuses a URL of several servers in one line that names the variable', async t => {
  const { DATABASE_URL: one, ...rest } = server
  for (const url of [
    'postgres://cue:secretword@a:5432,b:5433/cue',
    'postgres://a,b/cue',
    'postgresql://cue:secretword@a/cue?target_session_attrs=read-write',
    'postgres:///cue?sslmode=require&host=a,b',
    'postgres://a/cue?host=a%2Cb'
  ])
    for (const env of [
      { ...rest, DATABASE_URL: url },
      { ...server, LISTEN_URL: url },
      { ...rest, CELLS: `${one} ${url}` }
    ]) {
      const [name = ''] = Object.keys(env).slice(-1)
      const message = refusal(env)
      t.equal(
        message,
        `${name} takes one server per database: give an address that follows the primary, such as that of a proxy, a virtual IP or a DNS name`
      )
      t.throws(() => loadMigrateUrls(env), { message: `${message}` })
    }
  for (const DATABASE_URL of [
    'postgres://cue:a,b@db/cue',
    'postgres://db/a,b',
    'postgres:///cue?host=/run/postgresql&application_name=a,b'
  ])
    t.equal(loadConfig({ ...rest, DATABASE_URL }).databaseUrl, DATABASE_URL)
})

t.test('names DATA_DIR if it cannot be used', async t => {
  const file = join(t.testdir({}), 'file')
  writeFileSync(file, '')
  t.throws(() => loadConfig({ DATA_DIR: file }), { message: /^DATA_DIR cannot be used/ })
})
