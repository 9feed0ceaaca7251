/** Work with cues, outcomes, alerts and errors. */
import { hourly, newAccount, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { pluck } from '../../support/exactly.ts'
import { receiver } from '../../support/receiver.ts'

test('a cue is edited after a look at what changes, paused with a reason, resumed and deleted', async t => {
  const { api_key, post, get } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'first name', payload: { n: 1 } })
  const page = await stage.open(t, { api_key, path: `/cues/${id}/edit` })
  t.ok(await page.getByRole('button', { name: 'Save' }).isDisabled(), 'nothing has changed')
  await page.getByLabel('Name').fill('second name')
  await page.getByLabel('Cron expression').fill('15 * * * *')
  t.same(await page.locator('.diff dt').allInnerTexts(), ['Name', 'Cron expression'])
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'second name' }).waitFor()
  const changed = await get(`/v1/cues/${id}`)
  t.same([changed.name, changed.schedule.cron, changed.payload, changed.version], ['second name', '15 * * * *', { n: 1 }, 2])

  await page.keyboard.press('p')
  await page.getByLabel('Reason (optional)').fill('maintenance')
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused. maintenance').waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No cues yet').waitFor()
  t.same(page.complaints, [])
})

test('an outcome is approved and another rejected, by keyboard', async t => {
  const { api_key, post, get } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'publish', payload: { task: 'publish' }, verification: { mode: 'manual' } })
  const ids: string[] = []
  for (const summary of ['older', 'newer']) {
    await post(`/v1/cues/${id}/fire`)
    const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
    await post(`/v1/executions/${execution_id}/outcome`, { success: true, summary }, { 'x-worker-id': 'w1' })
    ids.push(execution_id)
  }
  const page = await stage.open(t, { api_key, path: '/inbox' })
  await page.locator('.inbox-item[aria-current]').getByText('newer').waitFor()
  await page.getByLabel('Note').fill('as agreed')
  await page.getByRole('heading', { name: 'Verification inbox' }).click() // letters act outside of fields
  await page.keyboard.press('y')
  await page.locator('.inbox-item[aria-current]').getByText('older').waitFor()
  await page.keyboard.press('x')
  await page.getByLabel('Reason').fill('the wrong draft')
  await page.keyboard.press('Enter')
  await page.getByText('Nothing to verify').waitFor()
  const executions = await Promise.all(ids.map(id => get(`/v1/executions/${id}`)))
  t.same(pluck(executions, 'outcome_state'), ['verification_failed', 'verified_success'])
  t.same(pluck(pluck(executions, 'outcome'), 'verification_reason'), ['the wrong draft', 'as agreed'])
  t.same(page.complaints, [])
})

test('an alert is acknowledged on the first page', async t => {
  const { id: account_id, api_key, post, get } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'failing' })
  await stage.pool.query(
    `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at)
     values (gen_random_uuid(), $1, $2, 'missed_window', 'warning', 'no success for hours', now())`,
    [account_id, id]
  )
  const page = await stage.open(t, { api_key })
  await page.getByText('no success for hours').waitFor()
  await page.getByRole('button', { name: 'Acknowledge' }).click()
  await page.getByRole('heading', { name: 'All is well' }).waitFor()
  t.same(pluck((await get('/v1/alerts')).alerts, 'acknowledged'), [true])
  t.same(page.complaints, [])
})

test("an alert's messages are listed, and it is snoozed for a while, until the next morning, or any time", async t => {
  const { api_key, post, call, get } = await newAccount()
  const { url, requests } = await receiver(t)
  await call('PUT', '/v1/channels/ops', { type: 'webhook', target: url, default: true })
  const { id } = await post('/v1/cues', { ...hourly, name: 'failing', alerts: { consecutive_failures: 1 } })
  await post(`/v1/cues/${id}/fire`)
  const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(`/v1/executions/${execution_id}/outcome`, { success: false, error: 'no' }, { 'x-worker-id': 'w1' })
  await eventually(() => requests.length === 1)
  const page = await stage.open(t, { api_key, path: '/alerts', timezoneId: 'Asia/Tokyo' })
  await page.getByText('failing failed once').waitFor()
  await page.getByText('ops: alert sent').waitFor()
  const snoozedUntil = async () => (await get('/v1/alerts')).alerts[0].snoozed_until
  const snooze = async (choice: string, time?: string) => {
    await page.getByRole('button', { name: 'Snooze' }).click()
    await page.getByRole('radio', { name: choice }).check({ force: true })
    if (time) await page.getByLabel('Until', { exact: true }).fill(time)
    await page.getByRole('dialog').getByRole('button', { name: 'Snooze' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByText('snoozed until').waitFor()
    return snoozedUntil()
  }
  const hours = (Date.parse(await snooze('for an hour')) - Date.now()) / 3_600_000
  t.ok(hours > 0.9 && hours <= 1, `${hours} hours`)
  const morning = await snooze('until tomorrow 9:00, Asia/Tokyo')
  t.ok(morning.endsWith('T00:00:00.000Z') && Date.parse(morning) - Date.now() > 9 * 3_600_000, morning)
  t.equal(await snooze('until another time', '2040-01-15T09:30'), '2040-01-15T00:30:00.000Z')
  t.same(page.complaints, [])
})

test('failures are one error, to look at and to dismiss by keyboard', async t => {
  const { api_key, post, call, get } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'failing' })
  for (const n of [1, 2]) {
    await post(`/v1/cues/${id}/fire`)
    const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
    await call('POST', `/v1/executions/${execution_id}/outcome`, { success: false, error: `row ${n} is locked` }, { 'x-worker-id': 'w1' })
  }
  const page = await stage.open(t, { api_key, path: '/errors' })
  await page.getByText('1 error in 2 executions').waitFor()
  t.same(await page.locator('.errors td.number').allInnerTexts(), ['2', '1'])
  await page.getByRole('link', { name: 'row … is locked' }).click()
  await page.getByText('2 executions').waitFor()
  await page.goBack()
  await page.getByText('1 error in 2 executions').waitFor()
  await eventually(async () => {
    await page.keyboard.press('j') // which the page takes shortly after it is shown
    return (await page.locator('[data-row] a:focus').count()) === 1
  })
  await page.keyboard.press('d')
  await page.getByText('2 executions will no longer be listed as dead letters').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Dismiss' }).click()
  await page.getByText('completed').waitFor({ timeout: 60_000 })
  t.equal((await get('/v1/errors')).total, 0)
  t.same(page.complaints, [])
})
