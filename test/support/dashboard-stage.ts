/** The dashboard in a browser: one service and one browser for all tests of a process. */
import type { BrowserContextOptions, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { freePort } from '../../src/embedded-postgres/embedded-postgres.ts'
import { noBrowser, startBrowser } from './browser.ts'
import { startEngine } from './engine.ts'
import type { Account } from './setup.ts'
import { buildWithMail } from './sign-in.ts'

export const screens = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'dark' as const }
} satisfies Record<string, BrowserContextOptions>

export type DashboardPage = Page & { complaints: string[] }

export const operatorToken = 'operator-token-0123456789'

/** The service on a port, with an engine, and pages that are signed in. */
const stageDashboard = async (t: Test) => {
  const port = await freePort('127.0.0.1')
  const base = `http://127.0.0.1:${port}`
  const service = await buildWithMail(t, undefined, { BASE_URL: base, OPERATOR_TOKEN: operatorToken, PLANS: '{"free": {"cues": 2000}}' })
  await service.app.listen({ host: '127.0.0.1', port })
  await startEngine(t, service.config)
  const openPage = await startBrowser(t)

  const dashboard = `${base}/dashboard`
  /** A page of the dashboard, signed in with a key. */
  const open = async (t: Test, { api_key = service.account.api_key, path = '', ...options }: OpenOptions = {}): Promise<DashboardPage> => {
    const page = await openPage(t, options)
    await page.context().request.post(`${base}/v1/auth/browser-session`, { data: { api_key } })
    await page.goto(dashboard + path)
    await page.locator('h1').waitFor()
    return page
  }
  /** Goes to another page without loading the dashboard again, as its own links do. */
  const visit = async (page: DashboardPage, path: string): Promise<void> => {
    await page.evaluate(`history.pushState(null, '', ${JSON.stringify(dashboard + path)}); dispatchEvent(new PopStateEvent('popstate'))`)
    await page.locator('h1').waitFor()
    await page.locator('.loading').waitFor({ state: 'detached' })
  }
  /** Calls with a page of each screen, both at once. */
  const onEachScreen = (t: Test, api_key: string, look: (page: DashboardPage, screen: keyof typeof screens) => Promise<void>) =>
    Promise.all((['desktop', 'phone'] as const).map(async screen => look(await open(t, { api_key, ...screens[screen] }), screen)))

  return { ...service, base, dashboard, openPage, open, visit, onEachScreen }
}
type OpenOptions = BrowserContextOptions & { api_key?: Account['api_key']; path?: string }

// Without a browser, all tests are skipped.
export const stage = noBrowser ? (undefined as never) : await stageDashboard(t)
// Two tests run at a time, each with another account: they wait most of the time.
t.jobs = 2
export const test = (name: string, body: (t: Test) => Promise<unknown>) => t.test(name, { skip: noBrowser, buffered: true }, body)

/** An account of its own for a test, with its calls. */
export const newAccount = async () => {
  const account = await stage.register()
  return { ...account, ...stage.as(account) }
}
export const hourly = { cron: '0 * * * *', worker: true }
