import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, request as requestTo } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { commands } from '../../src/cli/commands.ts'
import { version } from '../../src/config.ts'
import { freePort } from '../../src/embedded-postgres/embedded-postgres.ts'
import { cliStage, listening, pgcue } from '../support/cli-stage.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, receiver } from '../support/setup.ts'
import { main } from '../support/worker-stage.ts'

t.test('help lists every command, option and exit code', async t => {
  const { code, out } = await pgcue(['help'])
  t.equal(code, 0)
  for (const name of commands.keys()) t.ok(out.includes(`  ${name}`), name)
  for (const exit of ['0  done', '1  refused', '2  invalid arguments', '3  not found', '4  the service is unreachable'])
    t.ok(out.includes(exit), exit)
  t.same(await pgcue([]), { code: 0, out, err: '' }, 'as do no arguments at all')
  exactly(t, await pgcue(['help', 'cues', 'create']), { code: 0, out: /--cron <CRON>[\s\S]*Examples/ })
  exactly(t, await pgcue(['cues', 'create', '--help']), { code: 0, out: /^Usage: pgcue cues create/ })
  t.match((await pgcue(['help', 'cues'])).out, /cues delete/)
  t.notMatch((await pgcue(['cues', '--help'])).out, /alerts/)
  t.same(await pgcue(['--version']), { code: 0, out: `${version}\n`, err: '' })
  t.same(JSON.parse((await pgcue(['--version', '--json'])).out), { version })
})

t.test('rejects invalid arguments with code 2 and refers to help', async t => {
  for (const [args, message] of [
    [['cus', 'list'], /unknown command 'cus list'\n\(Did you mean cues list\?\)\nSee: pgcue help$/m],
    [['cues'], /needs a command: create, put, list/],
    [['cues', 'liist'], /unknown command 'cues liist'\n\(Did you mean cues list\?\)/],
    [['help', 'nothing'], /unknown command 'nothing'/],
    [['cues', 'list', '--stauts', 'x'], /--stauts[\s\S]*See: pgcue help cues list/],
    [['cues', 'list', '--limit', '500'], /--limit must be a whole number from 1 to 100/],
    [['cues', 'list', '--base-url'], /option '--base-url <URL>' argument missing/],
    [['cue', 'list'], /unknown command 'cue list'\n\(Did you mean cues list\?\)/],
    [['cues', 'lsit', '--json'], /Did you mean cues list/],
    [['cues', 'list', 'extra'], /too many arguments/],
    [['cues', 'get'], /missing required argument 'CUE'/],
    [['cues', 'fire'], /missing required argument 'CUE'/],
    [['cues', 'get', 'a', 'b'], /too many arguments/],
    [['cues', 'create', 'x', '--payload', '{'], /--payload is not valid JSON/],
    [['cues', 'create', 'x', '--payload', '@none.json'], /none\.json/],
    [['cues', 'create', 'x', '--data', '[]'], /--data must be a JSON object/],
    [['cues', 'create', 'x', '--task', 't', '--payload', '1'], /--task requires a payload that is a JSON object/],
    [['cues', 'get', 'a', '--key', 'b'], /give either CUE or --key, not both/],
    [['cues', 'put'], /missing required argument 'KEY'/],
    [['cues', 'put', 'k', '--cron', '@daily'], /missing required argument 'NAME'/],
    [['cues', 'update', 'x'], /nothing to update/],
    [['cues', 'fire', 'x', '--replace'], /--replace requires --payload/],
    [['executions', 'list', '--evidence', '--no-evidence'], /give either --evidence or --no-evidence, not both/],
    [['listen'], /--forward-to is required/],
    [['worker'], /no handlers/],
    [['whoami', '--base-url', 'localhost'], /must start with http/]
  ] as const) {
    exactly(t, await pgcue([...args]), { code: 2, out: '', err: message }, args.join(' '))
  }
})

t.test('creates, shows, updates, fires, pauses and deletes a cue', async t => {
  const { cli, json } = await cliStage(t)
  const definition = ['--cron', '0 9 * * *', '--timezone', 'Europe/London', '--worker', '--task', 'report', '--overlap', 'queue_one']
  const made = await cli(['cues', 'create', 'report', ...definition])
  exactly(t, made, {
    code: 0,
    out: /^id +cue_\w+\nname +report\nstatus +active\nversion +1\nschedule +0 9 \* \* \* Europe\/London\n[\s\S]*Warning: /
  })
  const id = /cue_\w+/.exec(made.out)![0]
  exactly(t, await json(['cues', 'get', id]), {
    id,
    payload: { task: 'report' },
    transport: 'worker',
    overlap: 'queue_one',
    executions: []
  })
  exactly(t, await cli(['cues', 'list', '--status', 'active']), { out: new RegExp(`^ID +NAME +STATUS +.*\\n${id} +report +active +0 9`) })
  exactly(t, await cli(['cues', 'update', id, '--name', 'other', '--cron', '@daily', '--payload', '-'], { stdin: '{"n": 1}' }), { code: 0 })
  exactly(t, await json(['cues', 'get', id]), { name: 'other', schedule: { cron: '@daily', timezone: 'Europe/London' }, payload: { n: 1 } })
  const { id: execution } = await json(['cues', 'fire', id, '--payload', '{"m": 2}', '--idempotency-key', 'k'])
  exactly(t, await json(['executions', 'get', execution]), { payload: { n: 1, m: 2 } })
  exactly(t, await cli(['cues', 'fire', id, '--overlap', 'skip']), { code: 1, err: /^pgcue: Cue \w+ is running \(overlap: skip\)/ })
  exactly(t, await cli(['cues', 'update', id, '--overlap', 'never']), { code: 1, err: /^pgcue: --overlap: / })
  exactly(t, await cli(['cues', 'fire', id, '--at', '2100-01-01T00:00:00Z']), { code: 1, err: /^pgcue: --at: / })
  exactly(t, await cli(['cues', 'get', id]), { out: new RegExp(`Latest of 1 executions\\nID +STATUS[\\s\\S]*${execution} +pending`) })
  exactly(t, await cli(['cues', 'pause', id]), { out: `${id} is paused\n` })
  const until = ['--reason', 'broken', '--until', '2100-01-01T00:00:00Z']
  exactly(t, await cli(['cues', 'pause', id, ...until]), { out: `${id} is paused until 2100-01-01T00:00:00.000Z\n` })
  exactly(t, await cli(['cues', 'get', id]), { out: /paused by +user\n[\s\S]*paused until +2100-01-01T00:00:00Z\nreason +broken\n/ })
  exactly(t, await cli(['cues', 'pause', id, '--until', '2020-01-01T00:00:00Z']), { code: 1, err: /^pgcue: --until: .*in the future/ })
  exactly(t, await cli(['cues', 'resume', id]), { out: new RegExp(`^${id} is active; the next run is at \\d{4}`) })
  exactly(t, await cli(['cues', 'delete', id]), { code: 0, out: `Deleted ${id}\n` })
  exactly(t, await cli(['cues', 'list']), { out: 'No cues. Create one with: pgcue cues create\n' })
})

t.test('creates and changes schedules at intervals, by several crons, within bounds', async t => {
  const { cli, json } = await cliStage(t)
  const bounds = ['--starts-at', '2100-01-01T00:00:00Z', '--ends-at', '2100-02-01T00:00:00+01:00', '--max-runs', '9']
  const made = await cli(['cues', 'create', 'ping', '--every', '45m', '--anchor', '2100-01-01T00:10:00Z', ...bounds, '--worker'])
  exactly(t, made, {
    code: 0,
    out: /\nschedule +every 45m\nanchor +2100-01-01T00:10:00Z\nstarts at +2100-01-01T00:00:00Z\nends at +2100-01-31T23:00:00Z\nmax runs +9\nnext run +2100-01-01T00:10:00Z\n/
  })
  const id = /cue_\w+/.exec(made.out)![0]
  const limits = { starts_at: '2100-01-01T00:00:00.000Z', ends_at: '2100-01-31T23:00:00.000Z', max_runs: 9 }
  exactly(t, await json(['cues', 'update', id, '--cron', '0 9 * * *', '--cron', '0 12 * * SAT']), {
    schedule: { crons: ['0 9 * * *', '0 12 * * SAT'], ...limits }
  })
  exactly(t, await cli(['cues', 'list']), { out: / 0 9 \* \* \*; 0 12 \* \* SAT / })
  exactly(t, await json(['cues', 'update', id, '--data', '{"schedule": {"ends_at": null}}', '--max-runs', '3']), {
    schedule: { crons: ['0 9 * * *', '0 12 * * SAT'], max_runs: 3, ends_at: undefined }
  })
  const refused: [args: string[], code: number, message: RegExp][] = [
    [['--every', '5s'], 1, /^pgcue: --every: .* from 10s to 366d$/m],
    [['--cron', '@daily', '--every', '1h'], 1, /^pgcue: --every: .*does not go with cron/],
    [['--cron', '@daily', '--cron', 'never'], 1, /^pgcue: --cron\.1: /],
    [['--cron', '@daily', '--max-runs', '0'], 2, /--max-runs must be a whole number/],
    [['--cron', '@daily', '--ends-at', '2020-01-01T00:00:00Z'], 1, /^pgcue: --ends-at: .*leaves no slot/]
  ]
  for (const [args, code, err] of refused)
    exactly(t, await cli(['cues', 'create', 'x', ...args, '--worker']), { code, err }, args.join(' '))
  exactly(t, await cli(['preview', '--every', '1d', '--max-runs', '1', '--from', '2030-01-01T00:00:00Z']), {
    out: /^Every day, .*, at most 1 run, UTC\n\nAT .*\n2030-01-02T00:00:00Z [^\n]*\n$/
  })
  exactly(t, await json(['preview', '0 9 * * *', '0 12 * * SAT']), { schedule: { crons: ['0 9 * * *', '0 12 * * SAT'] } })
  exactly(t, await cli(['preview']), { code: 2, err: /missing required argument 'SCHEDULE'/ })
})

t.test('sets what people set with options, within the bounds of the schemas', async t => {
  const { cli, json } = await cliStage(t)
  const create = ['cues', 'create', 'x', '--url', 'http://127.0.0.1:8099/hook']
  const made = await json([
    ...[...create, '--in', '2h', '--retries', '4', '--backoff', '30s,5,1h', '--header', 'X-A: b: c', '--header', 'X-D:', '--timeout', '2m'],
    ...['--await-outcome', '--verify', 'manual', '--on-failure', 'no-email,pause-after=3', '--on-failure', 'https://example.com/f']
  ])
  exactly(t, made, {
    retry: { max_attempts: 5, backoff_minutes: [0.5, 5, 60] },
    delivery: { timeout_seconds: 120, await_outcome: true },
    verification: { mode: 'manual' },
    on_failure: { email: false, pause_after: 3, webhook: 'https://example.com/f' }
  })
  t.same(Object.keys(made.callback.headers), ['X-A', 'X-D'])
  const hours = (at: string) => Math.round((Date.parse(at) - Date.now()) / 3_600_000)
  t.equal(hours(made.schedule.at), 2)
  const changes = ['--at', '+3d', '--no-await-outcome', '--on-failure', 'no-webhook', '--retries', '0']
  const changed = await json(['cues', 'update', made.id, ...changes])
  exactly(t, changed, { delivery: { await_outcome: false }, on_failure: { webhook: null }, retry: { max_attempts: 1 } })
  t.equal(hours(changed.schedule.at), 72)
  t.equal(hours((await json(['cues', 'fire', made.id, '--in', '5h'])).scheduled_for), 5)
  const asking = ['--approval-expires', '30m', '--approval-on-expiry', 'run', '--approval-message', 'Refund?']
  exactly(t, await cli(['cues', 'update', made.id, ...asking]), { code: 0, out: /approval +within 30m, otherwise run; Refund\?\n/ })
  const expires = ['--approval-expires', 'never']
  t.same((await json(['cues', 'update', made.id, ...expires])).approval, { expires: null, on_expiry: 'run', message: 'Refund?' })
  exactly(t, await json(['cues', 'update', made.id, '--approval', '--approval-on-expiry', 'skip']), {
    approval: { expires: null, on_expiry: 'skip' }
  })
  for (const [args, err] of [
    [['--retries', '10'], /--retries must be a whole number from 0 to 9/],
    [['--timeout', '2h'], /--timeout must be a whole number from 1 to 3600/],
    [['--backoff', '5,soon'], /--backoff must be like 30s,5m,1h/],
    [['--header', 'X-A'], /--header must be NAME: VALUE, not X-A/],
    [['--in', 'soon'], /--in must be a whole number and a unit, .* from 1s to 366d, not soon/],
    [['--in', '5m', '--at', '+5m'], /give either --in or --at, not both/],
    [['--approval', '--no-approval'], /give either --approval or --no-approval/],
    [['--on-failure', 'email,shout'], /--on-failure must be email, .* not shout/],
    [['--payload', '-', '--data', '-'], /only one of --data and --payload can read standard input/]
  ] as const)
    exactly(t, await cli([...create, ...args]), { code: 2, out: '', err }, args.join(' '))
})

t.test('takes a cue by its id, its key, or a name that only one cue has', async t => {
  const { cli, json } = await cliStage(t)
  const create = (name: string, ...args: string[]) => json(['cues', 'create', name, '--cron', '@daily', '--worker', ...args])
  const [report, , a, b] = [await create('report', '--key', 'a/b'), await create('report 2'), await create('twin'), await create('twin')]
  for (const cue of [report.id, 'a/b', 'report']) exactly(t, await json(['cues', 'get', cue]), { id: report.id }, cue)
  exactly(t, await json(['cues', 'pause', 'report']), { id: report.id, status: 'paused' })
  exactly(t, await json(['cues', 'resume', 'a/b']), { id: report.id, status: 'active' })
  const { id } = await json(['cues', 'fire', 'a/b'])
  exactly(t, await json(['executions', 'list', '--cue', 'report']), { executions: [{ id }] })
  exactly(t, await json(['cancel', '--cue', 'a/b', '--dry-run']), { total: 1 })
  exactly(t, await cli(['cues', 'delete', 'twin']), {
    code: 2,
    err: new RegExp(`^pgcue: Several cues have the name twin; use an id or a key: ${b.id}, ${a.id}\\n$`)
  })
  exactly(t, await cli(['cues', 'get', 'nobody']), { code: 3, err: /^pgcue: Cue not found/ })
  exactly(t, await cli(['cues', 'delete', 'report 2']), { code: 0, out: 'Deleted report 2\n' })
})

t.test('waits for the service, visibly on a terminal, and gives up with code 4', async t => {
  const { cli, app } = await cliStage(t)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const proxy = createServer((request, response) => {
    const { port: target } = app.server.address() as AddressInfo
    request.pipe(
      requestTo({ port: target, path: request.url, method: request.method, headers: request.headers }, answer => answer.pipe(response))
    )
  })
  t.teardown(() => proxy.close())
  const onError = (text: string) => /next try in \d+ s/.test(text) && !proxy.listening && proxy.listen(port, '127.0.0.1')
  const { code, err } = await cli(['whoami', '--base-url', url], { tty: true, onError })
  t.equal(code, 0)
  t.match(err, /pgcue: http:\/\/127\.0\.0\.1:\d+ is unreachable: ECONNREFUSED; next try in 1 s/)
  t.ok(err.endsWith('\r\x1b[K'), 'the line goes')
})

t.test('puts, lists, gets and deletes cues by key', async t => {
  const { cli, json } = await cliStage(t)
  const put = (...args: string[]) => ['cues', 'put', 'a/b', ...args, '--cron', '@daily', '--worker', '--tag', 'x', '--tag', 'y z']
  const cue = await json(put('report'))
  exactly(t, cue, { key: 'a/b', name: 'report', tags: ['x', 'y z'], changed: true })
  exactly(t, await json(put('report')), { id: cue.id, changed: false })
  exactly(t, await cli(put('other', '--only-new')), { code: 1, err: /belongs to cue/ })
  exactly(t, await cli(put('other', '--if-version', '7')), { code: 1, err: /has version 1/ })
  exactly(t, await cli(['cues', 'get', '--key', 'a/b']), { code: 0, out: /\nkey +a\/b\n[\s\S]*tags +x, y z\n/ })
  exactly(t, await cli(['cues', 'list', '--tag', 'x', '--tag', 'y z']), { out: /^ID +KEY +NAME[\s\S]*a\/b +report/ })
  exactly(t, await json(['cues', 'list', '--key', 'none']), { total: 0 })
  exactly(t, await json(['executions', 'list', '--tag', 'x']), { executions: [] })
  exactly(t, await cli(['cues', 'pause', cue.id, '--if-version', '1']), { code: 0 })
  exactly(t, await cli(['cues', 'delete', '--key', 'a/b', '--if-version', '1']), { code: 1, err: /has version 2/ })
  exactly(t, await cli(['cues', 'delete', '--key', 'a/b']), { code: 0, out: 'Deleted a/b\n' })
  exactly(t, await cli(['cues', 'get', '--key', 'a/b']), { code: 3 })
  const create = ['cues', 'create', 'n', '--cron', '@daily', '--worker', '--idempotency-key', 'k']
  exactly(t, await json(create), { id: (await json(create)).id })
})

t.test('--data sets other members, and options override it, also after a byte order mark', async t => {
  const { json, config } = await cliStage(t)
  const file = join(config, 'cue.json')
  writeFileSync(
    file,
    '\ufeff{"name": "from the file", "schedule": {"cron": "@daily", "timezone": "UTC"}, "retry": {"max_attempts": 5}, "transport": "worker"}'
  )
  const cue = await json(['cues', 'create', '--data', `@${file}`, '--timezone', 'Europe/Paris', '--payload', '-'], {
    stdin: '\ufeff{"n": 1}'
  })
  exactly(t, cue, {
    name: 'from the file',
    schedule: { cron: '@daily', timezone: 'Europe/Paris' },
    retry: { max_attempts: 5 },
    payload: { n: 1 }
  })
  const once = await json(['cues', 'create', 'once', '--at', '2100-01-01T00:00:00+01:00', '--url', 'http://127.0.0.1:8099/hook'])
  exactly(t, once, { schedule: { type: 'once', at: '2099-12-31T23:00:00.000Z' }, callback: { url: 'http://127.0.0.1:8099/hook' } })
})

t.test('keeps all digits of long numbers', async t => {
  const { cli } = await cliStage(t)
  const payload = '{"a":12345678901234567890123,"b":1.0}'
  const { out } = await cli(['cues', 'create', 'x', '--cron', '@daily', '--worker', '--payload', payload, '--json'])
  t.match(out, /"a": 12345678901234567890123,\s+"b": 1\.0\b/)
  t.match((await cli(['cues', 'list', '--json'])).out, /12345678901234567890123/)
})

t.test('lists, shows, replays, cancels and verifies executions', async t => {
  const { cli, json, post } = await cliStage(t)
  const cue = await json(['cues', 'create', 'job', '--cron', '@yearly', '--worker', '--data', '{"verification": {"mode": "manual"}}'])
  const { id } = await json(['cues', 'fire', cue.id])
  await post(`/v1/executions/${id}/claim`, { worker_id: 'w1' })
  await post(`/v1/executions/${id}/outcome`, { success: true, result: 'done', external_id: 'x1' })
  exactly(t, await cli(['executions', 'list', '--cue', cue.id, '--outcome', 'verification_pending', '--evidence', '--worker', 'w1']), {
    out: new RegExp(`${id} +job +success +verification_pending`)
  })
  exactly(t, await cli(['executions', 'list', '--no-evidence']), { out: 'No matching executions.\n' })
  exactly(t, await cli(['executions', 'get', id]), { out: /result +done\nexternal id +x1\n[\s\S]*ATTEMPT +RESULT[\s\S]*1 +success .* w1 / })
  exactly(t, await cli(['executions', 'verify', id, '--reject', '--reason', 'wrong']), { out: /is verification_failed/ })
  exactly(t, await cli(['executions', 'verify', id]), { code: 1, err: /^pgcue: / })
  const replayed = await json(['executions', 'replay', id, '--overlap', 'skip'])
  exactly(t, replayed, { replayed_from: id, status: 'pending' })
  exactly(t, await cli(['executions', 'cancel', replayed.id]), { out: /^Cancelled execution/ })
  exactly(t, await json(['executions', 'list', '--cursor', replayed.id, '--count-to', '1']), {
    executions: [{ id }],
    total: 1,
    total_exact: false,
    next_cursor: null
  })
  exactly(t, await cli(['executions', 'list', '--cursor', 'x']), { code: 1, err: /--cursor/ })
  exactly(t, await cli(['executions', 'list', '--limit', '1', '--count-to', '0']), {
    out: new RegExp(`\n1 shown; next page: --cursor ${replayed.id}\n$`)
  })
  exactly(t, await cli(['executions', 'list', '--limit', '1']), { out: new RegExp(`\n1 of 2; next page: --cursor ${replayed.id}\n$`) })
})

t.test('sends a test request to the address of a cue or to a URL', async t => {
  const { cli, json } = await cliStage(t)
  const { url, requests } = await receiver(t, ({ path }) => ({ status: path === '/bad' ? 500 : 200, body: 'thanks' }))
  const cue = await json(['cues', 'create', 'hook', '--key', 'k', '--cron', '@daily', '--url', `${url}hook`, '--payload', '{"n": 1}'])
  const sent = await cli(['cues', 'test', 'k'])
  t.equal(sent.code, 0)
  t.match(sent.out, /^POST http:\S+\/hook\n[\s\S]*x-service-signature: v1=[\s\S]*\n\{"n": 1\}\n\nHTTP 200 after \d+ ms\nthanks\n$/i)
  exactly(t, await json(['cues', 'test', cue.id, '--payload', '[2]']), { response: { http_status: 200 } })
  exactly(t, await cli(['cues', 'test', `${url}bad`]), { code: 1, out: /\nHTTP 500 after \d+ ms\nthanks\nA delivery would fail: / })
  t.same(
    requests.map(({ path, body }) => [path, body]),
    [
      ['/hook', '{"n": 1}'],
      ['/hook', '[2]'],
      ['/bad', '{}']
    ]
  )
  exactly(t, await cli(['cues', 'test', 'ftp://x']), { code: 3 })
})

t.test('shows all that is known about an execution, at once or until it has ended', async t => {
  const stage = await build(t)
  const { cli, json } = await listening(t, stage)
  const { url } = await receiver(t, () => ({ status: 418, body: 'short and stout' }))
  const cue = await json(['cues', 'create', 'tea', '--cron', '@yearly', '--url', url, '--retries', '0'])
  const { id } = await json(['cues', 'fire', cue.id])
  const watching = cli(['executions', 'get', id, '--watch'])
  await startEngine(t, stage.config)
  const watched = await watching
  exactly(t, watched, { code: 0, out: new RegExp(`${id}  tea  failed, HTTP 418[^\\n]*\\n\\nid +${id}\\n`) })
  const { out } = await cli(['executions', 'get', id])
  t.match(
    out,
    new RegExp(
      `^id +${id}\\ncue +tea \\(${cue.id}\\)\\n[\\s\\S]*\\nresponse body +short and stout\\n\\nATTEMPT +RESULT .*\\n1 +failed .* 418 `
    )
  )
  t.ok(watched.out.endsWith(out))
})

t.test('shows the overview, and finds cues by parts of their texts', async t => {
  const { cli, json, post, pool } = await cliStage(t)
  exactly(t, await cli(['overview']), { code: 0, out: /^since +\S+Z\nrunning +0\nsucceeded +0\nfailed +0\n\nNothing needs attention\.\n$/ })
  const create = (name: string, ...args: string[]) => json(['cues', 'create', name, '--cron', '* * * * *', '--worker', ...args])
  const [failing, paused] = [await create('report', '--task', 'billing'), await create('cleanup')]
  const { id } = await json(['cues', 'fire', failing.id])
  await post(`/v1/executions/${id}/claim`, { worker_id: 'w1' })
  await post(`/v1/executions/${id}/outcome`, { success: false, error: 'no\ttoner' })
  await json(['cues', 'fire', failing.id])
  await pool.query("update cue.cues set status = 'paused', paused_by = 'plan', paused_at = now() where id = $1", [paused.id])
  const { out } = await cli(['overview'])
  t.match(out, /\nTasks without a live worker\nTASK +WAITING +SINCE\nbilling +1 +\S+Z\n/)
  t.match(out, new RegExp(`\\nPaused by the service\\nCUE +NAME +BY +SINCE +REASON\\n${paused.id} +cleanup +plan +\\S+Z +-\\n`))
  t.match(out, new RegExp(`\\nNext hour\\nNEXT RUN +CUE +NAME\\n\\S+Z +${failing.id} +report\\n$`))
  t.notMatch(out, /Nothing needs/)
  exactly(t, await json(['overview']), { failed: 1, running: 1, waiting: [{ task: 'billing', has_worker: false }] })
  exactly(t, await cli(['overview', 'x']), { code: 2, err: /too many arguments/ })

  exactly(t, await json(['cues', 'list', '--search', 'BILL']), { cues: [{ id: failing.id }], total: 1 })
  const { next_cursor } = await json(['cues', 'list', '--limit', '1'])
  exactly(t, await cli(['cues', 'list', '--limit', '1']), { out: new RegExp(`\\n1 of 2; next page: --cursor ${next_cursor}\\n$`) })
  exactly(t, await json(['cues', 'list', '--limit', '1', '--cursor', next_cursor]), { cues: [{ id: failing.id }], next_cursor: null })
})

t.test('lists and acknowledges alerts', async t => {
  const { cli, json, pool, account } = await cliStage(t)
  const cue = await json(['cues', 'create', 'job', '--cron', '@yearly', '--worker'])
  await pool.query(
    `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at)
     values (gen_random_uuid(), $1, $2, 'missed_window', 'high', 'nothing came', now())`,
    [account.id, cue.id]
  )
  const { alerts } = await json(['alerts', 'list', '--open'])
  exactly(t, await cli(['alerts', 'list', '--cue', cue.id]), { out: /high +missed_window .* nothing came\n$/ })
  exactly(t, await cli(['alerts', 'ack', alerts[0].id]), { out: / acknowledged at 20/ })
  exactly(t, await cli(['alerts', 'list', '--open']), { out: 'No matching alerts.\n' })
})

t.test('prints events, and follows them until interrupted', async t => {
  const { cli, json, fn } = await cliStage(t)
  const cue = await json(['cues', 'create', 'job', '--key', 'nightly', '--cron', '@yearly', '--worker'])
  await fn.publishEvents({})
  const first = await json(['events', '--types', 'cue.*'])
  exactly(t, first, { events: [{ type: 'cue.created', cue_id: cue.id }], has_more: false })
  exactly(t, await cli(['events', '--cue', cue.id]), { out: /^20\S+Z {2}cue\.created {2}nightly {2}job\nTo continue: --after \S+\n$/ })
  exactly(t, await cli(['events', '--types', 'x']), { code: 1, err: /--types: Unknown type "x"/ })
  const stopping = new AbortController()
  const following = cli(['events', '--follow', '--after', first.cursor, '--json'], { stopping: stopping.signal })
  await cli(['cues', 'pause', cue.id])
  await fn.publishEvents({})
  const page = await json(['events', '--after', first.cursor])
  exactly(t, page, { events: [{ type: 'cue.paused' }] })
  // The request that waits has been told of the event by the same publication.
  setTimeout(() => stopping.abort(), 1000)
  const { code, out } = await following
  t.equal(code, 0)
  exactly(t, JSON.parse(out), { type: 'cue.paused', cue_id: cue.id })
})

t.test('shows account, usage, keys, workers and schedules', async t => {
  const { cli, json, account, baseUrl, post } = await cliStage(t)
  exactly(t, await cli(['whoami']), { out: new RegExp(`^email +${account.email}\\n[\\s\\S]*service +${baseUrl}\\n`) })
  exactly(t, await cli(['usage']), { out: /^plan +free\n[\s\S]*cues +0 +10 +10 +0\n/ })
  exactly(t, await json(['usage']), { plan: 'free', executions: { limit: 300 } })
  const { id, api_key } = await json(['keys', 'create', 'ci', '--scopes', 'read, worker'])
  exactly(t, await cli(['keys', 'list']), { out: /ci +read,worker/ })
  exactly(t, await cli(['cues', 'create', 'x', '--cron', '@daily', '--worker'], { env: { PGCUE_API_KEY: api_key } }), {
    code: 2,
    err: /scope/
  })
  exactly(t, await cli(['keys', 'revoke', id]), { out: / revoked at/ })
  await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: ['a', 'b'] })
  exactly(t, await cli(['workers', 'list']), { out: /w1 +active .* a, b\n$/ })
  exactly(t, await cli(['workers', 'delete', 'w1']), { out: 'Removed w1\n' })
  const preview = ['preview', '30 1 * * *', '--timezone', 'America/New_York', '--from', '2030-11-02T06:00:00Z', '--count', '1']
  exactly(t, await cli(preview), { out: /at 01:30[\s\S]*2030-11-03T05:30:00Z +2030-11-03T01:30:00-04:00 +01:30 comes twice/ })
  exactly(t, await json(['preview', '2100-01-01T00:00:00Z']), { schedule: { type: 'once' }, next: [{ at: '2100-01-01T00:00:00.000Z' }] })
})

t.test('the exit code shows the kind of failure, and --json prints the error', async t => {
  const { cli } = await cliStage(t)
  exactly(t, await cli(['cues', 'create', 'x', '--cron', 'never', '--worker']), { code: 1, err: /^pgcue: --cron: / })
  exactly(t, await cli(['cues', 'update', 'cue_000000000000', '--data', '{"nmae": 1}']), { code: 1, err: /nmae/ })
  exactly(t, await cli(['whoami'], { env: { PGCUE_API_KEY: 'svc_sk_wrong' } }), { code: 2, err: /pgcue login/ })
  for (const args of [['usage'], ['worker', '--handler', 'a=true']]) {
    exactly(t, await cli(args, { env: { PGCUE_API_KEY: 'svc_sk_53wic9w…' } }), {
      code: 2,
      err: /^pgcue: The API key contains [^…]*PGCUE_API_KEY/
    })
  }
  exactly(t, await cli(['whoami'], { env: { PGCUE_API_KEY: '' } }), { code: 2, err: /No key for .*pgcue login/ })
  exactly(t, await cli(['cues', 'get', 'cue_000000000000']), { code: 3 })
  exactly(t, await cli(['alerts', 'ack', 'x']), { code: 3 })
  const url = `http://127.0.0.1:${await freePort()}`
  exactly(t, await cli(['whoami', '--base-url', url]), { code: 4, err: /is unreachable: ECONNREFUSED\nCheck that it is running/ })
  for (const body of ['{}', 'null', '[]']) {
    const other = await receiver(t, () => ({ body }))
    exactly(t, await cli(['usage', '--base-url', other.url]), { code: 1, err: /127\.0\.0\.1:\d+ did not respond like pgcue/ })
  }
  const { err } = await cli(['--json', 'cues', 'get', 'cue_000000000000'])
  exactly(t, JSON.parse(err), { error: { code: 'cue_not_found', status: 404, message: /\w/ } })
  exactly(t, JSON.parse((await cli(['cues', '--json'])).err), { error: { code: 'usage', status: 0 } })
})

t.test('uses colours on terminals only, and escapes control characters from others', async t => {
  const { cli } = await cliStage(t)
  await cli(['cues', 'create', 'a\x1b[2J日本', '--cron', '@daily', '--worker'])
  t.notMatch((await cli(['cues', 'list'])).out, /\x1b/)
  const { out } = await cli(['cues', 'list'], { tty: true })
  t.match(out, /\x1b\[32mactive\x1b\[0m/)
  t.notMatch(out, /\x1b\[2J/)
  t.notMatch((await cli(['cues', 'list'], { tty: true, env: { NO_COLOR: '1' } })).out, /\x1b/)
  const [title, row] = (await cli(['cues', 'list'])).out.split('\n')
  t.equal(row!.indexOf('active'), title!.indexOf('STATUS') - 2, 'wide letters take two columns')
})

t.test('text from others starts no row, controls no terminal and changes no order, in any output', async t => {
  const { cli, json, post, call, fn, pool, account } = await cliStage(t)
  const evil = 'evil\nforged  row\r\t\u202e\u2066\u2028\u009b2J\x1b[2J'
  const shown = 'evil\\nforged  row\\r\\t\\u202e\\u2066\\u2028\\u009b2J\\u001b[2J'
  const body = { name: evil, key: 'k', description: evil, tags: [evil], payload: { task: evil, [evil]: 1 }, worker: true, cron: '@hourly' }
  const cue = await post('/v1/cues', body)
  const { id } = await post(`/v1/cues/${cue.id}/fire`)
  await post('/v1/worker/heartbeat', { worker_id: evil, handlers: [evil] })
  const { claim_token } = await post(`/v1/executions/${id}/claim`, { worker_id: evil })
  await call(
    'POST',
    `/v1/executions/${id}/outcome`,
    { success: false, error: evil, metadata: { [evil]: evil } },
    { 'x-claim-token': claim_token }
  )
  await pool.query(
    `insert into cue.alerts (id, account_id, cue_id, execution_id, alert_type, severity, message, created_at)
     values (gen_random_uuid(), $1, $2, $3, 'missed_window', 'high', $4, now())`,
    [account.id, cue.id, id, evil]
  )
  await call('PUT', '/v1/calendars/c', { description: evil })
  const key = await post('/v1/auth/keys', { label: evil })
  await fn.publishEvents({})
  for (const args of [
    'cues list',
    `cues get ${cue.id}`,
    `cues pause ${cue.id} --reason x`,
    'executions list',
    `executions get ${id}`,
    'replay --status failed --dry-run',
    'errors',
    'overview',
    'alerts list',
    'workers list',
    'keys list',
    'calendars get c',
    'events',
    'export',
    `cues update ${cue.id} --data {"${evil.slice(0, 4)}":1}`
  ])
    for (const tty of [false, true])
      for (const format of [[], ['--json']]) {
        const { out, err } = await cli([...args.split(' '), ...format], { tty, env: { NO_COLOR: '1' } })
        t.notMatch(out + err, /[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|^forged/m, `${args} ${format}`)
        if (/^(cues (list|get)|executions|overview|alerts|events|workers|keys|calendars)/.test(args))
          t.ok(out.includes(shown), `${args} ${format} shows it escaped`)
      }
  t.equal((await cli(['cues', 'list'])).out.split('\n').length, 3, 'a title and a row')
  exactly(t, await json(['cues', 'get', cue.id]), { name: evil, description: evil, payload: { task: evil } }, 'JSON is the same JSON')
  exactly(t, await cli(['apply', '-f', '-', '--set', 's', '--take-over', '--dry-run'], { stdin: (await cli(['export'])).out }), { code: 0 })
  const unknown = await cli(['cues', 'list'], { env: { PGCUE_API_KEY: key.api_key, PGCUE_BASE_URL: (await refusing(t, evil)).url } })
  exactly(t, unknown, { code: 1, err: `pgcue: ${shown}\n` })
})

/** A service that refuses everything with this message. */
const refusing = (t: Test, message: string) =>
  receiver(t, () => ({ status: 409, body: { error: { code: 'invalid_state', message, status: 409 } } }))

t.test("the process exits with the command's code, and quietly if its output is closed", async t => {
  const { env } = await cliStage(t)
  const start = (args: string[]) => spawn(process.execPath, [main, ...args], { env: { ...process.env, ...env } })
  const code = (child: ReturnType<typeof start>) => new Promise(resolve => child.on('close', resolve))
  t.equal(await code(start(['cues', 'get', 'cue_000000000000'])), 3)
  const unread = start(['help'])
  unread.stdout.destroy()
  let stderr = ''
  unread.stderr.on('data', chunk => {
    stderr += chunk
  })
  t.equal(await code(unread), 0)
  t.equal(stderr, '')
})
