/** Chains through the command line, the client and MCP. */
import t from 'tap'
import { createClient } from '../../src/client/index.ts'
import { cliStage } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'

const etl = [
  'cues create Extract --key extract --cron @daily --worker --task extract',
  'cues create Transform --key transform --after extract --when end --within 2h --worker --task transform',
  'cues create Report --key report --after extract --after transform --worker --task report'
]

t.test('creates followers, changes them, and shows a chain as a tree', async t => {
  const { cli, json } = await cliStage(t)
  for (const line of etl) exactly(t, await cli(line.split(' ')), { code: 0 })
  exactly(t, await json(['cues', 'get', 'transform']), {
    schedule: null,
    after: { cues: ['extract'], when: 'end', mode: 'all', within: '2h' },
    followers: ['report']
  })
  exactly(t, await cli(['cues', 'get', 'transform']), {
    out: /schedule +After extract ends\nafter +extract ends, within 2h\n[\s\S]*followers +report/
  })
  exactly(t, await cli(['cues', 'list', '--key', 'transform']), { out: /transform +Transform +active +After extract ends/ })
  await cli('cues create Other --key other --cron @daily --worker'.split(' '))
  const tree = [
    'CUE            STATUS  SCHEDULE',
    'extract        active  @daily',
    '├─ report      active  After extract and transform',
    '└─ transform *  active  After extract ends',
    '   └─ report   active  After extract and transform'
  ]
  const { out } = await cli(['cues', 'chain', 'transform'])
  const cells = (line: string) => /^(.*?) {2,}(active|STATUS) +(.*?)( {2,}|$)/.exec(line)?.slice(1, 4)
  t.strictSame(out.trimEnd().split('\n').map(cells), tree.map(cells))
  const { cues } = await json(['cues', 'chain', 'report'])
  t.strictSame(cues.map(({ key }: { key: string }) => key).sort(), ['extract', 'report', 'transform'])
  t.strictSame((await json(['cues', 'chain', '--key', 'other'])).cues.length, 1)

  const waiting = ['cues', 'update', 'report', '--after', 'transform', '--mode', 'any', '--cron', '0 6 * * *', '--wait', '30m']
  exactly(t, await json(waiting), { after: { cues: ['transform'], mode: 'any', wait: '30m' }, schedule: { cron: '0 6 * * *' } })
  exactly(t, await cli(['cues', 'get', 'report']), { out: /after +transform, within 24h; slots wait 30m/ })
  exactly(t, await cli(['cues', 'update', 'report', '--after', '', '--wait', '5m']), { code: 2, err: /--after '' .*leave out --wait/ })
  exactly(t, await json(['cues', 'update', 'report', '--after', '']), { after: null })
  exactly(t, await cli(['cues', 'update', 'extract', '--after', 'transform']), { code: 1, err: /extract → transform → extract/ })
  exactly(t, await cli(['cues', 'update', 'transform', '--within', 'soon']), { code: 1, err: /--within/ })
  exactly(t, await cli(['cues', 'create', 'x', '--worker']), { code: 1, err: /--after/ })
  exactly(t, await cli(['cues', 'delete', 'extract']), { code: 1, err: /followed by transform/ })
})

t.test('signals the followers of a failed execution, which the chain shows', async t => {
  const { cli, json, fn, account, baseUrl } = await cliStage(t)
  for (const line of etl) await cli(line.replace('--when end', '--when success').split(' '))
  const client = createClient({ baseUrl, apiKey: account.api_key })
  const { id: fired } = await json(['cues', 'fire', 'extract'])
  const { claim_token: claimToken } = await client.executions.claim(fired, { worker_id: 'w' })
  exactly(t, await cli(['executions', 'signal', fired, '--reason', 'x']), { code: 1, err: /has ended without success/ })
  await client.executions.reportOutcome(fired, { success: false, error: 'disk full' }, { claimToken })
  exactly(t, await cli(['executions', 'signal', fired]), { code: 1, err: /--reason/ })
  exactly(t, await cli(['executions', 'signal', fired, '--reason', 'half is enough']), {
    code: 0,
    out: `Execution ${fired} counts for the followers of its cue\n`
  })
  exactly(t, await client.executions.signal(fired, { reason: 'again' }), { id: fired })
  exactly(t, await cli(['executions', 'get', fired]), { out: /CUE +STATUS +EXECUTION/ })
  await fn.startFollowers({})
  await fn.startFollowers({})
  const { executions } = await client.executions.list({ triggered_by: 'chain' })
  const [run] = executions
  exactly(t, executions, [{ cue_name: 'Transform', parents: [{ cue_key: 'extract', execution_id: fired }] }])
  exactly(t, (await client.executions.get(fired)).followers, [
    { cue_key: 'report', execution_id: null, status: null },
    { cue_key: 'transform', execution_id: run!.id, status: 'pending' }
  ])
  exactly(t, await cli(['executions', 'get', fired]), {
    out: new RegExp(`report +waiting for other signals +-\\ntransform +pending +${run!.id}`)
  })
  exactly(t, await cli(['executions', 'get', run!.id]), { out: new RegExp(`after +extract \\(${fired}\\)`) })
  exactly(t, await cli(['cues', 'get', 'report']), { out: new RegExp(`Signals for its next run\\nCUE .*\\nextract +${fired}`) })
  exactly(t, await cli(['cues', 'chain', 'report']), { out: /transform +active +After extract +- +pending/ })
})

t.test('a chain without keys is exported with those that --add-keys gives', async t => {
  const { cli, json } = await cliStage(t)
  const { id } = await json('cues create Extract --cron @daily --worker'.split(' '))
  await json(['cues', 'create', 'Transform', '--after', id, '--when', 'verified', '--worker'])
  exactly(t, await json(['export', '--add-keys', '--yes']), [
    { cues: [{ key: 'extract' }, { key: 'transform', after: { cues: ['extract'], when: 'verified' } }] }
  ])
  const { out } = await cli(['export'])
  exactly(t, await cli(['apply', '-f', '-', '--set', 's', '--take-over'], { stdin: out }), { code: 0 })
  exactly(t, await json(['export']), [{ set: 's', cues: [{}, { after: { cues: ['extract'] } }] }])
})

t.test('exported files create the same chain again', async t => {
  const { cli, json } = await cliStage(t)
  await json(['cues', 'create', 'a', '--key', 'a', '--worker', '--every', '24h'])
  await json(['cues', 'create', 'b', '--key', 'b', '--worker', '--after', 'a', '--within', '2h'])
  const { out } = await cli(['export'])
  t.match(out, /after:\n {6}cues:\n {8}- a\n {6}within: 2h\n/)
  await cli(['cues', 'delete', 'b', '--yes'])
  await cli(['cues', 'delete', 'b'])
  exactly(t, await cli(['apply', '-f', '-', '--set', 's'], { stdin: out }), { code: 0 })
  exactly(t, await json(['cues', 'get', 'b']), { schedule: null, after: { cues: ['a'], when: 'success', mode: 'all', within: '2h' } })
})
