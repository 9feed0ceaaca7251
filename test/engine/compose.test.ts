import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { loadConfig, loadMigrateUrls } from '../../src/config.ts'
import { loadTraceSettings } from '../../src/traces/settings.ts'
import { createDatabase } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'

const root = new URL('../../', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, root), 'utf8')
type Service = { volumes?: string[]; configs?: { source: string }[]; depends_on?: Record<string, { condition: string }> }
const compose = parse(read('docker-compose.yml'))
const { postgres, migrate: job, pgcue, balancer, mail } = compose.services
const manifest = JSON.parse(read('package.json'))
const instructions = read('Dockerfile')
  .split('\n')
  .map(line => /^([A-Z]+) (.*)$/.exec(line)?.slice(1) ?? [])
const dockerfile = (name: string) => instructions.filter(([instruction]) => instruction === name).map(([, text]) => text as string)

// What compose puts in for ${NAME}, ${NAME:-default} and ${NAME:?message}.
const given: Record<string, string> = {
  POSTGRES_PASSWORD: '0123456789abcdef',
  SERVICE_PASSWORD: 'fedcba9876543210',
  ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString('base64'),
  SESSION_SECRET: Buffer.alloc(32, 2).toString('base64')
}
const filled = (value: unknown) =>
  String(value).replace(/\$\{(\w+)(?::-(.*?)|:\?.*?)?\}/g, (_, name, otherwise) => given[name] ?? otherwise)
const environment = Object.fromEntries(
  Object.entries(pgcue.environment).flatMap(([name, value]) => (value === null ? [] : [[name, filled(value)]]))
)

t.test('the replicas start with the documented environment', async t => {
  const asked = new Set<string>()
  const config = loadConfig(new Proxy(environment, { get: (target, name: string) => asked.add(name) && target[name] }))
  t.same(
    Object.keys(environment).filter(name => !asked.has(name)),
    [],
    'no unknown variable'
  )
  exactly(t, config, { embedded: false, host: '0.0.0.0', port: 8080, baseUrl: 'http://localhost:8080', trustProxy: 1 })
  t.equal(pgcue.deploy.replicas, 3)
})

t.test('the replicas get the variables of OpenTelemetry that are set', async t => {
  const passed = Object.keys(pgcue.environment).filter(name => pgcue.environment[name] === null)
  const asked = new Set<string>()
  const url = 'http://collector:4318'
  const values: Record<string, string> = { OTEL_EXPORTER_OTLP_ENDPOINT: url }
  exactly(t, loadTraceSettings(new Proxy(values, { get: (target, name: string) => asked.add(name) && target[name] })), {
    url: `${url}/v1/traces`
  })
  // Those that most deployments never set.
  for (const name of asked) if (/TRACES_ENDPOINT|PROTOCOL$/.test(name)) asked.delete(name)
  const byTheSdk = [
    'OTEL_SERVICE_NAME',
    'OTEL_RESOURCE_ATTRIBUTES',
    ...['HEADERS', 'TIMEOUT', 'COMPRESSION'].map(one => `OTEL_EXPORTER_OTLP_${one}`)
  ]
  t.same(passed.sort(), [...asked, ...byTheSdk].sort())
})

t.test('the owner migrates the database, then the replicas connect with a login that has only cue_service', async t => {
  const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = postgres.environment
  const [owner, login] = [filled(job.environment.DATABASE_URL), environment.DATABASE_URL!].map(url => new URL(url)) as [URL, URL]
  for (const { hostname, pathname, port } of [owner, login])
    t.same([compose.services[hostname], pathname, port], [postgres, `/${POSTGRES_DB}`, '5432'])
  t.same([owner.username, owner.password], [POSTGRES_USER, filled(POSTGRES_PASSWORD)])
  t.equal(['node', ...job.command.slice(1)].join(' '), manifest.scripts.migrate)
  exactly(t, loadMigrateUrls({ DATABASE_URL: owner.href }), [owner.href])
  t.equal(loadConfig(environment).migrate, false)
  exactly(t, postgres.healthcheck.test, ['CMD', 'pg_isready', '-U', POSTGRES_USER, '-d', POSTGRES_DB])
  exactly(t, job.depends_on, { postgres: { condition: 'service_healthy' } })
  t.same(pgcue.depends_on, { migrate: { condition: 'service_completed_successfully' } })

  // What a new database runs, on a server that has cue_service and other logins.
  t.same(
    postgres.configs.map(({ target }: { target: string }) => target),
    ['/docker-entrypoint-initdb.d/login.sql']
  )
  const { pool, url } = await createDatabase(t)
  const name = `test_${randomBytes(6).toString('hex')}`
  const [create, ...rest] = filled(compose.configs.login.content).replace(login.username, name).trim().split('\n')
  t.equal(create, 'create role cue_service nologin;')
  await pool.query(rest.join('\n'))
  t.teardown(() => pool.query(`drop role ${name}`))
  const client = new pg.Client(Object.assign(new URL(url), { username: name, password: login.password }).href)
  await client.connect()
  const { rows } = await client.query('select rolname, rolsuper, rolcreaterole from pg_roles where pg_has_role(oid, $1) order by 1', [
    'member'
  ])
  await client.end()
  const rights = { rolsuper: false, rolcreaterole: false }
  t.same(rows, [
    { rolname: 'cue_service', ...rights },
    { rolname: name, ...rights }
  ])
})

t.test('mails go to the mail catcher, which only this machine reaches', async t => {
  t.equal(compose.services[new URL(environment.SMTP_URL!).hostname], mail)
  const published = Object.entries<{ ports?: string[] }>(compose.services).flatMap(([name, { ports = [] }]) =>
    ports.map(port => `${name} ${port}`)
  )
  t.same(published, ['balancer 8080:8080', 'mail 127.0.0.1:8025:8025'])
})

t.test("the load balancer forwards to the replicas' port", async t => {
  const [, service, port] = /dynamic a (\w+) (\d+)/.exec(compose.configs.caddyfile.content)!
  t.equal(compose.services[service!], pgcue)
  t.equal(port, environment.PORT)
  const [, listens] = /^:(\d+) \{/.exec(compose.configs.caddyfile.content)!
  t.same(balancer.ports, [`${new URL(environment.BASE_URL!).port}:${listens}`])
  t.same(dockerfile('EXPOSE'), [port])
})

t.test('defines every volume, config and service it names', async t => {
  for (const [name, service] of Object.entries<Service>(compose.services)) {
    for (const volume of service.volumes ?? []) t.ok(volume.split(':')[0]! in compose.volumes, `${name}: ${volume}`)
    for (const { source } of service.configs ?? []) t.ok(source in compose.configs, `${name}: ${source}`)
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {}))
      t.ok(
        condition === 'service_completed_successfully' ? other === 'migrate' : compose.services[other]?.healthcheck,
        `${name} waits for ${other}`
      )
  }
})

t.test('the required secrets are those that its header and the guide generate', async t => {
  const text = read('docker-compose.yml')
  const wanted = [...new Set([...text.matchAll(/\$\{(\w+):\?/g)].map(match => match[1]))].sort()
  const shown = [.../printf '(.*?)'/.exec(text)![1]!.matchAll(/(\w+)=%s/g)].map(match => match[1]!.replace(/^n(?=[A-Z])/, '')).sort()
  t.same(wanted, Object.keys(given).sort())
  t.same(shown, wanted)
  const [commands] = /(?:^export .*\n)+(?=docker compose up)/m.exec(read('src/guide/self-hosting.md'))!
  t.same([...commands.matchAll(/(\w+)=\$/g)].map(match => match[1]).sort(), wanted)
})

/** Runs a health check as Docker would in a container whose service has this PORT, and gives its exit code. */
const probe = async ([command, ...args]: string[], port: number) => {
  const child = spawn(command!, args, { stdio: 'inherit', env: { ...process.env, PORT: String(port) } })
  const [code] = await once(child, 'exit')
  return code
}

const listen = async (t: Test, status: number) => {
  const server = createServer((request, response) => response.writeHead(request.url === '/status' ? status : 404).end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.close()
    await once(server, 'close')
  }
  t.teardown(() => server.listening && close())
  return { port: (server.address() as AddressInfo).port, close }
}

t.test('a replica is healthy exactly while /status returns 200', async t => {
  const [shell, ...command] = pgcue.healthcheck.test
  t.equal(shell, 'CMD')
  const healthcheck = JSON.parse(/CMD (\[.*\])$/.exec(dockerfile('HEALTHCHECK')[0]!)![1]!)
  t.same(healthcheck, command, 'the image has the same check')
  const up = await listen(t, 200)
  t.equal(await probe(command, up.port), 0)
  await up.close()
  t.equal(await probe(command, up.port), 1)
  t.equal(await probe(command, (await listen(t, 503)).port), 1)
  t.ok(command.at(-1).includes(`PORT || ${environment.PORT})`), 'with no PORT it asks at the default')
})

t.test("the image contains what it starts, on the project's Node version", async t => {
  // What another stage made comes from the same paths.
  const copied = dockerfile('COPY').flatMap(line =>
    line
      .replace(/^--from=dashboard \/app\//, '')
      .split(' ')
      .slice(0, -1)
  )
  const ignored = read('.dockerignore').split('\n')
  for (const path of copied) {
    t.ok(existsSync(new URL(path, root)), path)
    t.ok(ignored.includes(`!${path}`), `${path} is not kept from the build`)
  }
  const [program, ...rest] = JSON.parse(dockerfile('CMD')[0]!)
  const script = rest.pop()
  t.equal(program, 'node')
  t.ok(manifest.scripts.start.includes(['node', ...rest, script].join(' ')), 'as npm start runs it')
  t.ok(existsSync(new URL(script, root)) && copied.some(path => script.startsWith(`${path}/`)), script)
  t.ok(dockerfile('FROM')[0]!.includes(`node:${Number.parseInt(manifest.optionalDependencies.node, 10)}`))
})

t.test('the image contains every package that its code imports', async t => {
  // The dashboard is bundled, and build.ts loads the bundler only where there is no bundle.
  const files = readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.ts') && !name.startsWith('dashboard/app/') && name !== 'dashboard/build.ts'
  )
  for (const file of files.map(name => `src/${name}`)) {
    for (const [, from, dynamic] of read(file).matchAll(
      /^(?:import|export)\b(?! type\b)(?:[^'"]*? from)? '([^'.]+[^']*)'|\bimport\('([^'.]+[^']*)'\)/gm
    )) {
      const name = from ?? dynamic!
      const [scope, rest] = name.split('/')
      const unit = name.startsWith('@') ? `${scope}/${rest}` : scope!
      if (!unit.startsWith('node:')) t.ok(unit in manifest.dependencies, `${file} imports ${name}`)
    }
  }
})
