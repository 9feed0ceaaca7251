/** Rights of sessions, and text that would do harm. */
import { inspect } from '../../support/browser.ts'
import { hourly, newAccount, operatorToken, screens, stage, test } from '../../support/dashboard-stage.ts'
import { cellNumbers } from '../../support/two-cells.ts'

/** Figures and answers of the operator are those of each cell. */
const cells = cellNumbers.length

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
    const cell =
      "[...document.querySelectorAll('table')].find(({ caption }) => caption.textContent === 'Engines').querySelector('td.number')"
    const label = await page.evaluate(`getComputedStyle(${cell}, '::before').content`)
    t.equal(label, screen === 'phone' ? '"Share "' : 'none', 'lists on phones name their values')
    if (screen === 'phone')
      t.ok(await page.evaluate(`document.documentElement.scrollHeight <= ${2 + cells} * innerHeight`), 'at most three screens on a phone')
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
    t.equal(await forecast.locator('tbody tr').count(), 60 * cells)
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
  const approved = await post('/v1/cues', { ...hourly, name: evil, payload: { [evil]: evil }, approval: { message: evil } })
  await post(`/v1/cues/${approved.id}/fire`)
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
      '/approvals',
      '/errors',
      '/destinations',
      '/workers',
      '/calendars',
      '/gates',
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
