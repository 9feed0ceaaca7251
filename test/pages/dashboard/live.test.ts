/** Pages that stay up to date, and cost nothing while nobody looks. */
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { hourly, newAccount, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'

const hide = (isHidden: boolean) =>
  `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`

/** A page whose clock stands still, so that it does not poll, and what it has read. */
const openStill = async (t: Test, path: string, api_key: string) => {
  const page = await stage.open(t, { api_key, path })
  await page.clock.install()
  const opened = page.waitForResponse(/v1\/events/)
  await page.reload()
  await opened
  await page.locator('tbody tr').first().waitFor()
  await page.clock.pauseAt(Date.now() + 1000)
  const reads: string[] = []
  page.on('request', request => void reads.push(new URL(request.url()).pathname + new URL(request.url()).search))
  return { page, reads }
}

test('an event changes the page without a poll, and what happened while the tab was hidden is shown on return', async t => {
  const { api_key, post } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'shown' })
  await post('/v1/cues', { ...hourly, name: 'other' })
  const { page, reads } = await openStill(t, '/cues', api_key)
  const pausedRows = page.locator('tbody tr').filter({ hasText: 'paused' })
  /** Moves the page's clock on until the rows are there, in less than the time between two polls. */
  const pausedSoon = async (rows: number) => {
    for (let n = 0; n < 40 && (await pausedRows.count()) !== rows; n++) {
      await page.clock.runFor(200)
      await setTimeout(50)
    }
    t.equal(await pausedRows.count(), rows)
  }
  await post(`/v1/cues/${id}/pause`)
  await pausedSoon(1)
  t.equal(reads.length, 1)

  const closed = page.waitForEvent('requestfailed', request => request.url().includes('/v1/events'))
  await page.evaluate(hide(true))
  await closed
  await post(`/v1/cues/${id}/resume`)
  await page.clock.runFor(60_000)
  t.equal(reads.length, 1, 'nothing is read while nobody looks')
  await page.evaluate(hide(false))
  await pausedSoon(0)
  t.ok(
    reads.some(read => /^\/v1\/events.*after=\w+/.test(read)),
    'goes on where it was'
  )
  t.same(page.complaints, [])
})

test('events are read together, and no more often than without them', async t => {
  const { api_key, post } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'busy' })
  const { page, reads } = await openStill(t, '/cues', api_key)
  await page.clock.runFor(11_000)
  await eventually(() => reads.length === 1)
  for (let n = 0; n < 20; n++) {
    await post(`/v1/cues/${id}/${n % 2 ? 'resume' : 'pause'}`)
    await page.clock.runFor(450)
  }
  t.equal(reads.length, 2, 'at once')
  await page.clock.runFor(8000)
  await eventually(() => reads.length === 3)
  await page.clock.runFor(8000)
  // The latest events may have come after the second read.
  t.ok(reads.length <= 4, `and once in ten seconds: ${reads.length}`)
  t.same(page.complaints, [])
})

test('a page without the stream polls, and says nothing', async t => {
  const { api_key, post } = await newAccount()
  const { id } = await post('/v1/cues', { ...hourly, name: 'steady' })
  const page = await stage.openPage(t)
  await page.context().request.post(`${stage.base}/v1/auth/browser-session`, { data: { api_key } })
  await page.route('**/v1/events*', route =>
    route.fulfill({ status: 429, json: { error: { code: 'rate_limit_exceeded', message: 'full' } } })
  )
  await page.clock.install()
  await page.goto(`${stage.dashboard}/cues`)
  await page.getByRole('link', { name: 'steady' }).waitFor()
  await post(`/v1/cues/${id}/pause`)
  await page.clock.runFor(11_000)
  await page.locator('tbody').getByText('paused').first().waitFor()
  t.equal(await page.locator('.problem').count(), 0)
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
  // One read ends when the tab has been hidden for minutes.
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  await page.route('**/v1/executions?*', route => held.then(() => route.continue()))
  const late = page.waitForResponse(/v1\/executions/)
  await page.clock.runFor(30_000)
  await page.evaluate(hide(true))
  await page.clock.runFor(1000)
  reads.length = 0
  await page.clock.runFor(60_000)
  release()
  await (await late).finished()
  await page.clock.runFor(60_000)
  t.same(reads, [], 'nor is there a stream')
  await page.evaluate(hide(false))
  await page.clock.runFor(100)
  await eventually(() => reads.length >= 3)
})
