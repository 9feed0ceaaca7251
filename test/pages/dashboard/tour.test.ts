/** One way through the dashboard, from an empty account on. */
import type { Test } from 'tap'
import { verifyWebhook } from '../../../src/client/webhook.ts'
import { type DashboardPage, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { exactly } from '../../support/exactly.ts'
import { receiver } from '../../support/receiver.ts'

type Tour = ReturnType<typeof stage.as> & { t: Test; page: DashboardPage; account_id: string; url: string } & Pick<
    Awaited<ReturnType<typeof receiver>>,
    'requests'
  >

const createAndFire = async ({ t, page, url, requests }: Tour) => {
  await page.getByRole('heading', { name: 'Welcome to pgcue' }).waitFor()
  await page.getByRole('link', { name: 'Create a cue' }).click()
  await page.getByLabel('Name').fill('hello')
  await page.getByLabel('Cron expression').fill('30 8 * * 1')
  await page.getByText(/^Mondays at 08:30/).waitFor()
  t.equal(await page.getByRole('list', { name: 'Next 8 runs' }).getByRole('listitem').count(), 8)
  await page.getByLabel('Cron expression').fill('*/20 * * * * *')
  await page
    .locator('.run-clock', { hasText: /:\d\d:[024]0$/ })
    .first()
    .waitFor()
  await page.getByLabel('Cron expression').fill('30 8 * * MOON')
  await page.getByText(/^No runs/).waitFor()
  await page.getByLabel('Key').fill('two words')
  await page.getByLabel('Callback URL').fill('ftp://example.com/hook')
  await page.getByText('Advanced: deadlines and retries').click()
  await page.getByLabel('Minutes between attempts').fill('soon')
  await page.getByText('Advanced: deadlines and retries').click()
  await page.getByRole('button', { name: 'Create the cue' }).click()
  for (const label of ['Cron expression', 'Key', 'Callback URL', 'Minutes between attempts'])
    await page.getByLabel(label).and(page.locator('[aria-invalid]')).waitFor()

  await page.getByLabel('Cron expression').fill('0 0 1 1 *')
  await page.getByLabel('Key').fill('')
  await page.getByLabel('Callback URL').fill('htp://x')
  await page.getByLabel('Minutes between attempts').fill('1')
  await page.getByLabel('Payload').fill('{"n": 12345678901234567890}')
  await page.getByRole('button', { name: 'Create the cue' }).click()
  await page.getByText('must start with https:// and include a host', { exact: true }).waitFor()
  await page.getByLabel('Callback URL').fill(`${url}hook`)
  await page.getByRole('button', { name: 'Create the cue' }).click()
  await page.getByRole('heading', { name: 'hello' }).waitFor()
  await page.getByText('No executions yet').waitFor()
  t.equal(await page.locator('pre', { hasText: '12345678901234567890' }).count(), 1, 'to the last digit')
  await page.getByRole('button', { name: 'Fire now' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Fire', exact: true }).click()
  await page.getByRole('link', { name: 'Show the execution' }).waitFor()
  await page.getByRole('table', { name: 'Executions' }).getByText('HTTP 200').waitFor()
  await page.getByText('1 of the latest 1').waitFor()
  const readAt = await page.evaluate<number[]>(
    "performance.getEntriesByType('resource').filter(({ name }) => /\\/cues\\/cue_\\w+$/.test(name)).map(({ startTime }) => startTime)"
  )
  t.ok(readAt.at(-1)! - readAt.at(-2)! < 5000, 'read again sooner than the usual 10 s')
  await page.getByRole('link', { name: 'execution of hello' }).click()
  await page.getByText('HTTP 200').first().waitFor()
  await page.getByRole('button', { name: 'Replay' }).click()
  await page.getByText('Replay of').waitFor()
  await eventually(() => requests.length === 2)
  t.same([...new Set(requests.map(({ body }) => body))], ['{"n": 12345678901234567890}'])
}

const repair = async ({ t, page, post, get, url, requests }: Tour) => {
  const { id } = await post('/v1/cues', { name: 'sync', cron: '0 * * * *', callback: { url: `${url}broken` }, retry: { max_attempts: 1 } })
  for (const _ of [1, 2]) await post(`/v1/cues/${id}/fire`)
  await eventually(async () => (await get('/v1/executions?dead=true')).total === 2)
  await stage.visit(page, '')
  await page.getByRole('link', { name: 'Show why' }).click()
  await page.getByText('The receiver itself failed').waitFor()
  await page.getByText('x-reason: maintenance').waitFor()
  await page.getByText('closed until noon').waitFor()
  await page.getByRole('link', { name: 'previous' }).click()
  await page.getByRole('link', { name: 'next' }).click()
  await page.getByRole('link', { name: 'previous' }).waitFor()

  await page.getByRole('button', { name: 'Other URL' }).click()
  await page.getByLabel('URL', { exact: true }).fill(`${url}fixed`)
  await page.getByRole('textbox', { name: 'Payload' }).fill('{"n": ')
  await page.getByText('not valid JSON').waitFor()
  await page.getByRole('textbox', { name: 'Payload' }).fill('{"n": 2}')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('status').getByText('HTTP 200').waitFor()
  t.same([requests.at(-1)!.path, requests.at(-1)!.body], ['/fixed', '{"n": 2}'])
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Edit the cue' }).click()
  await page.getByLabel('Callback URL').fill(`${url}fixed`)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Recent executions').waitFor()
  await page.getByRole('link', { name: 'Errors' }).first().click()
  await page.getByText('1 error in 2 executions').waitFor()
  await page.locator('tbody').getByRole('button', { name: 'Replay' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
  await page.getByText('completed').waitFor({ timeout: 60_000 })
  await page.getByRole('link', { name: 'Show the replays' }).click()
  await page.getByText('2 executions').waitFor()
  await eventually(async () => (await page.locator('tbody').getByText('success').count()) === 2)
  return id as string
}

const explainMissedSlots = async ({ page, account_id }: Tour, cue_id: string) => {
  await stage.pool.query(
    `insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason)
     values ($1, $2, now() - interval '2 hours', now() - interval '1 hour', 2, 'skip_missed', 'overlap')`,
    [cue_id, account_id]
  )
  await page.getByRole('link', { name: 'Cues', exact: true }).first().click()
  await page.getByRole('link', { name: 'sync' }).click()
  const slots = page.getByRole('table', { name: 'Slots that did not run' }).getByRole('row', { name: 'the previous run had not ended' })
  await slots.getByText('2 slots').waitFor()
}

const approve = async ({ t, page, post, get }: Tour) => {
  const { id } = await post('/v1/cues', { name: 'publish', cron: '0 * * * *', worker: true, verification: { mode: 'manual' } })
  await post(`/v1/cues/${id}/fire`)
  const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(`/v1/executions/${execution_id}/outcome`, { success: true, summary: 'a draft' }, { 'x-worker-id': 'w1' })
  await page.getByRole('link', { name: 'Verification inbox' }).click()
  await page.getByRole('heading', { name: 'publish' }).waitFor()
  await page.getByLabel('Note').fill('as agreed')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('Nothing to verify').waitFor()
  exactly(t, await get(`/v1/executions/${execution_id}`), {
    outcome_state: 'verified_success',
    outcome: { verification_reason: 'as agreed' }
  })
}

const rotate = async ({ t, page, post, get, requests }: Tour, cue_id: string) => {
  const { webhook_secret: old } = await get('/v1/auth/webhook-secret')
  await page.locator('.account').click()
  await page.getByRole('link', { name: 'Keys and secrets' }).click()
  await page.getByRole('listitem').filter({ hasText: 'Webhook secret' }).getByRole('button', { name: 'Rotate' }).click()
  await page.getByLabel('The old secret ends').selectOption('in an hour')
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  const shown = await page.getByRole('dialog', { name: 'New webhook secret' }).locator('pre').innerText()
  t.not(shown, old)
  const sent = requests.length
  await post(`/v1/cues/${cue_id}/fire`)
  const { body, headers } = await eventually(() => requests[sent])
  for (const secret of [old, shown]) exactly(t, await verifyWebhook(body, headers, secret), { cueId: cue_id })
}

test('from an empty account: create and fire; repair and replay; see why slots did not run; approve; rotate a secret', async t => {
  const account = await stage.register()
  const broken = { status: 503, headers: { 'x-reason': 'maintenance' }, body: 'closed until noon' }
  const { url, requests } = await receiver(t, ({ path }) => (path === '/broken' ? broken : {}))
  const page = await stage.open(t, { api_key: account.api_key })
  const tour = { ...stage.as(account), t, page, account_id: account.id, url, requests }
  await createAndFire(tour)
  const cue_id = await repair(tour)
  await explainMissedSlots(tour, cue_id)
  await approve(tour)
  await rotate(tour, cue_id)
  t.same(
    page.complaints.filter(line => !/4(00|22)/.test(line)),
    []
  )
})
