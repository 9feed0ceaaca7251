/**
 * Measures how soon the dashboard's first view can be used on a phone whose CPU is four times as slow as this one, with an empty cache:
 * `node_modules/.bin/node scripts/pictures/first-view.ts [RUNS] [RTT_MS]`. Only the times of a quiet machine mean anything.
 */
import { chromium, type Page } from 'playwright-core'
import { args, executablePath } from '../../test/support/browser.ts'
import { openAccount } from './account.ts'

const [runs = 15, latency = 0] = process.argv.slice(2).map(Number)
const slower = 4

/** In milliseconds since the navigation began. `busy` is what the main thread computed until then. */
type View = { painted: number; shown: number; usable: number; busy: number }

/** Notes when the page has what it shows, and when the main thread has nothing left to do. */
const watch = `
  window.view = new Promise(resolve => new MutationObserver((_, observer) => {
    if (!document.querySelector('main h1') || document.querySelector('.loading')) return
    observer.disconnect()
    const shown = performance.now()
    requestAnimationFrame(() => requestIdleCallback(() => resolve({ shown, usable: performance.now() })))
  }).observe(document, { childList: true, subtree: true }))`

const measure = async (page: Page, url: string): Promise<View> => {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slower })
  if (latency)
    await session.send('Network.emulateNetworkConditions', { offline: false, latency, downloadThroughput: -1, uploadThroughput: -1 })
  await session.send('Performance.enable')
  await page.addInitScript(watch)
  await page.goto(url)
  const view = await page.evaluate<Omit<View, 'busy' | 'painted'>>('window.view')
  const { metrics } = await session.send('Performance.getMetrics')
  const painted = await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
  return { painted, ...view, busy: (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1000 }
}

const { config, ada, close } = await openAccount()
const browser = await chromium.launch({ executablePath, args, headless: true })
const views: View[] = []
for (let run = -1; run < runs; run++) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true })
  await context.request.post(`${config.baseUrl}/v1/auth/browser-session`, { data: { api_key: ada.api_key } })
  const view = await measure(await context.newPage(), `${config.baseUrl}/dashboard`)
  if (run >= 0) views.push(view) // the first one warms up the service
  await context.close()
}
const columns: (keyof View)[] = ['painted', 'shown', 'usable', 'busy']
for (const column of columns) {
  const times = views.map(view => Math.round(view[column])).sort((a, b) => a - b)
  console.log(`${column.padEnd(8)} median ${times[Math.floor(times.length / 2)]} ms, worst ${times.at(-1)} ms`)
}
await browser.close()
await close()
