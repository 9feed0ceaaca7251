/** `pgcue register`, `pgcue executions tail` and `pgcue completion`. */
import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { commands } from '../../src/cli/commands.ts'
import { run } from '../../src/cli/run.ts'
import { cliStage, pgcue } from '../support/cli-stage.ts'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { main } from '../support/worker-stage.ts'

t.test('register creates an account and stores its key', async t => {
  const { cli } = await cliStage(t)
  const env = { PGCUE_API_KEY: '' }
  const { code, out, err } = await cli(['register', 'new@example.com'], { env })
  t.same([code, err], [0, ''])
  t.match(out, /^Registered new@example\.com at http:\/\/127\.0\.0\.1:\d+, plan free; the key is in \S+credentials\.json\n$/)
  t.match((await cli(['whoami'], { env })).out, /new@example\.com/)

  const again = await cli(['register', 'other@example.com'], { env })
  t.same([again.code, /pgcue logout/.test(again.err)], [1, true], 'the stored key is not lost')
})

t.test('register rejects an invalid address and one in use', async t => {
  const { cli, account } = await cliStage(t)
  const env = { PGCUE_API_KEY: '' }
  exactly(t, await cli(['register', account.email], { env }), {
    code: 1,
    err: /^pgcue: An account with this email address already exists\. Sign in instead\.\n$/
  })
  const { code, err } = await cli(['register', 'nobody'], { env })
  t.same([code, err.startsWith('pgcue: EMAIL: ')], [1, true])
  exactly(t, await cli(['register'], { env }), { code: 2, err: /^pgcue: missing required argument 'EMAIL'\n/ })
})

t.test('tail prints existing executions, new ones and their changes until interrupted', async t => {
  const { env, post } = await cliStage(t)
  const { id } = await post('/v1/cues', { name: 'work', cron: '0 9 * * *', worker: true })
  const first = (await post(`/v1/cues/${id}/fire`)).id
  const stopping = new AbortController()
  const out: string[] = []
  const io = { env, stdin: (async function* () {})(), stdout: { write: (text: string) => out.push(text) }, stderr: { write: () => {} } }
  const ended = run(['executions', 'tail', '--interval', '1', '--json'], { ...io, stopping: stopping.signal, dying: stopping.signal })
  const printed = () => out.map(line => [JSON.parse(line).id, JSON.parse(line).status])
  await eventually(() => printed().length === 1)
  const second = (await post(`/v1/cues/${id}/fire`)).id
  await eventually(() => printed().length === 2)
  await post(`/v1/executions/${first}/claim`)
  await eventually(() => printed().length === 3)
  stopping.abort()
  t.equal(await ended, 0)
  t.same(printed(), [
    [first, 'pending'],
    [second, 'pending'],
    [first, 'delivering']
  ])
})

t.test('completes commands and options in bash', async t => {
  const { out } = await pgcue(['completion', 'bash'])
  const bin = t.testdir({ pgcue: `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n` })
  chmodSync(join(bin, 'pgcue'), 0o755)
  const complete = (...words: string[]) =>
    execFileSync('bash', ['-c', `${out}\nCOMP_WORDS=(pgcue "$@"); COMP_CWORD=$#; _pgcue; echo "\${COMPREPLY[@]}"`, 'bash', ...words], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}` }
    })
      .trim()
      .split(' ')
  t.same(complete('cu'), ['cues'])
  t.same(complete('cues', 'p'), ['put', 'pause', 'preview-payload'])
  t.same(complete('executions', ''), ['list', 'tail', 'get', 'replay', 'cancel', 'signal', 'dismiss', 'verify'])
  t.same(complete('cues', 'create', 'a name', '--cr'), ['--cron'])
  t.same(complete('login', '--e'), ['--email'])
  t.same(complete('nothing', ''), [''])
  t.same(complete('operator', 'r'), ['release'])
})

t.test('completes every command and option, in each shell', async t => {
  const after = async (...words: string[]) => (await pgcue(['completion', 'words', '--', ...words])).out.trim().split('\n')
  for (const [name, { load }] of commands) {
    const [first, second] = name.split(' ') as [string, string?]
    t.ok((await after()).includes(first), first)
    if (second) t.ok((await after(first)).includes(second), name)
    const { options = {} } = await load()
    const words = await after(...name.split(' '))
    for (const option of [...Object.keys(options), 'json', 'help']) t.ok(words.includes(`--${option}`), `${name} --${option}`)
  }
  for (const shell of ['bash', 'zsh', 'fish'])
    exactly(t, await pgcue(['completion', shell]), { code: 0, out: /pgcue completion words -- / })
  exactly(t, await pgcue(['completion', 'tcsh']), { code: 2, err: /choose bash, zsh or fish/ })
})
