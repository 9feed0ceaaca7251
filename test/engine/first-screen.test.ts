/** What a start prints last, and what its commands do. */
import { chmodSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { localFile } from '../../src/accounts/local-file.ts'
import { firstScreen, tour } from '../../src/startup/first-screen.ts'
import { openLocalAccount } from '../../src/startup/local-link.ts'
import { prettyLines } from '../../src/startup/log.ts'
import { listening } from '../support/cli-stage.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { build } from '../support/setup.ts'

const pages = (screen: string) => screen.match(/(?<=localhost:0)\/[\w./-]+/g) ?? []

for (const ROLES of ['api,engine', 'engine']) {
  t.test(`every page listed on the first screen of ${ROLES} exists`, async t => {
    const { app, config } = await build(t, undefined, { env: { ROLES } })
    const shown = pages(firstScreen(config))
    t.same(shown.sort(), ROLES === 'engine' ? ['/health', '/status'] : ['/dashboard', '/docs', '/docs/guide'])
    for (const path of shown) t.not((await app.inject(path)).statusCode, 404, path)
  })
}

t.test('the first screen has at most 15 lines, and names the tour if the replica serves the API', t => {
  const url = 'postgres://cue@db/cue'
  t.ok(firstScreen(testConfig(url)).trim().split('\n').length <= 15)
  t.match(firstScreen(testConfig(url)), /npx pgcue register .*\n {2}npx pgcue tour /)
  t.notOk(firstScreen(testConfig(url, { ROLES: 'engine' })).includes('tour'))
  const local = { embedded: true, baseUrl: 'http://localhost:8080' }
  t.equal(tour({ ...local, dataDir: join(process.cwd(), '.data') }).trim(), 'npx pgcue tour')
  t.equal(tour({ ...local, dataDir: join(process.cwd(), 'x/data') }).trim(), "DATA_DIR='x/data' npx pgcue tour")
  t.end()
})

/** A service as after an embedded start, and `pgcue` in its folder. */
const embedded = async (t: Test) => {
  const service = await build(t)
  const stage = await listening(t, service)
  const config = { ...service.config, databaseUrl: stage.url, dataDir: t.testdir(), baseUrl: stage.baseUrl }
  const start = () => openLocalAccount(config)
  const link = await start()
  const env = { DATA_DIR: config.dataDir, PGCUE_BASE_URL: '', PGCUE_API_KEY: '' }
  return { ...stage, config, link, start, env, file: localFile(config.dataDir), pgcue: (...args: string[]) => stage.cli(args, { env }) }
}
const signsIn = async (baseUrl: string, link: string) => {
  const token = link.split('#token=')[1]
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token }) }
  return (await (await fetch(`${baseUrl}/v1/auth/session`, init)).json()) as { email?: string }
}

t.test('the tour uses the local account, and ends with a link to the execution', async t => {
  const { config, pgcue, baseUrl, pool } = await embedded(t)
  await startEngine(t, config)
  const { out, err, code } = await pgcue('tour')
  t.same([code, err], [0, `Using the local account you@localhost at ${baseUrl}\n`])
  const commands = [...out.matchAll(/^\$ npx pgcue (.*)$/gm)].map(([, line]) => line!)
  t.same(
    commands.map(line => line.split(' ').slice(0, 2).join(' ')),
    ['cues put', 'cues fire', 'executions get']
  )
  t.match(out, /"x-service-cue-id": "cue_\w{12}"/)
  t.match(out, /"task": "hello"/)
  const { rows } = await pool.query(`select e.id, a.email, e.status from cue.executions e join cue.accounts a on a.id = e.account_id`)
  t.same(rows, [{ id: rows[0].id, email: 'you@localhost', status: 'success' }])
  const [link] = out.match(/http\S+#token=\S+/)!
  t.ok(link.includes(`/dashboard/executions/${rows[0].id}#token=`), link)
  t.equal((await signsIn(baseUrl, link)).email, 'you@localhost')
  t.equal((await pgcue('tour')).code, 0)
  t.equal((await pool.query('select from cue.cues')).rowCount, 1, 'a second tour uses the same cue')
})

t.test("the command line finds only the current user's local account", async t => {
  const { pgcue, cli, file, baseUrl, env, link, start } = await embedded(t)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match((await pgcue('whoami')).out, /you@localhost/)
  t.equal((await signsIn(baseUrl, link)).email, 'you@localhost')
  const printed = (await pgcue('dashboard')).out.trim()
  t.equal((await signsIn(baseUrl, printed)).email, 'you@localhost')
  t.equal((await signsIn(baseUrl, printed)).email, undefined, 'once')
  t.same(JSON.parse((await pgcue('whoami', '--json')).err || '{}'), {}, 'with --json, nothing else is printed')
  t.equal((await pgcue('whoami', '--base-url', 'http://127.0.0.1:1')).code, 2, 'its key is sent to no other service')
  t.match((await cli(['whoami'], { env: { DATA_DIR: env.DATA_DIR } })).out, /@example\.com/, 'PGCUE_API_KEY wins')

  const elsewhere = { PGCUE_BASE_URL: '', PGCUE_API_KEY: '' }
  t.equal((await cli(['login', '--local', join(env.DATA_DIR, 'none')], { env: elsewhere })).code, 1)
  t.match((await cli(['login', '--local', env.DATA_DIR], { env: elsewhere })).out, /Logged in to .* as you@localhost/)
  t.match((await cli(['whoami'], { env: elsewhere })).out, /you@localhost/)

  const kept = readFileSync(file, 'utf8')
  await start()
  t.equal(readFileSync(file, 'utf8'), kept, 'the next start keeps the key')
  const [{ id }] = JSON.parse((await pgcue('keys', 'list', '--json')).out).keys
  await pgcue('keys', 'create', 'another')
  t.equal((await pgcue('keys', 'revoke', id)).code, 0)
  await start()
  t.not(readFileSync(file, 'utf8'), kept)
  t.match((await pgcue('whoami')).out, /you@localhost/, 'a revoked key is replaced')
  chmodSync(file, 0o644)
  t.match((await pgcue('whoami')).err, /readable by other users/)
  rmSync(file)
  t.match((await pgcue('whoami')).err, /Invalid API key/, 'without the file, the stored key of this service')
})

t.test('a terminal gets a line for each warning, failed delivery and mail, and for nothing else', t => {
  const time = new Date(2030, 0, 15, 9, 5, 7).getTime()
  const entry = (fields: object) => `${JSON.stringify({ level: 30, time, pid: 1, hostname: 'h', ...fields })}\n`
  const mail = { msg: 'mail written to the outbox; set SMTP_URL to send mails', kind: 'magic_link', links: ['http://localhost/x'] }
  const lines = [
    entry({ msg: 'starting', version: '1' }),
    entry({ msg: 'request ended', method: 'GET', path: '/v1/cues', status: 200 }),
    entry({ msg: 'attempt ended', execution_id: 'e', attempt: 2, http_status: 500, ms: 3 }),
    entry({ msg: 'signed webhook ended', queue: 'alerts', error: null }),
    entry({ msg: 'signed webhook ended', queue: 'alerts', error: 'timeout' }),
    entry(mail),
    entry({ msg: 'job failed', level: 40, queue: 'mails', err: { type: 'Error', message: 'refused', stack: 'x' } })
  ].join('')
  t.same(prettyLines(lines, 'info').split('\n'), [
    '09:05:07 delivery failed  execution_id=e  attempt=2  http_status=500  ms=3',
    '09:05:07 signed webhook ended  queue=alerts  error=timeout',
    '09:05:07 mail written to the outbox; set SMTP_URL to send mails  kind=magic_link  links=["http://localhost/x"]',
    '09:05:07 warning: job failed  refused  queue=mails',
    ''
  ])
  t.equal(prettyLines(lines, 'debug').split('\n').length, 8)
  t.end()
})
