/** The dashboard in a real browser: its main paths, by mouse and keyboard. */
import t, { type Test } from 'tap'
import { inspect, noBrowser } from '../support/browser.ts'
import { accountPages } from '../support/dashboard-account.ts'
import { operatorToken, screens, stageDashboard } from '../support/dashboard-stage.ts'
import { tourPages } from '../support/dashboard-tour.ts'
import { widthPages } from '../support/dashboard-widths.ts'
import { eventually } from '../support/eventually.ts'
import { pluck } from '../support/exactly.ts'

// Starts a browser and a service; run directly with node, a file would have only 30 seconds.

const stage = noBrowser ? (undefined as never) : await stageDashboard(t)
// Two tests run at a time, each with another account: they wait most of the time.
t.jobs = 2
const test = (name: string, body: (t: Test) => Promise<unknown>) => t.test(name, { skip: noBrowser, buffered: true }, body)

/** An account of its own for a test, with its calls. */
const newAccount = async () => {
  const account = await stage.register()
  return { ...account, ...stage.as(account) }
}
const hourly = { cron: '0 * * * *', worker: true }

test('a key opens a session, which the browser keeps without the key', async t => {
  const { openPage, dashboard } = stage
  const { api_key, email } = await newAccount()
  const page = await openPage(t)
  await page.goto(`${dashboard}/cues`)
  await page.getByLabel('API key', { exact: true }).last().fill('svc_sk_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('Invalid API key').waitFor()
  await page.getByLabel('API key', { exact: true }).last().fill(api_key)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Cues', exact: true }).waitFor()
  await page.getByRole('heading', { name: 'No cues yet' }).waitFor()
  t.notOk(/^0$/m.test(await page.locator('main').innerText()), 'no number without a name')
  t.ok(page.url().endsWith('/dashboard/cues'), 'on the page that was asked for')
  await page.getByText(email).first().waitFor()

  const kept = await page.evaluate<string>(
    'document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.documentElement.outerHTML'
  )
  t.notOk(kept.includes(api_key), 'no script can read the key')
  t.notOk(kept.includes('pgcue_session'), 'nor the session')
  await page.getByRole('button', { name: email }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
  t.same(
    page.complaints.filter(line => !line.includes('401')),
    []
  )
})

test('a link by mail signs in, on whichever device it is opened', async t => {
  const { openPage, dashboard, server, nobody } = stage
  const page = await openPage(t)
  await page.goto(dashboard)
  await page.getByRole('tab', { name: 'Email link' }).click()
  await page.getByLabel('Email address').fill('grace@example.com')
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
  const mail = await eventually(() => server.mails.find(({ recipients }) => recipients.includes('grace@example.com')))
  const link = new URL(mail.links[0]!)
  const code = link.searchParams.get('device_code')!
  await page.getByText(code).waitFor()
  await nobody.call('POST', '/v1/auth/verify', new URLSearchParams(link.searchParams).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'text/html'
  })
  await page.getByRole('heading', { name: 'Your account is ready' }).waitFor()
  await page.getByText(/^svc_sk_/).waitFor()
  await page.getByRole('button', { name: 'Open the dashboard' }).click()
  await page.getByRole('heading', { name: 'Welcome to pgcue' }).waitFor()
  t.same(
    page.complaints.filter(line => !line.includes('401')),
    []
  )
})

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

test('the keyboard searches, moves, opens and helps', async t => {
  const { api_key, post } = await newAccount()
  for (const name of ['alpha', 'beta', 'gamma']) await post('/v1/cues', { ...hourly, name, tags: name === 'beta' ? ['greek'] : [] })
  const page = await stage.open(t, { api_key, path: '/cues' })
  const names = () => page.locator('tbody .name').allInnerTexts()
  await page.getByText('3 cues').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('GREEK')
  await page.getByText('1 cue', { exact: true }).waitFor()
  t.same(await names(), ['beta'])
  t.ok(page.url().endsWith('?search=GREEK'), 'the address has the filter')
  await page.reload()
  await page.getByText('1 cue', { exact: true }).waitFor()
  await page.goto(`${stage.dashboard}/cues`)
  await page.getByText('3 cues').waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('k')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'beta' }).waitFor()
  await page.goBack()
  await page.getByText('3 cues').waitFor()
  await page.getByRole('link', { name: 'beta' }).focus()
  await page.keyboard.press('p')
  await page.getByText('beta: paused').waitFor()
  await page.getByRole('button', { name: 'Resume beta' }).click()
  await page.getByText('beta: resumed').waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Next row').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Command palette' }).waitFor()
  await page.keyboard.type('alph')
  await page.getByRole('option', { name: 'alpha' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'alpha' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('pause gam')
  await page.getByRole('option', { name: 'pause gamma' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByText('gamma: paused').waitFor()
  await page.getByRole('link', { name: 'Duplicate' }).click()
  await page.getByLabel('Name').waitFor()
  t.equal(await page.getByLabel('Name').inputValue(), 'alpha (copy)')
  t.same(page.complaints, [])
})

test('lists are sorted, and filtered by a tag that is typed or clicked, in the address', async t => {
  const { api_key, post } = await newAccount()
  for (const name of ['beta', 'gamma', 'alpha']) await post('/v1/cues', { ...hourly, name, tags: name === 'beta' ? ['greek'] : ['other'] })
  const page = await stage.open(t, { api_key, path: '/cues' })
  const names = () => page.locator('tbody .name').allInnerTexts()
  await page.getByText('3 cues').waitFor()
  t.same(await names(), ['alpha', 'gamma', 'beta'])
  await page.getByLabel('Newest first').selectOption('By name')
  await eventually(async () => String(await names()) === 'alpha,beta,gamma')
  await page.reload()
  await page.getByText('3 cues').waitFor()
  t.same(await names(), ['alpha', 'beta', 'gamma'], 'a bookmark keeps it')
  await page.getByLabel('Tag', { exact: true }).focus()
  await page.locator('datalist option').nth(1).waitFor({ state: 'attached' })
  t.same(await page.locator('datalist option').evaluateAll(options => options.map(option => option.getAttribute('value'))), [
    'greek',
    'other'
  ])
  await page.keyboard.type('other')
  await page.keyboard.press('Enter')
  await page.getByText('2 cues').waitFor()
  t.ok(page.url().endsWith('?sort=name&tag=other'))
  await stage.visit(page, '/cues')
  await page.getByRole('link', { name: 'greek' }).click()
  await page.getByText('1 cue', { exact: true }).waitFor()
  t.equal(await page.getByLabel('Tag', { exact: true }).inputValue(), 'greek')
  t.same(page.complaints, [])
})

test('long lists have pages, and totals beyond 1,000 are not counted', async t => {
  const { id: account_id, api_key, post } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'many' })
  await stage.pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, last_attempt_at,
            delivered_at, ended_at, created_at, updated_at)
     select cue.uuid_v7(at), $1, $2, 'webhook', 'success', 'schedule', at, '{}', 2, at - interval '1 minute', at, at + interval '400 ms', at, at, at
       from generate_series(now() - interval '1010 seconds', now() - interval '1 second', interval '1 second') as at`,
    [account_id, id]
  )
  const page = await stage.open(t, { api_key, path: '/executions' })
  await page.getByText('1,000+ executions').waitFor()
  await page.getByRole('img', { name: /^Executions since/ }).waitFor()
  t.same(await page.getByRole('navigation', { name: 'Status' }).getByRole('button').allInnerTexts(), ['all 1,010', 'success 1,010'])
  t.equal(await page.locator('tbody tr').count(), 50)
  t.equal(await page.locator('td.number').nth(1).textContent(), '400 ms *, the last of 2 attempts; 1 min in total')
  await page.setViewportSize({ width: 1440, height: 900 })
  const visible = "[...document.querySelectorAll('tbody tr')].filter(row => row.getBoundingClientRect().bottom <= innerHeight).length"
  t.ok((await page.evaluate<number>(visible)) >= 16, 'at least 16 rows without scrolling')
  await page.setViewportSize({ width: 1280, height: 720 })
  const menu = "(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)(document.querySelector('.side .menu'))"
  t.equal(await page.evaluate(menu), false, 'nor does the menu scroll')
  const first = await page.locator('tbody a').first().getAttribute('href')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.waitForURL(/cursor=/)
  await eventually(async () => (await page.locator('tbody a').first().getAttribute('href')) !== first)
  await page.getByRole('button', { name: 'Previous' }).click()
  await eventually(async () => (await page.locator('tbody a').first().getAttribute('href')) === first)
  t.same(page.complaints, [])
})

test('everything that matches is paused by one operation, after a look at what it does', async t => {
  const { id: account_id, api_key, post, get } = await newAccount()
  await stage.pool.query(
    `with c as (insert into cue.cues (id, account_id, name, key, transport, schedule_type, cron, payload)
                select cue.new_cue_id(), $1, 'cue ' || n, 'many/' || n, 'worker', 'recurring', '0 * * * *', '{}' from generate_series(1, 1000) n
                returning id, account_id)
     insert into cue.cue_runs (cue_id, account_id, transport, next_run)
     select id, account_id, 'worker', date_trunc('hour', now()) + interval '1 hour' from c`,
    [account_id]
  )
  await post('/v1/cues', { ...hourly, name: 'another' })
  const page = await stage.open(t, { api_key, path: '/cues?search=many' })
  await page.getByText('1,000 cues').waitFor()
  await page.locator('tbody input').first().check()
  await page.getByText('1 cue selected').waitFor()
  await page.getByLabel('Select all on this page').check()
  await page.getByText('50 cues selected').waitFor()
  await page.getByRole('button', { name: 'Select everything that matches (1,000)' }).click()
  await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Pause' }).click()
  await page.getByText('1,000 cues will be paused').waitFor()
  await page.getByText('and 990 more').waitFor()
  await page.getByLabel('Reason (optional)').fill('maintenance')
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('heading', { name: 'Pause: 1,000 targets' }).waitFor()
  await page.getByText('completed').waitFor({ timeout: 150_000 })
  const paused = await get('/v1/cues?status=paused&limit=1')
  t.same([paused.total, paused.cues[0].pause_reason], [1000, 'maintenance'])
  t.equal((await get('/v1/cues?status=active')).total, 1)
  await page.getByRole('link', { name: 'Operations' }).last().click()
  await page.getByRole('link', { name: 'Pause: 1,000 targets' }).waitFor()
  t.same(page.complaints, [])
})

test('a read-only session shows no action that would be refused', async t => {
  const { post } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'to read' })
  const { api_key } = await post('/v1/auth/keys', { label: 'reader', scopes: ['read'] })
  const page = await stage.open(t, { api_key, path: `/cues/${id}` })
  await page.getByRole('heading', { name: 'to read' }).waitFor()
  for (const name of ['Fire now', 'Pause', 'Edit', 'Delete'])
    t.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name)
  for (const path of ['/cues/new', `/cues/${id}/edit`, '/calendars/new', '/calendars/x/edit', '/keys', '/sessions', '/audit', '/support']) {
    await stage.visit(page, path)
    await page.getByText('Not allowed in this session').waitFor()
  }
  await page.goto(`${stage.dashboard}/cues`)
  await page.getByText('1 cue', { exact: true }).waitFor()
  t.equal(await page.getByText('Create a cue').count(), 0)
  const refused = await page.evaluate<number>(
    "fetch('/v1/cues', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then(a => a.status)"
  )
  t.equal(refused, 403, 'the API itself refuses')
  t.same(
    page.complaints.filter(line => !line.includes('403')),
    []
  )
})

test("the operator's page asks for the token, and keeps it from scripts", async t => {
  const { id, email, api_key, post } = await newAccount()
  const { id: cue_id } = await post('/v1/cues', { ...hourly, name: 'paused' })
  await post(`/v1/cues/${cue_id}/pause`, { reason: 'a reason' })
  for (const [screen, options] of Object.entries(screens)) {
    const page = await stage.open(t, { api_key, path: '/operator', ...options })
    await page.getByLabel('Operator token').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByText('Wrong operator token.').waitFor()
    t.same(await inspect(page, screen === 'phone' ? 44 : 24), [], `locked, on ${screen}`)
    await page.getByLabel('Operator token').fill(operatorToken)
    await page.keyboard.press('Enter')
    const engines = page.getByRole('table', { name: 'Engines' })
    await engines.getByText('live', { exact: true }).waitFor()
    const share = engines.locator('td.number').first()
    t.equal(await share.innerText(), '100%', 'of the only engine')
    const label = await page.evaluate("getComputedStyle(document.querySelector('td.number'), '::before').content")
    t.equal(label, screen === 'phone' ? '"Share "' : 'none', 'lists on phones name their values')
    if (screen === 'phone')
      t.ok(await page.evaluate('document.documentElement.scrollHeight <= 3 * innerHeight'), 'at most three screens on a phone')
    await page.getByLabel('Reason').fill('a bad night')
    await page.getByLabel('Only this account').fill(id)
    await page.getByRole('button', { name: 'Hold' }).click()
    await page.getByText('a bad night').waitFor()
    t.same(await inspect(page, screen === 'phone' ? 44 : 24), [], `held, on ${screen}`)
    await page.getByRole('button', { name: `Release ${email}` }).click()
    await page.getByText('a bad night').waitFor({ state: 'detached' })
    await page.getByLabel('Question').selectOption('forecast')
    await page.getByRole('button', { name: 'Answer' }).click()
    const forecast = page.getByRole('table', { name: 'What fires in the next hour?' })
    await forecast.waitFor()
    t.equal(await forecast.locator('tbody tr').count(), 60)
    await page.getByLabel('Question').selectOption('late')
    await page.getByLabel('Cue', { exact: true }).fill(cue_id)
    await page.getByRole('button', { name: 'Answer' }).click()
    await page.getByText('user: a reason').waitFor()
    t.equal(await page.getByRole('link', { name: 'Operator' }).count(), screen === 'phone' ? 0 : 1, 'in the menu')
    t.same(await inspect(page, screen === 'phone' ? 44 : 24), [], `on ${screen}`)
    t.equal(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), false, 'does not scroll sideways')
    t.notOk((await page.evaluate<string>('document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })')).includes('operator'))
    t.same(
      page.complaints.filter(line => !/40[13]/.test(line)),
      []
    )
  }
})

test("another account's cue looks like one that does not exist", async t => {
  const owner = await newAccount()
  const { id } = await owner.post('/v1/cues', { ...hourly, name: 'confidential' })
  const { execution_id } = await owner.post(`/v1/cues/${id}/fire`).then(({ id: execution_id }: { id: string }) => ({ execution_id }))
  const { api_key } = await newAccount()
  const page = await stage.open(t, { api_key, path: `/cues/${id}` })
  await page.getByText('Cue not found in this account.').waitFor()
  await page.goto(`${stage.dashboard}/executions/${execution_id}`)
  await page.getByText('Execution not found in this account.').waitFor()
  t.notOk((await page.content()).includes('confidential'))
})

test('hostile text is shown as text, on every page', async t => {
  const { api_key, post, call } = await newAccount()
  const evil = `"'><img src=x onerror=alert(1)><script>alert(2)</script>\u202e\u0007&lt;${'W'.repeat(120)}`
  const { id } = await post('/v1/cues', {
    ...hourly,
    name: evil,
    description: evil,
    tags: [evil.slice(0, 60)],
    payload: { task: evil.slice(0, 200), [evil]: evil },
    verification: { mode: 'manual' }
  })
  await post(`/v1/cues/${id}/fire`)
  const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(
    `/v1/executions/${execution_id}/outcome`,
    {
      success: true,
      summary: evil,
      result: evil,
      external_id: evil,
      result_url: 'javascript:alert(3)',
      artifacts: [{ name: evil }],
      metadata: { [evil]: evil }
    },
    { 'x-worker-id': 'w1' }
  )
  await post(`/v1/cues/${id}/fire`)
  const failed = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(`/v1/executions/${failed.execution_id}/outcome`, { success: false, error: evil }, { 'x-worker-id': 'w1' })
  await post('/v1/worker/heartbeat', { worker_id: evil, handlers: [evil.slice(0, 200)] })
  await post('/v1/auth/keys', { label: evil.slice(0, 100) })
  await call('POST', `/v1/cues/${id}/pause`, { reason: evil })
  await call('PUT', '/v1/calendars/evil', { description: evil })
  await stage.onEachScreen(t, api_key, async (page, screen) => {
    page.on('dialog', dialog => t.fail(`a dialog: ${dialog.message()}`))
    for (const path of [
      '',
      '/cues',
      `/cues/${id}`,
      `/cues/${id}/edit`,
      '/executions',
      `/executions/${execution_id}`,
      '/inbox',
      '/errors',
      '/destinations',
      '/workers',
      '/calendars',
      '/calendars/evil',
      '/calendars/evil/edit',
      '/keys',
      '/sessions',
      '/audit',
      `/cues?search=${encodeURIComponent(evil)}`
    ]) {
      await stage.visit(page, path)
      t.equal(await page.locator('main img, main script, a[href^="javascript"]').count(), 0, path)
      const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
      t.equal(isWide, false, `${path || '/'} does not scroll sideways on ${screen}`)
    }
    t.same(page.complaints, [])
  })
})

test('the page says when the service is gone, and goes on when it is back', async t => {
  const { api_key, post } = await newAccount()
  await post('/v1/cues', { ...hourly, name: 'steady' })
  const page = await stage.open(t, { api_key, path: '/cues' })
  await page.getByRole('link', { name: 'steady' }).waitFor()
  await page.route('**/v1/**', route => route.abort())
  await page.getByRole('button', { name: 'Live' }).click()
  await page.getByText('The service is not responding.').waitFor()
  t.equal(await page.getByRole('link', { name: 'steady' }).count(), 1, 'what was read stays')
  await page.unroute('**/v1/**')
  await page.getByText('The service is not responding.').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Live' }).waitFor()
})

test('a hidden tab reads nothing', async t => {
  const { api_key } = await newAccount()
  const page = await stage.open(t, { api_key, path: '/executions' })
  await page.clock.install()
  await page.reload()
  await page.getByText('Nothing has run yet').waitFor()
  const reads: string[] = []
  page.on('request', request => void reads.push(new URL(request.url()).pathname))
  await page.clock.runFor(60_000)
  t.same([...new Set(reads)].sort(), ['/v1/executions', '/v1/overview'])
  await page.evaluate("Object.defineProperty(document, 'hidden', { value: true }); document.dispatchEvent(new Event('visibilitychange'))")
  await page.clock.runFor(1000)
  reads.length = 0
  await page.clock.runFor(60_000)
  t.same(reads, [])
})

test('pages are accessible, on a desktop and on a phone', async t => {
  const { api_key, post, call } = await newAccount()
  const { id } = await post('/v1/cues', {
    ...hourly,
    name: 'report',
    key: 'a/report',
    tags: ['one'],
    payload: { task: 'report' },
    verification: { mode: 'manual' }
  })
  for (let n = 0; n < 3; n++) await post(`/v1/cues/${id}/fire`)
  const failed = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(`/v1/executions/${failed.execution_id}/outcome`, { success: false, error: 'out of paper' }, { 'x-worker-id': 'w1' })
  const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
  await post(`/v1/executions/${execution_id}/outcome`, { success: true, summary: 'done' }, { 'x-worker-id': 'w1' })
  await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: ['report'] })
  await call('PUT', '/v1/calendars/holidays', { dates: ['12-25'], ranges: [{ from: '2030-01-01T12:00', to: '2030-01-02T00:00' }] })
  await stage.onEachScreen(t, api_key, async (page, screen) => {
    for (const path of [
      '',
      '/cues',
      '/cues?search=nothing',
      `/cues/${id}`,
      `/cues/${id}/edit`,
      '/cues/new',
      '/executions',
      `/executions/${execution_id}`,
      '/inbox',
      '/errors',
      '/destinations',
      '/workers',
      '/alerts',
      '/operations',
      '/calendars',
      '/calendars/holidays',
      '/calendars/holidays/edit',
      '/keys',
      '/sessions',
      '/usage',
      '/audit',
      '/settings',
      '/support',
      '/nowhere'
    ]) {
      await stage.visit(page, path)
      t.same(await inspect(page, screen === 'phone' ? 44 : 24), [], `${path || '/'} on ${screen}`)
    }
    t.same(page.complaints, [])
  })
  const page = await stage.openPage(t, screens.phone)
  await page.goto(stage.dashboard)
  await page.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
  t.same(await inspect(page), [], 'signing in')
})

tourPages(stage, test)
accountPages(stage, test)
widthPages(stage, test)
