/** `pgcue apply` and `pgcue export`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cliStage } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'

const yaml = `set: s
cues:
  - key: a
    name: Report
    schedule: {cron: 0 9 * * *, timezone: Europe/London}
    callback:
      url: https://example.com/\${HOOK}
      headers: {X-Token: "\${TOKEN}"}
    payload: {n: 12345678901234567890, one: 1.0, big: 1e16, whole: 10000000000000000, small: 0.00001, zero: -0.0, text: "$\${HOME}", list: [1, null, "\\u00fc"]}
    delivery: {timeout_seconds: 5}
    tags: [x]
  - {key: b, name: b, schedule: {every: 36h, anchor: 2030-01-01T00:00:00+01:00, ends_at: 2099-01-01T00:00:00Z, max_runs: 9}, worker: true, retry: {max_attempts: 5}}
---
{"key": "c", "name": "c", "at": "2099-01-01T00:00:00Z", "worker": true, "on_failure": {"email": false}, "alerts": {}}
`
const env = { HOOK: 'hook', TOKEN: 'secret' }

t.test('applies files, shows the differences, and exports what applies as unchanged', async t => {
  const { cli, config, get, call, pool } = await cliStage(t)
  const file = join(config, 'cues.yaml')
  writeFileSync(file, yaml)
  const files = ['apply', '-f', file, '--set', 's']
  exactly(t, await cli([...files, '--dry-run', '--exit-code'], { env }), {
    code: 6,
    out: '+ a\n+ b\n+ c\ns: 3 created, 0 updated, 0 unchanged, 0 pruned (dry run: nothing was changed)\n'
  })
  exactly(t, await get('/v1/cues'), { total: 0 })
  exactly(t, await cli([...files], { env }), { code: 0, out: /3 created/ })
  exactly(t, await cli([...files, '--exit-code', '--prune'], { env }), { code: 0, out: /0 created, 0 updated, 3 unchanged, 0 pruned/ })
  const { rows } = await pool.query("select payload, callback_url, callback_headers from cue.cues where key = 'a'")
  t.same(rows, [
    {
      payload:
        '{"big": 1e+16, "list": [1, null, "\\u00fc"], "n": 12345678901234567890, "one": 1.0, "small": 1e-05, "text": "\x24{HOME}", "whole": 10000000000000000, "zero": -0.0}',
      callback_url: 'https://example.com/hook',
      callback_headers: { 'X-Token': 'secret' }
    }
  ])

  const exported = await cli(['export', '--set', 's'])
  exactly(t, exported, { code: 0, err: '' })
  const copy = join(config, 'copy.yaml')
  writeFileSync(copy, exported.out)
  exactly(t, await cli(['apply', '-f', copy, '--prune', '--exit-code']), {
    code: 0,
    out: /^s: 0 created, 0 updated, 3 unchanged, 0 pruned\n$/
  })
  exactly(t, await cli(['apply', '-f', '-', '--exit-code'], { stdin: exported.out }), { code: 0 })
  const json = (await cli(['export', '--set', 's', '--json'])).out
  t.match(json, /"text": "\$\$\{HOME\}"/)
  exactly(
    t,
    await cli(['apply', '-f', '-', '--prune', '--exit-code'], { stdin: json.trim().slice(1, -1) }),
    { code: 0 },
    'the one set of the list'
  )
  t.match(exported.out, /X-Token: "?\*{8}/)
  t.notMatch(exported.out, /secret|max_attempts: 3|method/)
  exactly(t, await cli(['export', '--tag', 'x']), { out: /key: a/ })
  t.notMatch((await cli(['export', '--tag', 'x'])).out, /key: b/)

  const { id } = await get('/v1/cues/by-key/b')
  await call('POST', `/v1/cues/${id}/pause`, {})
  const paused = await cli(['export', '--set', 's'])
  t.equal(paused.out, exported.out.replace('max_attempts: 5\n', '$&    paused: true\n'))
  exactly(t, await cli(['apply', '-f', '-', '--exit-code'], { stdin: paused.out }), { code: 0 })
  await call('POST', `/v1/cues/${id}/resume`, {})
  await call('PATCH', `/v1/cues/${id}`, { name: 'drifted \u001b[2J' })
  const drift = await cli([...files, '--dry-run', '--exit-code'], { env, tty: true })
  t.equal(drift.code, 6)
  t.equal(
    drift.out,
    '\x1b[33m~ b\x1b[0m\n    name\n\x1b[31m    - "drifted \\u001b[2J"\x1b[0m\n\x1b[32m    + "b"\x1b[0m\ns: 0 created, 1 updated, 2 unchanged, 0 pruned (dry run: nothing was changed)\n'
  )
  writeFileSync(file, readFileSync(file, 'utf8').split('---')[0]!)
  exactly(t, JSON.parse((await cli([...files, '--prune', '--json'], { env })).out), {
    updated: [{ key: 'b', changes: { name: { to: 'b' } } }],
    pruned: ['c']
  })
  await call('POST', '/v1/cues', { name: 'without a key', cron: '@daily', worker: true })
  exactly(t, await cli(['export']), { code: 0, err: 'pgcue: left out 1 cues without a key; see --add-keys\n', out: /^set: s\n/ })
})

t.test('applies gates with the cues of any set, and exports those in use', async t => {
  const { cli } = await cliStage(t)
  const stdin = [
    'set: a\ncues: [{key: a, name: a, cron: "@daily", worker: true, gate: openai#one}]\n',
    'set: b\ngates: [{key: openai, rate: 60, per: 10s, budget: {limit: "1.50", unit: usd, per: day}}, {key: other}]\ncues: []\n'
  ].join('---\n')
  exactly(t, await cli(['apply', '-f', '-'], { stdin }), { code: 0, out: /^\+ gate openai\n\+ gate other\n\+ a\na: 1 created/ })
  const exported = (await cli(['export'])).out
  t.match(exported, /^set: a\ngates:\n {2}- key: openai\n {4}rate: 60\n {4}per: 10s\n {4}budget:/)
  t.notMatch(exported, /other|parallel|max_wait/)
  exactly(t, await cli(['apply', '-f', '-', '--exit-code'], { stdin: exported }), { code: 0, out: /1 unchanged/ })
  exactly(t, await cli(['apply', '-f', '-', '--exit-code'], { stdin: exported.replace('rate: 60', 'rate: 61') }), {
    code: 6,
    out: /^~ gate openai\n/
  })
})

t.test('prints an example that applies', async t => {
  const { cli } = await cliStage(t)
  const { out } = await cli(['apply', '--example'])
  exactly(t, await cli(['apply', '-f', '-'], { stdin: out }), {
    code: 0,
    out: /^\+ example\/report\n\+ example\/backup\n\+ example\/restore\nexample: 3 created/
  })
  exactly(t, await cli(['apply', '-f', '-', '--prune', '--exit-code'], { stdin: (await cli(['export'])).out }), { code: 0 })
})

t.test('gives keys made from their names to cues without one, after asking', async t => {
  const { cli, json, post } = await cliStage(t)
  for (const name of ['Täglicher Bericht!', 'täglicher  bericht', '日本', 'x'.repeat(255)])
    await post('/v1/cues', { name, cron: '@daily', worker: true })
  await post('/v1/cues', { name: 'other', key: 'cue', cron: '@daily', worker: true, tags: ['hidden'] })
  const add = ['export', '--add-keys']
  exactly(t, await cli(add), { code: 2, out: '', err: /give --yes/ })
  exactly(t, await cli(add, { tty: true, stdin: 'n\n' }), {
    code: 1,
    out: '',
    err: / {2}-> {2}taglicher-bericht-2\nGive these keys to 4 cues\? \[y\/N\] $|Give these keys/
  })
  const { code, out } = await cli([...add, '--yes'])
  t.equal(code, 0)
  const { cues } = await json(['cues', 'list'])
  t.same(cues.map(({ key }: { key: string }) => key).sort(), ['cue', 'cue-2', 'taglicher-bericht', 'taglicher-bericht-2', 'x'.repeat(200)])
  for (const { key } of cues) t.ok(out.includes(`key: ${key}\n`), key)
})

t.test('several sets are applied only if none is refused', async t => {
  const { cli, get } = await cliStage(t)
  const cue = (key: string, cron = '@daily') => `{key: ${key}, name: n, cron: "${cron}", worker: true}`
  const stdin = `set: s\ncues: [${cue('a')}]\n---\nset: t\ncues: [${cue('b', '61 * * * *')}]\n`
  exactly(t, await cli(['apply', '-f', '-'], { stdin }), { code: 1, err: /^pgcue: cues\.b\.schedule\.cron: / })
  exactly(t, await get('/v1/cues'), { total: 0 })
  exactly(t, await cli(['apply', '-f', '-'], { stdin: stdin.replace('61', '1') }), { code: 0, out: /^\+ a\ns: .*\n\+ b\nt: / })
  exactly(t, await cli(['apply', '-f', '-', '--set', 'u'], { stdin: cue('a') }), { code: 1, err: /belongs to the set s/ })
  exactly(t, await cli(['apply', '-f', '-', '--set', 'u', '--take-over'], { stdin: cue('a') }), {
    code: 0,
    out: /managed_by\n.*"s"\n.*"u"/
  })
})

t.test('a set comes after those whose cues its own follow', async t => {
  const { cli, json } = await cliStage(t)
  const follows = (key: string, parent: string) => `{key: ${key}, name: n, worker: true, after: {cues: [${parent}]}}`
  const start = '{key: a, name: n, cron: "@daily", worker: true}'
  const stdin = `set: s\ncues: [${follows('c', 'b')}]\n---\nset: t\ncues: [${start}]\n---\nset: u\ncues: [${follows('b', 'a')}, ${follows('d', 'b')}]\n`
  const out = /^\+ a\nt: 1 created.*\n\+ b\n\+ d\nu: 2 created.*\n\+ c\ns: 1 created.*\n$/
  exactly(t, await cli(['apply', '-f', '-', '--dry-run'], { stdin }), { code: 0, out })
  exactly(t, await json(['cues', 'list']), { total: 0 })
  exactly(t, await cli(['apply', '-f', '-'], { stdin }), { code: 0, out })
  exactly(t, await json(['cues', 'list']), { total: 4 })

  const circle = stdin.replace(start, follows('a', 'c'))
  exactly(t, await cli(['apply', '-f', '-'], { stdin: circle }), { code: 1, err: /cycle|follow/ })
  exactly(t, await cli(['apply', '-f', '-', '--set', 's'], { stdin: 'cues: [null, 7, {after: 1}, {after: {cues: 1}}]' }), {
    code: 1,
    err: /^pgcue: cues/
  })
})

t.test('refuses unusable files', async t => {
  const { cli } = await cliStage(t)
  const refused = async (stdin: string, err: RegExp, args: string[] = ['--set', 's']) =>
    exactly(t, await cli(['apply', '-f', '-', ...args], { stdin }), { code: 2, err })
  await refused('a: [', /^pgcue: -: /)
  await refused('', /no document/)
  await refused('7', /document 1: must be/)
  await refused('cues: 7', /cues must be a list/)
  await refused('{cues: [], prune: true}', /unknown field prune/)
  await refused('cues: []', /names no set; use --set/, [])
  await refused('{key: a, name: a, worker: true, payload: {n: 0x1F}}', /^pgcue: -: line 1: 0x1F would not be kept as written/)
  await refused('cron: */5 * * * *', /^pgcue: -: quote values that begin with \*: [^\n]* at line 1, column 11/)
  await refused('{key: a, name: "\x24{MISSING_ONE}"}', /environment variable MISSING_ONE is not set/)
  exactly(t, await cli(['apply', '-f', '/nowhere.yaml']), { code: 2, err: /ENOENT/ })
  exactly(t, await cli(['apply']), { code: 2, err: /missing option --file/ })
  exactly(t, await cli(['apply', '-f', '-', '-f', '-']), { code: 2, err: /standard input/ })
  exactly(t, await cli(['apply', '-f', '-', '--set', 's'], { stdin: '{key: a, name: a, croon: x, worker: true}' }), {
    code: 1,
    err: /cues\.a\.croon: Unknown field\. Allowed: name, schedule, /
  })
})
