import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { loadConfig } from '../src/config.ts'
import { loadTraceSettings } from '../src/traces/settings.ts'
import { exactly } from './exactly.ts'

const root = new URL('../', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, root), 'utf8')
type Service = { volumes?: string[]; configs?: { source: string }[]; depends_on?: object }
const compose = parse(read('docker-compose.yml'))
const { postgres, pgcue, balancer, mail } = compose.services
const manifest = JSON.parse(read('package.json'))
const instructions = read('Dockerfile')
  .split('\n')
  .map(line => /^([A-Z]+) (.*)$/.exec(line)?.slice(1) ?? [])
const dockerfile = (name: string) => instructions.filter(([instruction]) => instruction === name).map(([, text]) => text as string)

// What compose puts in for ${NAME}, ${NAME:-default} and ${NAME:?message}.
const given: Record<string, string> = {
  POSTGRES_PASSWORD: '0123456789abcdef',
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

t.test('the replicas connect to the database service', async t => {
  const url = new URL(environment.DATABASE_URL!)
  const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = postgres.environment
  t.equal(compose.services[url.hostname], postgres)
  t.same([url.username, url.password, url.pathname, url.port], [POSTGRES_USER, filled(POSTGRES_PASSWORD), `/${POSTGRES_DB}`, '5432'])
  exactly(t, pgcue.depends_on, { postgres: { condition: 'service_healthy' } })
  exactly(t, postgres.healthcheck.test, ['CMD', 'pg_isready', '-U', POSTGRES_USER, '-d', POSTGRES_DB])
})

t.test('mails go to the mail catcher', async t => {
  t.equal(compose.services[new URL(environment.SMTP_URL!).hostname], mail)
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
    for (const other of Object.keys(service.depends_on ?? {})) t.ok(compose.services[other]?.healthcheck, `${name} waits for ${other}`)
  }
})

t.test('the required secrets are those that its header and the README generate', async t => {
  const text = read('docker-compose.yml')
  const wanted = [...text.matchAll(/\$\{(\w+):\?/g)].map(match => match[1]).sort()
  const shown = [.../printf '(.*?)'/.exec(text)![1]!.matchAll(/(\w+)=%s/g)].map(match => match[1]!.replace(/^n(?=[A-Z])/, '')).sort()
  t.same(wanted, Object.keys(given).sort())
  t.same(shown, wanted)
  const commands = /^export (.*)\ndocker compose up/m.exec(read('README.md'))![1]!
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
  t.ok(dockerfile('FROM')[0]!.includes(`node:${Number.parseInt(manifest.devDependencies.node, 10)}`))
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
