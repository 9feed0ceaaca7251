import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { readOutcomeFile, reportOf } from '../../src/cli/worker/outcome.ts'
import { readSettings } from '../../src/cli/worker/settings.ts'
import { exactly } from '../support/exactly.ts'
import { eventually } from '../support/setup.ts'
import { directory, isAlive, workerStage } from '../support/worker-stage.ts'

const ending = { code: 0, signal: null, failure: null, stdout: '', stderr: '' }
const nothing = { said: {}, broken: null, ignored: [] }

t.test('the outcome file becomes the evidence', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution({ verification: { mode: 'require_external_id' } })
  const said = {
    external_id: 'x1',
    result_url: 'https://example.com/1',
    summary: 's',
    metadata: { n: 1 },
    artifacts: ['a'],
    result: 'said'
  }
  const worker = run({ handler: [`job=echo written; echo '${JSON.stringify({ ...said, result_ref: 'r1' })}' > $SERVICE_OUTCOME_FILE`] })
  await worker.event('reported')
  await eventually(() => worker.state.reports.all().length === 0)
  exactly(t, await client.executions.get(id), { outcome_state: 'verified_success', outcome: { success: true, ...said, result_ref: 'r1' } })
})

t.test('an invalid outcome file is a failure with a reason, and is kept', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution()
  await run({ handler: [`job=echo '{"external_id": ' > $SERVICE_OUTCOME_FILE`] }).event('reported')
  const { status, outcome } = await client.executions.get(id)
  exactly(t, { status, outcome }, { status: 'failed', outcome: { success: false, error: /^invalid outcome file: it is not valid JSON/ } })
  t.equal(readFileSync(/kept as (\S+)/.exec(outcome!.error!)![1]!, 'utf8'), '{"external_id": \n')
})

t.test('an exit code other than 0 is a failure with the end of the output', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution()
  const script = 'job=echo out; i=0; while [ $i -lt 3000 ]; do echo "line $i é" >&2; i=$((i+1)); done; exit 3'
  await run({ handler: [script] }).event('reported')
  const { status, outcome } = await client.executions.get(id)
  exactly(
    t,
    { status, outcome },
    { status: 'failed', outcome: { success: false, result: 'out', error: /^exit code 3\n[\s\S]*line 2999 é$/ } }
  )
  t.equal(outcome!.error!.length, 2000)
})

t.test('kills a handler that times out with all its processes', async t => {
  const { client, dir, execution, run } = await workerStage(t)
  const id = await execution()
  const script = `(trap '' TERM; echo $(sh -c 'echo $PPID') >> ${dir.path('pids')}; while :; do sleep 0.1; done) & sleep 300 & echo $! >> ${dir.path('pids')}; wait`
  const worker = run({ handler: [`job=${script}`], timeout: '1' })
  const { pid } = await worker.event('started')
  const grandchildren = await eventually(() => {
    const pids = dir.read('pids').trim().split('\n').map(Number)
    return pids.length === 2 ? pids : undefined
  })
  await worker.event('reported')
  exactly(t, await client.executions.get(id), { status: 'failed', outcome: { error: 'timed out after 1 s' } })
  for (const one of [pid as number, ...grandchildren]) t.notOk(isAlive(one))
})

t.test('kills background processes when their handler ends', async t => {
  const { client, dir, execution, run } = await workerStage(t)
  const id = await execution()
  await run({ handler: [`job=sleep 300 & echo $! > ${dir.path('pid')}; echo done`] }).event('reported')
  exactly(t, await client.executions.get(id), { status: 'success', outcome: { result: 'done' } })
  t.notOk(isAlive(Number(dir.read('pid'))))
})

t.test('passes a payload of any size unchanged, including long numbers', async t => {
  const { client, dir, execution, run } = await workerStage(t)
  const members = `"task": "job", "n": 12345678901234567890123, "text": "${'x'.repeat(200_000)}"`
  const id = await execution({
    payload: JSON.parse(`{${members}}`, (_, value, context?: { source: string }) => numberAsWritten(value, context))
  })
  const script = `job=cat > ${dir.path('stdin')}; cp $SERVICE_PAYLOAD_FILE ${dir.path('file')}; echo "[$SERVICE_PAYLOAD]"`
  await run({ handler: [script] }).event('reported')
  exactly(t, await client.executions.get(id), { outcome: { result: '[]' } }, 'but not in the environment, which has no room for it')
  t.equal(dir.read('stdin'), `{"n":12345678901234567890123,"task":"job","text":"${'x'.repeat(200_000)}"}`)
  t.equal(dir.read('file'), dir.read('stdin'))
})
const numberAsWritten = (value: unknown, context?: { source: string }) =>
  typeof value === 'number' ? (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON(context!.source) : value

t.test('a command that cannot be started is a failure with the reason', async t => {
  const { client, dir, execution, run } = await workerStage(t)
  const [one, two] = [await execution(), await execution({ payload: { task: 'other' } })]
  const config = dir.write('worker.yaml', 'handlers: {job: {command: [no-such-program]}, other: {command: "true", cwd: nowhere}}')
  await run({ config }).event('reported', 2)
  exactly(t, await client.executions.get(one), { outcome: { error: /could not be started: spawn no-such-program ENOENT/ } })
  exactly(t, await client.executions.get(two), { outcome: { error: /could not be started: directory \S+nowhere not found$/ } })
})

t.test('a rejected report becomes a failure with the reason, and the original is kept', async t => {
  const { client, execution, run } = await workerStage(t)
  const id = await execution()
  const worker = run({ handler: [`job=echo '{"metadata": {"a": "\\\\ud800"}}' > $SERVICE_OUTCOME_FILE`] })
  await worker.event('report rejected')
  await worker.event('reported')
  exactly(t, await client.executions.get(id), { outcome: { success: false, error: /^report rejected/ } })
  exactly(t, worker.state.refused.all(), [{ held: { execution_id: id }, report: { success: true } }])
  t.same(worker.state.reports.all(), [])
})

t.test('refuses an outcome file that is not a JSON object, and ignores unknown members', async t => {
  const dir = directory(t)
  const file = dir.path('outcome.json')
  t.same(readOutcomeFile(file), nothing, 'there need not be one')
  for (const [text, broken] of [
    ['', /not valid JSON/],
    ['[1]', /not a JSON object/],
    ['null', /not a JSON object/],
    [' '.repeat(1_048_577), /1 MB/]
  ] as const) {
    writeFileSync(file, text)
    exactly(t, readOutcomeFile(file), { said: {}, broken }, `${text.slice(0, 40)} is broken`)
  }
  writeFileSync(file, Buffer.from([0x22, 0xff, 0x22]))
  exactly(t, readOutcomeFile(file), { broken: /\w/ }, 'invalid UTF-8 is rejected')
  writeFileSync(file, '{"external_id": "x", "result": null, "externalid": 1}')
  t.same(readOutcomeFile(file), { said: { external_id: 'x' }, broken: null, ignored: ['externalid'] })
})

t.test('builds the report from exit code, file and output', async t => {
  const report = (change: object, said = {}) => reportOf({ ...ending, ...change }, null, { ...nothing, said }, 'f').report
  t.same(report({ stdout: 'out', stderr: 'err' }), { success: true, result: 'out' })
  t.same(report({ stderr: 'err' }), { success: true, result: 'err' })
  t.same(report({}), { success: true })
  t.same(report({ stdout: 'out' }, { result: 'said', external_id: 'x' }), { success: true, result: 'said', external_id: 'x' })
  t.same(report({ code: 1, stdout: 'out' }), { success: false, error: 'exit code 1\nout' })
  t.same(report({ code: 1, stdout: 'out', stderr: 'err' }), { success: false, result: 'out', error: 'exit code 1\nerr' })
  t.same(report({ code: null, signal: 'SIGSEGV' }), { success: false, error: 'ended by SIGSEGV' })
  t.same(report({ code: 1 }, { success: true, error: 'said' }), { success: false, error: 'exit code 1\nsaid' }, 'the code counts')
  t.same(report({}, { success: false }), { success: false, error: 'the outcome file reports a failure' })
  t.same(report({}, { success: false, error: 'said' }), { success: false, error: 'said' })
  t.same(report({}, { success: 'yes', result: 1 }), { success: 'yes', result: 1 }, 'what is not an outcome is rejected by the service')
  t.same(report({ stdout: 'a\0b' }, { summary: 'x'.repeat(600) }), { success: true, result: 'a\ufffdb', summary: 'x'.repeat(500) })
  const cut = report({ stdout: `😀${'x'.repeat(1999)}` }).result!
  t.ok(cut.isWellFormed() && cut.length === 2000, 'no surrogate pair is split')
  exactly(t, reportOf(ending, 1500, nothing, 'f').report, { success: false, error: 'timed out after 1.5 s' })
  t.same(reportOf(ending, null, { ...nothing, said: { result_ref: 'r' } }, 'f').evidence, { result_ref: 'r' })
})

t.test('reads settings from a file, overridden by flags', async t => {
  const dir = directory(t)
  const file = `worker_id: w1
concurrency: 4
timeout: 600
handlers:
  report: ./report.sh
  mail: {command: [node, mail.js], timeout: 1.5, cwd: sub, env: {A: 1, N: 0123, V: 1.10, H: 0x1F, E: 1e16, T: True, Z: null, S: "0", X: }}`
  const config = dir.write('worker.yaml', file)
  const settings = readSettings({ config, concurrency: '2', handler: ['report=echo a=b'] }, { XDG_STATE_HOME: '/state' })
  exactly(t, settings, { workerId: 'w1', concurrency: 2, drainMs: 25_000, stateDir: '/state/pgcue/workers' })
  const env = { A: '1', N: '0123', V: '1.10', H: '0x1F', E: '1e16', T: 'True', Z: 'null', S: '0', X: '' }
  t.same(settings.handlers.get('mail'), { command: ['node', 'mail.js'], timeoutMs: 1500, cwd: dir.path('sub'), env })
  exactly(t, settings.handlers.get('report'), { command: 'echo a=b', timeoutMs: 600_000, cwd: process.cwd() })
  t.notOk(existsSync('/state'), 'and nothing is made yet')
})

t.test('rejects an invalid setting by name', async t => {
  const dir = directory(t)
  for (const [text, message] of [
    ['handlers: {a: b', /cannot be read/],
    ['[]', /not a mapping/],
    ['handler: {a: b}', /unknown setting handler/],
    ['handlers: {a: {cmd: b}}', /handlers.a: unknown setting cmd/],
    ['handlers: {a: {timeout: 5}}', /handlers.a needs a command/],
    ['handlers: {a: []}', /handlers.a needs a command/],
    ['handlers: {a: {command: b, timeout: soon}}', /handlers.a.timeout must be a number of seconds/],
    ['handlers: {a: {command: b, env: {X: []}}}', /handlers.a.env.X/],
    ['handlers:\n  a: {command: b, timeout: 0x1F}', /cannot be read: line 2: 0x1F/],
    ['handlers: {a: b}\n---\nhandlers: {a: b}', /must be one document/],
    ['concurrency: 0\nhandlers: {a: b}', /concurrency/],
    ['timeout: 100000\nhandlers: {a: b}', /timeout/],
    ['worker_id: 7\nhandlers: {a: b}', /worker-id/],
    ['worker_id: ""\nhandlers: {a: b}', /worker-id/],
    ['concurrency: 1', /no handlers/]
  ] as const) {
    const config = dir.write('worker.yaml', text)
    t.throws(() => readSettings({ config }, {}), { name: 'UsageError', message }, text)
  }
  t.throws(() => readSettings({ handler: ['a'] }, {}), { message: /TASK=COMMAND/ })
  t.throws(() => readSettings({ config: dir.path('none.yaml') }, {}), { message: /none\.yaml cannot be read/ })
})
