// Chains on the command line, in files and by the agents' tools.
import t from 'tap'
import { cliStage } from '../support/cli-stage.ts'
import { exactly } from '../support/exactly.ts'

t.test('creates cues that follow others, and shows the chain as a tree', async t => {
  const { cli, json } = await cliStage(t)
  const create = (name: string, options: string) => json(['cues', 'create', name, '--key', name, '--worker', ...options.split(' ')])
  await create('extract', '--every 24h')
  exactly(t, await create('transform', '--after extract --when verified --within 2h'), {
    schedule: null,
    after: { cues: ['extract'], when: 'verified', mode: 'all', within: '2h' }
  })
  exactly(t, await create('load', '--after extract'), { after: { when: 'success' } })
  exactly(t, await create('report', '--after transform --after load --mode any'), { after: { cues: ['transform', 'load'], mode: 'any' } })
  await create('weekly', '--every 7d --after load --wait 30m')
  exactly(t, await cli(['cues', 'chain', 'load']), {
    code: 0,
    out: ['extract  every 24h', '└─ load', '   ├─ report  after any of transform and load', '   └─ weekly  every 7d, after load', ''].join(
      '\n'
    )
  })
  exactly(t, await cli(['cues', 'chain', 'report']), {
    code: 0,
    out: [
      'extract  every 24h',
      '├─ load',
      '│  └─ report  after any of transform and load',
      '└─ transform  after extract is verified',
      '   └─ report  after any of transform and load  (above)',
      ''
    ].join('\n')
  })
  exactly(t, await json(['cues', 'chain', '--key', 'load']), {
    cue: 'load',
    cues: [{ key: 'load' }, { key: 'extract' }, { key: 'report' }, { key: 'weekly' }]
  })
  exactly(t, await cli(['cues', 'get', 'report']), { code: 0, out: /schedule +After any of transform and load\n/ })
  exactly(t, await cli(['cues', 'list']), { code: 0, out: /After extract is verified/ })
  exactly(t, await cli(['cues', 'update', 'extract', '--after', 'report']), {
    code: 1,
    err: /extract → transform → report → extract|extract → load → report → extract/
  })
})

t.test('counts a failed run as good enough', async t => {
  const { cli, json, post, fn, pool } = await cliStage(t)
  const extract = await json(['cues', 'create', 'extract', '--key', 'extract', '--worker', '--every', '24h'])
  await json(['cues', 'create', 'load', '--key', 'load', '--worker', '--after', 'extract'])
  const { id } = await post(`/v1/cues/${extract.id}/fire`)
  exactly(t, await cli(['executions', 'signal', id, '--reason', 'checked']), { code: 1, err: /has ended without success/ })
  const { claim_token } = await post(`/v1/executions/${id}/claim`, { worker_id: 'w' })
  await post(`/v1/executions/${id}/outcome`, { success: false }, { 'x-claim-token': claim_token })
  exactly(t, await cli(['executions', 'signal', id, '--reason', 'checked']), { code: 0, out: /counts for the cues/ })
  await fn.startFollowers({})
  const { rows } = await pool.query("select id from cue.executions where triggered_by = 'chain'")
  exactly(t, await json(['executions', 'get', rows[0].id]), {
    triggered_by: 'chain',
    parents: [{ cue_id: extract.id, cue_key: 'extract', execution_id: id }]
  })
  exactly(t, await json(['executions', 'list', '--trigger', 'chain']), { total: 1 })
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
