/** The guide: its examples, its pages, and what it says about codes, settings, limits and tools. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/config.ts'
import { statuses } from '../../src/errors.ts'
import { contents, readPages } from '../../src/guide/pages.ts'
import { loadTraceSettings } from '../../src/traces/settings.ts'
import { startEngine } from '../support/engine.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { examplesOf, noPython, runExamples } from '../support/examples.ts'
import { build, eventually } from '../support/setup.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const slugs = Object.values(contents).flat()
const read = (slug: string) => readFileSync(join(root, `src/guide/${slug}.md`), 'utf8')
const exampleIn = (slug: string, file: string) => examplesOf(read(slug)).find(example => example.file === file)!.code

/** Rows of the tables of a page, as lists of cells without Markdown's marks for code. */
const rowsOf = (slug: string): string[][] =>
  [...read(slug).matchAll(/^\| (.*) \|$/gm)].map(([, row]) => row!.split(/ ?\| ?/).map(cell => cell.replaceAll('`', '')))

// A page takes seconds, most of them asleep.
t.jobs = 4
t.setTimeout(600_000)

/** How the executions of each page end, and the hosts outside that were called. Pages that run nothing are left out. */
const results: Record<string, object> = {
  quickstart: { success: 2 },
  agents: { success: 1 },
  recipes: { success: 6, hosts: ['api.anthropic.com', 'api.github.com', 'api.openai.com', 'hooks.slack.com'] },
  'coming-from': { success: 1 },
  schedules: { pending: 1 },
  delivery: { success: noPython ? 2 : 4 },
  workers: { success: noPython ? 4 : 5 },
  outcomes: { success: 2 },
  chains: { success: 5, failed: 2 },
  approvals: { success: 1, failed: 1 },
  alerts: { failed: 1 },
  bulk: { failed: 2, success: 5, hosts: ['example.com'] }
}
for (const slug of slugs) {
  t.test(`the examples of ${slug} run`, { buffered: true }, async t => {
    const { ended, hosts } = await runExamples(t, `src/guide/${slug}.md`)
    t.strictSame({ ...ended, ...(hosts.length > 0 && { hosts }) }, results[slug] ?? {})
  })
}

t.test('the examples of README run, and it has at most two screens', { buffered: true }, async t => {
  const { ended, hosts } = await runExamples(t, 'README.md')
  t.strictSame({ ended, hosts }, { ended: noPython ? {} : { success: 2 }, hosts: [] })
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  t.ok(readme.split('\n').length <= 151 && readme.length <= 10_000)
})

t.test('finds every block, and why one is not run', async t => {
  const text = '# A\n```sh a.sh\nls\n```\n\n<!-- not run: it waits -->\n```ts\nawait 0\n```\n'
  t.same(examplesOf(text), [
    { language: 'sh', file: 'a.sh', code: 'ls\n', line: 2, reason: undefined },
    { language: 'ts', file: undefined, code: 'await 0\n', line: 6, reason: 'it waits' }
  ])
  for (const slug of slugs) {
    const page = read(slug)
    t.equal(examplesOf(page).length * 2, page.match(/^ *```/gm)?.length, `${slug}: no block is overlooked`)
    t.match(page, /```(sh|sql)/, `${slug} has an example`)
  }
})

t.test("the examples in TypeScript have the client's types", async t => {
  const dir = t.testdir({})
  for (const slug of slugs) {
    for (const { language, code, line } of examplesOf(read(slug)))
      if (language === 'ts') writeFileSync(join(dir, `${slug}-${line}.ts`), code)
  }
  const paths = { 'pgcue/client': [join(root, 'src/client/index.ts')], 'pgcue/serve': [join(root, 'src/client/serve.ts')] }
  writeFileSync(
    join(dir, 'tsconfig.json'),
    JSON.stringify({ extends: join(root, 'tsconfig.json'), include: ['*.ts'], compilerOptions: { paths } })
  )
  const { stdout } = await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['-p', dir]).catch(error => error)
  t.equal(stdout, '')
})

t.test('no internal link of the guide is dead', async t => {
  const { app, config } = await build(t)
  const bodies = new Map<string, string | undefined>()
  const check = async (from: string, href: string) => {
    const { origin, pathname, hash } = new URL(href, config.baseUrl + from)
    if (origin !== new URL(config.baseUrl).origin) return
    const page = pathname.replace(/\.md$/, hash ? '' : '.md')
    for (const path of new Set([pathname, page])) {
      if (bodies.has(path)) continue
      const { statusCode, body } = await app.inject(path)
      bodies.set(path, statusCode < 400 ? body : undefined)
    }
    t.ok(bodies.get(pathname) !== undefined && (!hash || bodies.get(page)?.includes(` id="${hash.slice(1)}"`)), `${from} links to ${href}`)
  }
  for (const slug of slugs) {
    const { body } = await app.inject(`/docs/guide/${slug}`)
    for (const [, href] of body.matchAll(/(?:href|src)="([^"]+)"/g)) await check(`/docs/guide/${slug}`, href!)
    for (const [, href] of read(slug).matchAll(/\]\(([^)]+)\)/g)) await check(`/docs/guide/${slug}.md`, href!)
  }
  for (const path of ['/llms.txt', '/llms-full.txt']) {
    const { body } = await app.inject(path)
    for (const [, href] of body.matchAll(/\]\(([^)]+)\)/g)) await check(path, href!)
  }
  t.ok(bodies.size > slugs.length * 2)
})

t.test('no internal link of a Markdown file is dead', async t => {
  for (const file of ['README.md', 'sql/README.md']) {
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, href] of text.matchAll(/(?:\]\(|src(?:set)?=")([^)"]+)/g)) {
      const [path = '', id] = href!.split('#')
      if (/^https?:/.test(path)) continue
      const target = path === '' ? join(root, file) : join(root, dirname(file), path)
      t.ok(existsSync(target), `${file} links to ${href}`)
      if (id === undefined) continue
      const headings = readFileSync(target, 'utf8').matchAll(/^#+ (.+)$/gm)
      const anchors = [...headings].map(([, heading]) =>
        heading!
          .toLowerCase()
          .replace(/[^\p{L}\p{N}_ -]/gu, '')
          .replaceAll(' ', '-')
      )
      t.ok(anchors.includes(id), `${file} links to ${href}`)
    }
  }
})

t.test('a page runs no inline scripts or styles, is under the path of BASE_URL, and is kept by browsers', async t => {
  const { app } = await build(t, undefined, { env: { BASE_URL: 'https://example.com/cue' } })
  const { body, headers } = await app.inject('/docs/guide/concepts')
  t.equal(
    headers['content-security-policy'],
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  )
  t.notMatch(body, /<script(?![^>]* src=)|<style|style=| on\w+=|<!--/)
  t.match(body, /<a href="\/cue\/docs">API reference/)
  t.equal((await app.inject('/docs/guide')).headers.location, 'https://example.com/cue/docs/guide/quickstart')
  t.equal((await app.inject({ url: '/docs/guide/concepts', headers: { 'if-none-match': String(headers.etag) } })).statusCode, 304)
  t.match((await app.inject('/docs')).body, /<a href="\/cue\/docs\/guide">Guide/)
  const missing = await app.inject('/docs/guide/nothing')
  t.same([missing.statusCode, missing.headers['content-type']], [404, 'text/html; charset=utf-8'])
})

t.test('every page is there as Markdown, in llms.txt, in llms-full.txt and in the index', async t => {
  const { app, config } = await build(t)
  const [list, full] = await Promise.all(['/llms.txt', '/llms-full.txt'].map(async path => (await app.inject(path)).body))
  const index: { slug: string; heading: string }[] = JSON.parse(
    gunzipSync((await app.inject('/docs/guide/search.json')).rawPayload).toString()
  )
  for (const { slug, title, markdown, summary, sections } of readPages()) {
    const page = await app.inject(`/docs/guide/${slug}.md`)
    exactly(t, [page.statusCode, page.headers['content-type'], page.body], [200, 'text/markdown; charset=utf-8', markdown])
    t.ok(list!.includes(`- [${title}](${config.baseUrl}/docs/guide/${slug}.md): ${summary}\n`), `${slug} is in llms.txt`)
    t.ok(full!.includes(`# ${title}\n\n`), `${slug} is in llms-full.txt`)
    t.same(
      index.filter(entry => entry.slug === slug).map(({ heading }) => heading),
      pluck(sections, 'heading')
    )
  }
})

t.test('the changes are the posts that are marked as such', async t => {
  const { markdown } = readPages().find(({ slug }) => slug === 'changes')!
  t.match(markdown, /^## 2026-11-20: What pgcue is\n\n\*\*Added\.\*\* A scheduling service .*what-pgcue-is\)/m)
  t.notMatch(markdown, /How a cue fires/)
})

t.test('errors lists every code with its status', async t => {
  const listed = new Map(rowsOf('errors').flatMap(([codes, status = '']) => codes!.split(', ').map(code => [code, status])))
  for (const [code, status] of Object.entries(statuses)) t.ok(listed.get(code)?.split(', ').includes(String(status)), code)
})

t.test('self-hosting lists every variable that the service reads', async t => {
  const names = new Set<string>()
  const environment = (values: Record<string, string>) =>
    new Proxy(values, { get: (target, name: string) => names.add(name) && target[name] })
  loadConfig(
    environment({
      DATABASE_URL: 'postgres://db/pgcue',
      ENCRYPTION_KEYS: Buffer.alloc(32).toString('base64'),
      SESSION_SECRET: 'x'.repeat(32)
    })
  )
  loadTraceSettings(environment({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }))
  const listed = rowsOf('self-hosting').flatMap(([variables]) => variables!.split(', '))
  t.same(
    [...names].filter(name => !listed.includes(name) && !name.startsWith('OTEL_')),
    []
  )
})

t.test('limits has the limits of each plan', async t => {
  const { plans } = loadConfig({
    DATABASE_URL: 'postgres://db/pgcue',
    ENCRYPTION_KEYS: Buffer.alloc(32).toString('base64'),
    SESSION_SECRET: 'x'.repeat(32)
  })
  for (const [plan, limits] of Object.entries(plans)) {
    const { requests_per_minute, cues, executions_per_month, fires_per_hour, open_deliveries } = limits
    const row = rowsOf('limits').find(([name]) => name === plan)!
    t.same(
      row.slice(1).map(cell => Number(cell.replace(',', ''))),
      [requests_per_minute, cues, executions_per_month, fires_per_hour, open_deliveries]
    )
  }
})

t.test('the systemd unit starts the service as `npm start` does, with time to stop', async t => {
  const unit = exampleIn('self-hosting', '/etc/systemd/system/pgcue.service')
  const settings = Object.fromEntries([...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.equal(settings.ExecStart, `${settings.WorkingDirectory}/node_modules/.bin/${scripts.start}`)
  t.ok(Number(settings.TimeoutStopSec) > 30)
  t.match(unit, /^\[Unit\]\n[^[]+\[Service\]\n[^[]+\[Install\]\n/)
  const env = exampleIn('self-hosting', '/etc/pgcue/env').matchAll(/^(\w+)=/gm)
  for (const [, name] of env) t.ok(read('self-hosting').includes(`\`${name}\``), name!)
})

t.test("the Kubernetes manifest fits the image and the service's probes", async t => {
  const { app, config } = await build(t)
  await startEngine(t, config)
  const [deployment, service] = parseAllDocuments(exampleIn('self-hosting', 'pgcue.yaml')).map(document => document.toJS())
  const { template, selector } = deployment.spec
  const [container] = template.spec.containers
  t.same([selector.matchLabels, service.spec.selector], [template.metadata.labels, template.metadata.labels])
  t.equal(service.spec.ports[0].targetPort, container.ports[0].name)
  t.match(readFileSync(join(root, 'Dockerfile'), 'utf8'), new RegExp(`^EXPOSE ${container.ports[0].containerPort}$`, 'm'))
  for (const { httpGet } of [container.readinessProbe, container.livenessProbe]) {
    t.equal(httpGet.port, container.ports[0].name)
    await eventually(async () => (await app.inject(httpGet.path)).statusCode === 200)
  }
  t.ok(template.spec.terminationGracePeriodSeconds > 30 + Number(container.lifecycle.preStop.exec.command[1]))
  for (const { name } of container.env) t.ok(read('self-hosting').includes(`\`${name}\``), name)
})

t.test("agents has clients' settings that work, and every tool", async t => {
  const { account, call, config } = await build(t)
  for (const file of ['.cursor/mcp.json', '.vscode/mcp.json']) {
    const settings = JSON.parse(exampleIn('agents', file).replace(/\$\{(env:PGCUE_API_KEY|input:pgcue-key)\}/, account.api_key))
    const { url, headers } = (settings.mcpServers ?? settings.servers).pgcue
    t.equal(url.replace('http://localhost:8080', config.baseUrl), `${config.baseUrl}/mcp`)
    const accept = 'application/json, text/event-stream'
    const { body } = await call(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { authorization: headers.Authorization, accept }
    )
    const listed = rowsOf('agents').flatMap(([, tools = '']) => tools.split(', '))
    t.same(
      body.result.tools.map(({ name }: { name: string }) => name).filter((name: string) => !listed.includes(name)),
      []
    )
  }
})
