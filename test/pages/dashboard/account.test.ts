/** Pages of the account: calendars, past slots, keys, support. */
import { newAccount, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { exactly } from '../../support/exactly.ts'

test('a gate is created, shown, paused, resumed, changed and deleted', async t => {
  const { api_key, get, post, patch } = await newAccount()
  const page = await stage.open(t, { api_key, path: '/gates' })
  await page.getByRole('heading', { name: 'No gates' }).waitFor()
  await page.getByRole('button', { name: 'Create a gate' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Key').fill('openai')
  await dialog.getByLabel('Runs at once').fill('5')
  await dialog.getByLabel('Starts').fill('60')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText(/goes with rate/).waitFor()
  await dialog.getByLabel('in any interval of').fill('10s')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText('5 at once, 60 per 10s').waitFor()
  await page.getByRole('link', { name: 'openai' }).click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await dialog.getByLabel('Reason (optional)').fill('outage')
  await dialog.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('outage').waitFor()
  const cue = await post('/v1/cues', { name: 'summary', cron: '@yearly', worker: true, gate: 'openai' })
  await post(`/v1/cues/${cue.id}/fire`, {})
  await page.reload()
  await page.getByRole('table', { name: 'Waiting runs, the next first' }).getByText('summary').waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  await page.getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Runs at once').fill('')
  await dialog.getByLabel('Breaker: failures in a row').fill('3')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('60 per 10s, breaker after 3 failures').waitFor()
  exactly(t, await get('/v1/gates/openai'), {
    parallel: null,
    rate: 60,
    per: '10s',
    breaker: { failures: 3, open_seconds: 30 },
    paused_at: null
  })
  await patch(`/v1/cues/${cue.id}`, { gate: null })
  await page.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { name: 'No gates' }).waitFor()
})

test('a calendar is made of dates that are clicked, and deleted once no cue uses it', async t => {
  const { api_key, get, post, patch } = await newAccount()
  const page = await stage.open(t, { api_key, path: '/calendars' })
  await page.getByRole('heading', { name: 'No calendars' }).waitFor()
  await page.getByRole('link', { name: 'Create a calendar' }).click()
  await page.getByLabel('Name', { exact: true }).fill('days off')
  await page.getByRole('button', { name: 'Create the calendar' }).click()
  await page.getByRole('alert').first().waitFor()
  await page.getByLabel('Name', { exact: true }).fill('days/off')
  const day = page.getByRole('button', { name: /^17 / }).first()
  await day.click()
  t.equal(await day.getAttribute('aria-pressed'), 'true')
  const later = `${new Date().getUTCFullYear() + 2}-05-01`
  await page.getByLabel('Date', { exact: true }).fill(later)
  await page.getByRole('button', { name: 'Add', exact: true }).press('Enter')
  await page.getByRole('button', { name: 'Remove', exact: true }).waitFor()
  await page.getByLabel('New dates repeat every year').check()
  await page.getByRole('button', { name: /^25 December / }).click()
  await page.getByRole('button', { name: /^26 December / }).click()
  await page.getByRole('button', { name: /^26 December / }).click()
  await page.getByRole('button', { name: 'Add a time' }).click()
  await page.getByLabel('From (1)').fill('2030-12-24T12:00')
  await page.getByLabel('Until (1)').fill('2030-12-24T11:00')
  await page.getByRole('button', { name: 'Create the calendar' }).click()
  await page.getByRole('alert').first().waitFor()
  await page.getByLabel('Until (1)').fill('2030-12-25T00:00')
  await page.getByRole('button', { name: 'Create the calendar' }).click()
  await page.getByRole('heading', { name: 'days/off' }).waitFor()
  await page.getByText('No cue uses it.').waitFor()
  exactly(t, await get('/v1/calendars/days%2Foff'), {
    dates: ['12-25', /^\d{4}-\d\d-17$/, later],
    ranges: [{ from: '2030-12-24T12:00', to: '2030-12-25T00:00' }]
  })

  const { id } = await post('/v1/cues', {
    name: 'weekday report',
    worker: true,
    schedule: { cron: '0 9 * * *', exclude_calendars: ['days/off'] }
  })
  await page.getByRole('button', { name: 'Live' }).click()
  await page.reload()
  await page.getByRole('heading', { name: 'Used by 1 cue' }).waitFor()
  t.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0, 'the API would refuse')
  await page.getByRole('link', { name: 'weekday report' }).click()
  await page.getByRole('link', { name: 'days/off' }).click()
  await page.getByRole('heading', { name: 'Used by 1 cue' }).waitFor()
  await patch(`/v1/cues/${id}`, { schedule: { exclude_calendars: null } })
  await page.reload()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { name: 'No calendars' }).waitFor()
  t.same(
    page.complaints.filter(line => !line.includes('422')),
    []
  )
})

test("a cue's calendar shows the days that ran, failed or have gaps, and what is excluded next", async t => {
  const { id: account_id, api_key, post } = await newAccount()
  const { id } = await post('/v1/cues', {
    name: 'daily',
    worker: true,
    schedule: { cron: '0 9 * * *', exclude: [{ dates: ['12-25', '12-26'] }] }
  })
  await stage.pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, started_at, ended_at, created_at, updated_at)
     select cue.uuid_v7(at), $1, $2, 'webhook', status::cue.execution_status, 'schedule', at, '{}', at, at, at, at
       from (values (now() - interval '2 days', 'failed'), (now() - interval '3 days', 'success')) as x (at, status)`,
    [account_id, id]
  )
  await stage.pool.query(
    `insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason)
     values ($1, $2, now() - interval '5 days', now() - interval '4 days', 2, 'skip_missed', 'service_away')`,
    [id, account_id]
  )
  const page = await stage.open(t, { api_key, path: `/cues/${id}` })
  await page.getByText('1 succeeded, 1 failed, by day in UTC.').waitFor()
  await page.getByRole('cell', { name: 'the service was away', exact: true }).waitFor()
  t.equal(await page.locator('.months .day.gap').count(), 2)
  await page.getByRole('link', { name: /: 1 failed$/ }).click()
  await page.getByText('1 execution', { exact: true }).waitFor()
  t.match(new URL(page.url()).search, new RegExp(`^\\?cue_id=${id}&from=.+&to=`))
  await page.goBack()
  await page.getByRole('button', { name: 'Earlier' }).click()
  await page.getByText('No executions in these months').waitFor()
  await page.getByRole('button', { name: 'Later' }).click()
  await page.getByText('1 succeeded, 1 failed').waitFor()

  await stage.visit(page, `/cues/${id}/edit`)
  await page.getByLabel('Cron expression').fill('0 9 24-27 12 *')
  await page.locator('.preview .excluded').first().waitFor()
  t.same(
    await page
      .locator('.preview .excluded .run-day')
      .allInnerTexts()
      .then(texts => texts.slice(0, 2).map(text => text.replace(/^\w+ /, ''))),
    ['25 Dec', '26 Dec']
  )
  t.same(page.complaints, [])
})

test('keys are renamed and revoked', async t => {
  const { api_key, get, post } = await newAccount()
  await post('/v1/auth/keys', { label: 'first label', scopes: ['read'] })
  const page = await stage.open(t, { api_key, path: '/keys' })
  await page.getByRole('button', { name: 'Rename first label' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('second label')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Revoke second label' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await eventually(async () => (await page.getByRole('button', { name: /^Revoke/ }).count()) === 0)
  exactly(t, (await get('/v1/auth/keys')).keys[0], { label: 'second label', revoked_at: /Z$/ }, 'the last key stays')
  t.same(page.complaints, [])
})

test('a ticket is opened and read, where the API would accept it', async t => {
  const { id: account_id, api_key, get, post } = await newAccount()
  const page = await stage.open(t, { api_key, path: '/support' })
  const open = page.getByRole('button', { name: 'Open a ticket' })
  await page.getByText('Accounts can open tickets one hour after registration.').waitFor()
  t.ok(await open.isDisabled())
  await stage.pool.query("update cue.accounts set created_at = now() - interval '2 hours' where id = $1", [account_id])
  await page.reload()
  await page.getByText('A ticket requires an active cue.').waitFor()
  await post('/v1/cues', { name: 'a cue', cron: '0 * * * *', worker: true })
  await page.reload()
  await open.click()
  await page.getByLabel('Subject').fill('too short')
  await page.getByLabel('Message').fill('<b>Deliveries</b> stopped at noon, and I do not see why.')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('alert').first().waitFor()
  await page.getByLabel('Subject').fill('Deliveries stopped at noon')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('button', { name: 'Deliveries stopped at noon' }).click()
  await page.getByRole('dialog').getByText('<b>Deliveries</b> stopped at noon').waitFor()
  t.match(page.url(), /\?ticket=\d+$/)
  exactly(t, await get('/v1/support'), { tickets: [{ subject: 'Deliveries stopped at noon', severity: 'medium', type: 'bug' }] })
  t.same(
    page.complaints.filter(line => !line.includes('422')),
    []
  )
})
