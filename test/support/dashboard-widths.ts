/** Pages at the widths of phones, tablets and laptops. Part of dashboard.test.ts, whose service and browser they use. */
import type { Test } from 'tap'
import type { stageDashboard } from './dashboard-stage.ts'

type Stage = Awaited<ReturnType<typeof stageDashboard>>
type Declare = (name: string, body: (t: Test) => Promise<unknown>) => unknown

/** Runs in the page: what reaches beyond the window or its box, and columns too narrow for their text. */
const findCutOff = `[...document.querySelectorAll('main *')].flatMap(element => {
  if (element.closest('pre, svg, .uplot, .unseen')) return []
  const { right, width } = element.getBoundingClientRect()
  const box = element.parentElement.closest('.panel, .sign-in-box')
  const isNarrow = element.matches('td.cell-main') && width < 160
  return width > 0 && (isNarrow || right > Math.min(innerWidth, box?.getBoundingClientRect().right ?? innerWidth) + 1)
    ? [\`\${element.tagName} \${element.className} \${element.textContent.slice(0, 30)}\`] : []
})`

/** Without a browser, `stage` is undefined and the test is skipped. */
export const widthPages = (stage: Stage, test: Declare): void => {
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
}
