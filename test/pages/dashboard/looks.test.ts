/** Every page for people with poor sight, a keyboard or a small screen. */
import { inspect } from '../../support/browser.ts'
import { hourly, newAccount, screens, stage, test } from '../../support/dashboard-stage.ts'

/** Runs in the page: what reaches beyond the window or its box, and columns too narrow for their text. */
const findCutOff = `[...document.querySelectorAll('main *')].flatMap(element => {
  if (element.closest('pre, svg, .unseen')) return []
  const { right, width } = element.getBoundingClientRect()
  const box = element.parentElement.closest('.panel, .sign-in-box')
  const isNarrow = element.matches('td.cell-main') && width < 160
  return width > 0 && (isNarrow || right > Math.min(innerWidth, box?.getBoundingClientRect().right ?? innerWidth) + 1)
    ? [\`\${element.tagName} \${element.className} \${element.textContent.slice(0, 30)}\`] : []
})`

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
  const refund = await post('/v1/cues', {
    cron: '@yearly',
    worker: true,
    name: 'refund',
    payload: { order: 7 },
    approval: { message: 'Refund order 7?' }
  })
  const approval = await post(`/v1/cues/${refund.id}/fire`)
  await call('PUT', '/v1/channels/ops', { type: 'slack', target: 'https://hooks.slack.com/services/x', default: true })
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
      `/executions/${approval.id}`,
      '/inbox',
      '/approvals',
      '/errors',
      '/destinations',
      '/workers',
      '/alerts',
      '/operations',
      '/channels',
      '/calendars',
      '/gates',
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

test('nothing is cut off, on screens of any width', async t => {
  const account = await stage.register()
  const { post, call } = stage.as(account)
  const { id } = await post('/v1/cues', { name: 'publish', cron: '0 * * * *', worker: true, verification: { mode: 'manual' } })
  for (const outcome of [
    { success: true, summary: 'A summary of a few words' },
    ...Array(2).fill({ success: false, error: 'answered 503 Service Unavailable' })
  ]) {
    await post(`/v1/cues/${id}/fire`)
    const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w1' })
    await call('POST', `/v1/executions/${execution_id}/outcome`, outcome, { 'x-worker-id': 'w1' })
  }
  const ended =
    "update cue.executions set scheduled_for = now() - interval '25 minutes', ended_at = now() - interval '20 minutes' where cue_id = $1"
  await stage.pool.query(ended, [id])
  const page = await stage.openPage(t)
  const look = async (path: string) => {
    for (const width of [320, 390, 768, 1024, 1280]) {
      await page.setViewportSize({ width, height: 800 })
      t.same(await page.evaluate(findCutOff), [], `${path} at ${width} px`)
    }
  }
  await page.goto(stage.dashboard)
  await page.getByText('No key yet?').click()
  await look('signing in')
  await page.context().request.post(`${stage.base}/v1/auth/browser-session`, { data: { api_key: account.api_key } })
  await page.goto(`${stage.dashboard}/cues/${id}`)
  for (const path of [`/cues/${id}`, '/executions', '/errors']) {
    await stage.visit(page, path)
    await page.getByRole('table', { name: path === '/errors' ? 'Errors' : 'Executions' }).waitFor()
    await look(path)
  }
})
