import t from 'tap'
import { cliStage } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'
import { receiver } from '../support/receiver.ts'

t.test('creates, lists, shows and deletes a calendar, and cues that use it', async t => {
  const { cli, json } = await cliStage(t)
  const put = [...'calendars put holidays --date 12-25 --range 2099-12-24T12:00/2099-12-27T00:00 --description'.split(' '), 'no work']
  exactly(t, await json(put), {
    name: 'holidays',
    description: 'no work',
    dates: ['12-25'],
    ranges: [{ from: '2099-12-24T12:00', to: '2099-12-27T00:00' }]
  })
  exactly(t, await cli(['calendars', 'get', 'holidays']), { code: 0, out: /ranges +2099-12-24T12:00\/2099-12-27T00:00/ })
  exactly(t, await cli(['calendars', 'list']), { code: 0, out: /holidays +1 +1/ })
  const options = '--worker --window 30m --exclude 12-24 --exclude 2099-01-01T00:00/2099-01-02T00:00 --exclude-calendar holidays'.split(' ')
  const weekly = '{"cron": "0 0 * * 0", "minutes": 60}'
  const create = ['cues', 'create', 'report', '--cron', '0 9 * * *', ...options, '--exclude', weekly]
  const cue = await json(create)
  exactly(t, cue.schedule, {
    window: '30m',
    exclude: [{ dates: ['12-24'] }, { from: '2099-01-01T00:00', to: '2099-01-02T00:00' }, { cron: '0 0 * * 0', minutes: 60 }],
    exclude_calendars: ['holidays']
  })
  exactly(t, await cli(['cues', 'get', cue.id]), { code: 0, out: /window +30m\n *exclude +.*12-24[\s\S]*next slot +\d{4}/ })
  exactly(t, await json(['cues', 'list', '--calendar', 'holidays']), { cues: [{ id: cue.id }], total: 1 })
  exactly(t, await json(['cues', 'list', '--calendar', 'others']), { cues: [] })
  exactly(t, await cli(['calendars', 'delete', 'holidays']), { code: 1, err: new RegExp(`used by ${cue.id}`) })
  await cli(['cues', 'delete', cue.id, '--yes'])
  await cli(['cues', 'delete', cue.id])
  exactly(t, await cli(['calendars', 'delete', 'holidays']), { code: 0, out: 'Calendar holidays deleted\n' })
  exactly(t, await cli(['calendars', 'get', 'holidays']), { code: 3 })
  exactly(t, await cli(['calendars', 'list']), { code: 0, out: 'No calendars.\n' })
  exactly(t, await cli(['preview', '0 9 * * *', '--from', '2099-12-23T10:00:00Z', '--exclude', '12-24', '--count', '1']), {
    out: /2099-12-25/
  })
})

t.test('puts, lists, pauses and deletes a gate, and cues that name it', async t => {
  const { cli, json } = await cliStage(t)
  const put = 'gates put openai --parallel 5 --rate 60 --per 10s --breaker-failures 3 --max-wait 1h'.split(' ')
  exactly(t, await json(put), {
    key: 'openai',
    parallel: 5,
    rate: 60,
    per: '10s',
    breaker: { failures: 3, open_seconds: 30 },
    max_wait: '1h'
  })
  exactly(t, await cli(['gates', 'put', 'openai', '--order', '--parallel', '3']), { code: 1, err: /--parallel: .*must be 1 with order/ })
  exactly(t, await cli(['gates', 'list']), { code: 0, out: /openai +5 +60 per 10s/ })
  exactly(t, await cli(['gates', 'pause', 'openai', '--reason', 'outage', '--until', '+2h']), { code: 0, out: /pause reason +outage/ })
  exactly(t, await json(['gates', 'resume', 'openai']), { paused_at: null })
  const { id } = await json('cues create a --cron @daily --worker --gate openai#x'.split(' '))
  exactly(t, await cli(['cues', 'get', id]), { out: /gate +openai#x/ })
  exactly(t, await cli(['gates', 'delete', 'openai']), { code: 1, err: new RegExp(`used by ${id}`) })
  await cli(['cues', 'delete', id])
  exactly(t, await cli(['gates', 'delete', 'openai']), { code: 0, out: 'Gate openai deleted\n' })
})

t.test('sets, lists, tests and deletes a channel, and routes and snoozes alerts', async t => {
  const { cli, json, pool } = await cliStage(t)
  const hook = await receiver(t)
  const set = 'channels set ops --type webhook --default --event alert.raised --event cue.created --tag a --no-enabled --target'.split(' ')
  exactly(t, await json([...set, hook.url]), {
    name: 'ops',
    target: /^http:\/\/127\.0\.0\.1:\d+\/\*{8}$/,
    types: ['alert.raised', 'cue.created'],
    tags: ['a'],
    default: true,
    enabled: false
  })
  exactly(t, await cli(['channels', 'list']), { code: 0, out: /ops +webhook +http/ })
  exactly(t, await cli(['channels', 'test', 'ops']), { code: 0, out: 'Sent: HTTP 200\n' })
  hook.answer({ status: 500 })
  exactly(t, await cli(['channels', 'test', 'ops']), { code: 1, err: /500/ })
  const cue = await json('cues create report --cron @daily --worker --alert-channel ops --alert-channel b'.split(' '))
  t.strictSame(cue.alerts.channels, ['ops', 'b'])
  exactly(t, await cli(['cues', 'get', cue.id]), { out: /alert channels +ops/ })
  t.strictSame((await json(['cues', 'update', cue.id, '--alert-channel', ''])).alerts.channels, [])
  const alert = await pool.query("select cue.raise_alert(c, 'missed_window', 'high', 'late', '{}') as id from cue.cues c where id = $1", [
    cue.id
  ])
  exactly(t, await cli(['alerts', 'snooze', alert.rows[0].id, '--until', '+2h']), { code: 0, out: /snoozed until 20/ })
  exactly(t, await cli(['channels', 'delete', 'ops']), { code: 0, out: 'Channel ops deleted\n' })
  exactly(t, await cli(['channels', 'list']), { code: 0, out: 'No channels.\n' })
})

t.test('creates, lists, shows, enables, tests and deletes an event endpoint, and shows a channel', async t => {
  const { cli, json } = await cliStage(t)
  const hook = await receiver(t)
  const cue = await json('cues create report --cron @daily --worker'.split(' '))
  const create = ['event-endpoints', 'create', hook.url, '--event', 'cue.*', '--event', 'alert.raised', '--cue', cue.id, '--tag', 'a']
  const { id, ...endpoint } = await json([...create, '--description', 'x'])
  exactly(t, endpoint, { url: hook.url, tag: 'a', cue_ids: [cue.id], description: 'x', secret: /^[0-9a-f]{64}$/, status: 'enabled' })
  exactly(t, await cli(['event-endpoints', 'list']), { code: 0, out: /http:\S+ +enabled +cue\.created/ })
  exactly(t, await cli(['event-endpoints', 'get', id]), { code: 0, out: /description +x/ })
  exactly(t, await json(['event-endpoints', 'enable', id]), { id, truncated: false })
  exactly(t, await json(['event-endpoints', 'enable', id, '--from', 'now']), { id, truncated: false })
  exactly(t, await cli(['event-endpoints', 'test', id]), { code: 0, out: 'Sent: HTTP 200\n' })
  exactly(t, await cli(['event-endpoints', 'delete', id]), { code: 0, out: `Event endpoint ${id} deleted\n` })
  exactly(t, await cli(['event-endpoints', 'get', id]), { code: 3 })
  exactly(t, await cli(['event-endpoints', 'list']), { code: 0, out: 'No event endpoints.\n' })
  await cli(['channels', 'set', 'ops', '--type', 'webhook', '--target', hook.url])
  exactly(t, await cli(['channels', 'get', 'ops']), { code: 0, out: /type +webhook/ })
})

t.test('rejects what is not an exclusion, and names the option that the service refuses', async t => {
  const { cli } = await cliStage(t)
  const preview = (...options: string[]) => cli(['preview', '@daily', ...options])
  exactly(t, await preview('--exclude', 'tomorrow'), { code: 2, err: /--exclude must be a date, JSON or FROM\/TO, not tomorrow/ })
  exactly(t, await preview('--exclude', '{'), { code: 2, err: /--exclude is not valid JSON/ })
  exactly(t, await preview('--window', '25h'), { code: 1, err: /--window[\s\S]*at most 24h/ })
  exactly(t, await preview('--exclude-calendar', 'none'), { code: 1, err: /calendar none not found/ })
  exactly(t, await cli(['calendars', 'put', 'x', '--range', 'a']), { code: 2, err: /--range must be FROM\/TO, not a/ })
  exactly(t, await cli(['calendars', 'put', 'x', '--date', '13-01']), { code: 1, err: /--date/ })
})

t.test("shows a cue's history by day", async t => {
  const { cli, json } = await cliStage(t)
  const cue = await json(['cues', 'create', 'report', '--cron', '0 9 * * *', '--worker'])
  exactly(t, await cli(['cues', 'history', cue.id]), { code: 0, out: /^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d, UTC\n\nNo executions\.\n$/ })
  await cli(['cues', 'fire', cue.id])
  exactly(t, await cli(['cues', 'history', cue.id]), { code: 0, out: /\n\d{4}-\d\d-\d\d +0 +0 +0 +1\n$/ })
  exactly(t, await json(['cues', 'history', cue.id, '--days', '2', '--until', '2026-01-02']), {
    from: '2026-01-01',
    until: '2026-01-02',
    days: []
  })
  exactly(t, await cli(['cues', 'history', cue.id, '--days', '367']), { code: 2 })
  exactly(t, await cli(['cues', 'history', cue.id, '--until', 'tomorrow']), { code: 1, err: /--until/ })
  exactly(t, await cli(['cues', 'history', 'cue_000000000000']), { code: 3 })
})

t.test('lists sessions and ends them', async t => {
  const { cli, json, post, account } = await cliStage(t)
  exactly(t, await cli(['sessions', 'list']), { code: 0, out: 'No sessions.\n' })
  for (let n = 0; n < 3; n++) await post('/v1/auth/browser-session', { api_key: account.api_key })
  const { sessions } = await json(['sessions', 'list', '--limit', '1'])
  exactly(t, await cli(['sessions', 'revoke', sessions[0].id]), { code: 0, out: `Session ${sessions[0].id} ended\n` })
  exactly(t, await cli(['sessions', 'revoke', sessions[0].id]), { code: 3 })
  exactly(t, await cli(['sessions', 'revoke', '--all']), { code: 0, out: '2 sessions ended\n' })
  exactly(t, await cli(['sessions', 'revoke']), { code: 2 })
})

t.test('previews the payload of a template, and creates, exports and changes it', async t => {
  const { cli, json } = await cliStage(t)
  const options = [
    '--cron',
    '0 9 * * *',
    '--key',
    'k',
    '--url',
    'http://127.0.0.1:5555/?n={{cue.name}}',
    '--header',
    'X-Day: {{scheduled_date}}',
    '--template'
  ]
  const request = ['report', ...options, '--payload', '{"key": "{{cue.key}}", "n": "{{previous.outcome.metadata.n}}"}']
  exactly(t, await cli(['cues', 'preview-payload', ...request]), {
    code: 0,
    out: /^http:\/\/127\.0\.0\.1:5555\/\?n=report\nX-Day: \d{4}-\d\d-\d\d\n\{\n {2}"key": "k",\n {2}"n": "value"\n\}\n$/
  })
  exactly(t, await cli(['cues', 'preview-payload', 'a', ...options, '--payload', '"{{x}}"']), {
    code: 1,
    err: /payload: .*\{\{x\}\} is not a known name/
  })
  exactly(t, await json(['cues', 'list']), { cues: [] })
  const { id } = await json(['cues', 'create', ...request])
  exactly(t, await cli(['cues', 'get', id]), { out: /template +true/ })
  t.match((await cli(['export'])).out, /\n +template: true\n/)
  exactly(t, await json(['cues', 'update', id, '--no-template']), { template: false })
  t.notMatch((await cli(['export'])).out, /template/)
})
