/** Approvals in the dashboard: decided by keyboard, counted on every page, and shown with the execution and the cue; and the story of the guide. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { hourly, newAccount, screens, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { exactly, pluck } from '../../support/exactly.ts'
import { receiver } from '../../support/receiver.ts'

const refund = { ...hourly, name: 'refund', payload: { order: 7 }, approval: { expires: '2h', message: 'Refund order 7?' } }

/** An account with a key that may approve, and a cue with an approval. */
const withApprovals = async () => {
  const owner = await newAccount()
  const approver = await stage.addKey(owner, ['read', 'write', 'approve', 'account'])
  const { id: cue_id } = await owner.post('/v1/cues', refund)
  const fire = async (order: number): Promise<string> => (await owner.post(`/v1/cues/${cue_id}/fire`, { payload_override: { order } })).id
  return { ...owner, approver: approver.api_key, cue_id, fire }
}

test('a run is approved and another rejected, by keyboard, and their number is in the menu and the title', async t => {
  const { approver, fire, get } = await withApprovals()
  const ids = [await fire(7), await fire(8), await fire(9)]
  const page = await stage.open(t, { api_key: approver, path: '/approvals' })
  await page.getByLabel('payload').getByText('"order": 9').waitFor()
  await eventually(async () => (await page.title()) === '(3) Approvals – pgcue')
  await page.getByRole('link', { name: 'Approvals 3' }).waitFor()
  await page.keyboard.press('j')
  await page.getByLabel('payload').getByText('"order": 8').waitFor()
  await page.keyboard.press('a')
  await page.getByLabel('payload').getByText('"order": 7').waitFor()
  await page.keyboard.press('r')
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click()
  t.equal(await page.getByRole('dialog').count(), 1, 'a reason is required')
  await page.getByLabel('Reason').fill('paid twice')
  await page.keyboard.press('Enter')
  await eventually(async () => (await page.title()) === '(1) Approvals – pgcue')
  await page.getByLabel('payload').getByText('"order": 9').waitFor()
  await page.keyboard.press('a')
  await page.getByText('Nothing to approve').waitFor()
  await eventually(async () => (await page.title()) === 'Approvals – pgcue')
  const approvals = pluck(await Promise.all(ids.map(id => get(`/v1/executions/${id}`))), 'approval')
  t.same(pluck(approvals, 'decision'), ['rejected', 'approved', 'approved'])
  t.same(pluck(approvals, 'reason'), ['paid twice', null, null])
  t.same(page.complaints, [])
})

test('a request appears at once, and without the scope the page says why it has no buttons', async t => {
  const { api_key, fire } = await withApprovals()
  const page = await stage.open(t, { api_key, path: '/approvals' })
  await page.getByText('Nothing to approve').waitFor()
  await fire(7)
  await page.getByText('Deciding needs the scope approve.').waitFor()
  t.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)
  await page.keyboard.press('a')
  await page.keyboard.press('r')
  t.equal(await page.getByRole('dialog').count(), 0)
  await stage.visit(page, '')
  await page.getByText('One run waits for approval').waitFor()
  await page.getByRole('link', { name: 'Review' }).click()
  await page.getByText('Deciding needs the scope approve.').waitFor()
  await eventually(async () => (await page.title()) === '(1) Approvals – pgcue')
  t.same(page.complaints, [])
})

test('an execution shows its approval, who decided and why', async t => {
  const { approver, fire, cue_id } = await withApprovals()
  const id = await fire(7)
  const page = await stage.open(t, { api_key: approver, path: `/executions/${id}` })
  await page.getByText('Waiting for approval').waitFor()
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByLabel('Reason').fill('not in May')
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click()
  await page.getByText('rejected: not in May').waitFor()
  await page.locator('.step', { hasText: 'Rejected' }).getByText('not in May').waitFor()
  await page.getByText('Decided by').waitFor()
  t.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)
  await stage.visit(page, `/cues/${cue_id}`)
  await page.getByText('Refund order 7?').waitFor()
  t.same(page.complaints, [])
})

test("a cue's approval is set, changed and removed in its form, and links are turned off in the settings", async t => {
  const { approver, get, post } = await withApprovals()
  const { id } = await post('/v1/cues', { ...hourly, name: 'pay' })
  const page = await stage.open(t, { api_key: approver, path: `/cues/${id}/edit` })
  const save = async () => {
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'pay', exact: true }).waitFor()
    return (await get(`/v1/cues/${id}`)).approval
  }
  await page.getByText('Advanced: approval').click()
  await page.getByLabel('A person approves each run').check()
  await page.getByLabel('Message').fill('Pay?')
  t.same(await save(), { expires: '24h', on_expiry: 'skip', message: 'Pay?' })
  await page.goto(`${stage.dashboard}/cues/${id}/edit`)
  await page.getByLabel('Time to decide').fill('never')
  await page.getByLabel('Afterwards').selectOption('it runs')
  t.same(await save(), { expires: null, on_expiry: 'run', message: 'Pay?' })
  await page.goto(`${stage.dashboard}/cues/${id}/edit`)
  t.equal(await page.getByLabel('Time to decide').inputValue(), 'never')
  await page.getByLabel('A person approves each run').uncheck()
  t.equal(await save(), null)
  await stage.visit(page, '/settings')
  await page.getByLabel('The link in a message can approve and reject').uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  await eventually(async () => (await get('/v1/auth/me')).approvals_by_link === false)
  t.same(page.complaints, [])
})

test('an agent schedules a refund, a person approves it by the link on a phone, and the run reports its cost', async t => {
  const owner = await newAccount()
  const person = stage.as(await stage.addKey(owner, ['read', 'account', 'approve'], 'person'))
  await stage.pool.query('update cue.accounts set email_confirmed_at = now() where id = $1', [owner.id])
  const slack = await receiver(t)
  for (const [type, target] of [
    ['email', owner.email],
    ['slack', `${slack.url}hook`]
  ])
    exactly(t, await person.call('PUT', `/v1/channels/${type}`, { type, target, default: true }), { status: 201 })

  const key = await stage.addKey(owner, ['read', 'write', 'worker'], 'agent')
  const agent = new Client({ name: 'agent', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${key.api_key}` } }
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${stage.base}/mcp`), { requestInit }) as never)
  t.teardown(() => agent.close())
  const { tools } = await agent.listTools()
  t.notOk(pluck(tools, 'name').includes('decide_approval'))
  const call = async (name: string, args: object) => {
    const { content } = await agent.callTool({ name, arguments: args as Record<string, unknown> })
    const { text } = (content as { text: string }[])[0]!
    return text.startsWith('{') ? JSON.parse(text) : text
  }
  const message = 'Refund 50.00 for order 8?'
  const payload = { task: 'refund', order: 8 }
  const { cue_id } = await call('create_cue', { name: 'refund order 8', at: '+1s', payload, approval: { message } })
  const { execution_id } = await eventually(async () => (await call('list_approvals', {})).approvals[0])
  t.match(await call('update_cue', { cue_id, approval: null }), /^approval_protected/)
  exactly(t, await call('claim_next', { tasks: ['refund'] }), { claimed: false })

  const mails = () => stage.server.mails.filter(({ recipients }) => recipients.includes(owner.email))
  const link = await eventually(() =>
    mails()
      .flatMap(({ links }) => links)
      .find(link => link.includes('/approval?'))
  )
  await eventually(() => slack.requests.some(({ body }) => JSON.stringify(JSON.parse(body)).includes('/approval?token=')))
  const page = await stage.openPage(t, screens.phone)
  await page.goto(link)
  await page.getByText(message).waitFor()
  await page.getByText('"order": 8').waitFor()
  t.equal(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), false)
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('heading', { name: 'Approved' }).waitFor()

  const { claim_token, ...claim } = await call('claim_next', { tasks: ['refund'], wait: 20 })
  exactly(t, claim, { claimed: true, execution_id, payload })
  const report = { success: true, external_id: 're_1043', costs: [{ amount: '50.00', unit: 'eur' }] }
  exactly(t, await call('report_outcome', { execution_id, claim_token, ...report }), { outcome_recorded: true })
  exactly(t, await owner.get(`/v1/executions/${execution_id}`), {
    status: 'success',
    outcome: { external_id: 're_1043' },
    costs: [{ unit: 'eur' }],
    approval: { decision: 'approved', decided_by: 'link', decided_via: 'link', message }
  })
  const { events } = await owner.get('/v1/auth/audit')
  const about = events.filter(({ detail }: { detail: { cue_id?: string } }) => detail.cue_id === cue_id)
  t.same(pluck(about, 'event'), ['approval.decided', 'cue.created'])
  t.same(
    pluck(about, 'actor').map((actor: string) => actor.split(':')[0]),
    ['link', 'key']
  )
  const types = pluck((await owner.get(`/v1/events?after=start&cue_id=${cue_id}`)).events, 'type')
  t.same(types, ['cue.created', 'approval.requested', 'approval.decided', 'cue.completed'])
  t.same(page.complaints, [])
})
