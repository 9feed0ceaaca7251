/** Approvals in the dashboard: decided by keyboard, counted on every page, and shown with the execution and the cue. */
import { hourly, newAccount, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { pluck } from '../../support/exactly.ts'

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
  await page.getByText('Saved').waitFor()
  t.equal((await get('/v1/auth/me')).approvals_by_link, false)
  t.same(page.complaints, [])
})
