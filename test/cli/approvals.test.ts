/** Approvals from the command line, by agents and by the client. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { createClient, PgcueError } from '../../src/client/index.ts'
import { cliStage } from '../support/cli-stage.ts'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'

const refund = ['cues', 'create', 'refund', '--key', 'refund', '--cron', '@yearly', '--worker', '--approval-message', 'Refund order 7?']

/** A service with a cue that has an approval, the account's default key, and a key that may approve. */
const stage = async (t: Test) => {
  const service = await cliStage(t)
  const approver = await service.addKey(service.account, ['read', 'write', 'approve'])
  await service.json(refund)
  const fire = async (): Promise<string> => (await service.json(['cues', 'fire', 'refund'])).id
  return { ...service, approver, asApprover: { env: { PGCUE_API_KEY: approver.api_key } }, fire }
}

t.test('lists what waits for approval, approves and rejects, with the scope', async t => {
  const { cli, json, fire, asApprover } = await stage(t)
  exactly(t, await cli(['approvals']), { code: 0, out: 'No approvals wait.\n' })
  const [id, other] = [await fire(), await fire()]
  const waiting = await json(['approvals'])
  exactly(t, waiting, { executions: [{ id: other }, { id, approval: { message: 'Refund order 7?', decision: null } }], total: 2 })
  const line = `${other} +refund +\\S+ +key:\\S+ +20\\S+Z +Refund order 7\\?\\n${id}`
  exactly(t, await cli(['approvals', '--cue', 'refund']), { code: 0, out: new RegExp(line) })
  exactly(t, await cli(['approvals', '--tag', 'none']), { code: 0, out: 'No approvals wait.\n' })
  exactly(t, await cli(['approve', id]), { code: 2, err: /lacks the required scope/ })
  exactly(t, await cli(['approve', id, '--reason', 'agreed'], asApprover), { code: 0, out: `Execution ${id} is approved\n` })
  exactly(t, await cli(['reject', id, '--reason', 'no'], asApprover), { code: 1, err: /was approved before/ })
  exactly(t, await cli(['reject', other], asApprover), { code: 1, err: /--reason/ })
  exactly(t, await json(['reject', other, '--reason', 'too much'], asApprover), { execution_id: other, decision: 'rejected' })
  exactly(t, await cli(['executions', 'get', other]), { code: 0, out: /status +failed[\s\S]*approval +rejected by key:\S+ \(too much\)/ })
  exactly(t, await cli(['executions', 'get', id]), { code: 0, out: /approval +approved by key:\S+ \(agreed\)/ })
})

t.test('prints what waits and then what is requested, each once, until interrupted', async t => {
  const { cli, fire, fn } = await stage(t)
  const first = await fire()
  const stopping = new AbortController()
  const lines: { id: string }[] = []
  const watching = cli(['approvals', '--watch', '--json'], {
    stopping: stopping.signal,
    onOutput: text => lines.push(JSON.parse(text))
  })
  await eventually(() => lines.length === 1)
  const second = await fire()
  await eventually(async () => {
    await fn.publishEvents({}) // also the request of the first one, which is printed already
    return lines.length === 2
  })
  stopping.abort()
  exactly(t, await watching, { code: 0 })
  t.same(pluck(lines, 'id'), [first, second])
  exactly(t, lines[1], { cue_name: 'refund', approval: { message: 'Refund order 7?', decision: null } })
})

t.test('an approval in a file is exported as it is, and not left out without the scope', async t => {
  const { cli } = await cliStage(t)
  const apply = (stdin: string) => cli(['apply', '-f', '-'], { stdin })
  const cue = '{key: a, name: a, cron: "@daily", worker: true, approval: {expires: null, message: ok?}}'
  exactly(t, await apply(`set: s\ncues: [${cue}]\n`), { code: 0, out: /1 created/ })
  const { out } = await cli(['export'])
  t.match(out, /approval:\n +expires: null\n +on_expiry: skip\n +message: ok\?\n/)
  exactly(t, await apply(out), { code: 0, out: /1 unchanged/ })
  exactly(t, await apply(out.replace('expires: null', 'expires: 2h')), { code: 0, out: /1 updated/ })
  exactly(t, await apply(out.replace(/ +approval:\n(?: {6}.*\n)+/, '')), { code: 1, err: /has an approval/ })
})

t.test('an agent sees approvals, and decides only with the scope', async t => {
  const { account, approver, baseUrl } = await stage(t)
  const connect = async (key: string) => {
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${key}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit }) as never)
    t.teardown(() => client.close())
    const { tools } = await client.listTools()
    const call = async (name: string, args: object = {}) => {
      const { content, isError } = await client.callTool({ name, arguments: args as Record<string, unknown> })
      const { text } = (content as { text: string }[])[0]!
      return isError ? { failed: text } : JSON.parse(text)
    }
    return { call, names: tools.map(({ name }) => name) }
  }
  const agent = await connect(account.api_key)
  const person = await connect(approver.api_key)
  t.same([agent.names.includes('decide_approval'), person.names.includes('decide_approval')], [false, true])
  const cue = await agent.call('create_cue', { name: 'pay', cron: '@yearly', approval: { message: 'Pay?', expires: '2h' } })
  exactly(t, cue, { approval: { message: 'Pay?', expires: '2h', on_expiry: 'skip' } })
  const { cue_id } = cue
  exactly(t, await agent.call('update_cue', { cue_id, approval: null }), { failed: /^approval_protected/ })
  exactly(t, await agent.call('update_cue', { cue_id, approval: { message: 'Pay 5?' } }), { approval: { message: 'Pay 5?' } })
  const { execution_id } = await agent.call('fire_cue', { cue_id })
  const { execution_id: other } = await agent.call('fire_cue', { cue_id })
  exactly(t, await agent.call('list_approvals', { cue_id }), {
    approvals: [{ execution_id: other }, { execution_id, cue_id, cue_name: 'pay', approval: { message: 'Pay 5?', requested_by: /^key:/ } }],
    total: 2
  })
  exactly(t, await agent.call('decide_approval', { execution_id, decision: 'approve' }), { failed: /^Tool decide_approval not found/ })
  exactly(t, await person.call('decide_approval', { execution_id, decision: 'approve' }), { execution_id, decision: 'approved' })
  exactly(t, await person.call('decide_approval', { execution_id: other, decision: 'reject' }), { failed: /^validation_error.*reason/ })
  const no = { execution_id: other, decision: 'reject', reason: 'not now' }
  exactly(t, await person.call('decide_approval', no), { decision: 'rejected', next_step: /get_execution/ })
  exactly(t, await person.call('decide_approval', no), { failed: /^already_decided/ })
  exactly(t, await agent.call('get_execution', { execution_id: other }), {
    status: 'failed',
    approval: { decision: 'rejected', reason: 'not now' }
  })
})

t.test('the client approves and rejects, and an error has the first decision', async t => {
  const { fire, approver, baseUrl } = await stage(t)
  const [id, other] = [await fire(), await fire()]
  const client = createClient({ baseUrl, apiKey: approver.api_key })
  const waiting = await client.executions.list({ held: 'approval' })
  t.same(pluck(waiting.executions, 'id'), [other, id])
  t.equal((await client.executions.approve(id)).decision, 'approved')
  t.equal((await client.executions.reject(other, { reason: 'no' })).decision, 'rejected')
  const error = await client.executions.approve(other).catch(error => error)
  t.ok(error instanceof PgcueError)
  t.equal(error.code, 'already_decided')
})
