/**
 * Takes a screenshot of every page of the dashboard with a realistic account, on a phone and a desktop, light and dark:
 * `node_modules/.bin/node scripts/pictures/main.ts DIRECTORY [PAGE…]`. Look at each of them.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { args, executablePath } from '../../test/support/browser.ts'
import { onStage } from '../stage/play.ts'
import { atEnd, here } from '../stage/processes.ts'
import { openAccount, operator_token } from './account.ts'

const [directory = 'pictures', ...only] = process.argv.slice(2)
mkdirSync(directory, { recursive: true })

const screens = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }
}
const newcomersPages = ['', 'cues', 'inbox', 'approvals', 'workers', 'calendars', 'support', 'errors', 'destinations']
/** The dashboard's paths without parameters. */
const lists = readFileSync(join(here, 'src/dashboard/app/pages.ts'), 'utf8').matchAll(/^ {2}'\/([^:']+)':/gm)

await onStage({ durable: false }, async stage => {
  const { address, ada, newcomer, cues, backup, follower, failed, verified, operation, waiting } = await openAccount(stage)
  const cue = (name: string) => `cues/${cues.get(name)}`
  const paths: Record<string, string> = {
    ...{ attention: '', 'cues-empty-search': 'cues?search=nothing+like+this', unknown: 'nothing' },
    ...{ cue: cue('Daily sales report'), 'cue-paused': cue('Import price feed'), 'cue-edit': `${cue('Check partner API')}/edit` },
    ...{ 'cue-chain': cue('Nightly database backup'), 'cue-follower': `cues/${follower}`, 'cue-follower-edit': `cues/${follower}/edit` },
    ...{ 'cue-approval': cue('Send refunds'), 'cue-approval-edit': `${cue('Send refunds')}/edit` },
    ...{ 'execution-chain': `executions/${backup}`, 'execution-failed': `executions/${failed}` },
    ...{ 'execution-verified': `executions/${verified}`, 'execution-waiting': `executions/${waiting}` },
    ...{ operation: `operations/${operation}`, gate: 'gates/openai' },
    ...{ calendar: 'calendars/holidays%2Fde', 'calendar-edit': 'calendars/holidays%2Fde/edit' },
    ...Object.fromEntries([...lists].map(([, path]) => [path!.replaceAll('/', '-'), path!]))
  }
  const browser = await chromium.launch({ executablePath, args, headless: true })
  atEnd(() => browser.close())
  for (const [screen, options] of Object.entries(screens)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      /** Takes pictures of pages by name, signed in with a key, in a browser of their own. */
      const snap = async (pages: Record<string, string>, api_key?: string, signIn?: (context: BrowserContext) => Promise<unknown>) => {
        const context = await browser.newContext({ ...options, colorScheme, timezoneId: 'Europe/Berlin' })
        // Without the stream of events, the network can be idle.
        await context.route('**/v1/events*', route => route.abort())
        const page = await context.newPage()
        page.on('console', message => {
          if (message.type() === 'error' && !/40[134]|ERR_FAILED/.test(message.text())) console.error(message.text())
        })
        page.on('pageerror', error => console.error(error))
        if (api_key) await context.request.post(`${address}/v1/auth/browser-session`, { data: { api_key } })
        await signIn?.(context)
        for (const [name, path] of Object.entries(pages)) {
          if (only.length > 0 && !only.includes(name)) continue
          await page.goto(`${address}/dashboard/${path}`)
          await page.locator('h1').waitFor()
          await page.waitForLoadState('networkidle')
          await page.locator('.loading').waitFor({ state: 'detached' })
          await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
          // The whole page in one window: what is fixed to its edges would else be in the middle of the picture.
          const height = Math.max(await page.evaluate<number>('document.documentElement.scrollHeight'), options.viewport.height)
          await page.setViewportSize({ ...options.viewport, height })
          await page.waitForLoadState('networkidle')
          await page.waitForTimeout(300)
          await page.screenshot({ path: join(directory, `${name}-${screen}-${colorScheme}.png`) })
          await page.setViewportSize(options.viewport)
        }
        await context.close()
      }
      await snap({ 'sign-in': '' })
      const first = Object.fromEntries(newcomersPages.map(path => [`new-${path || 'attention'}`, path]))
      await snap({ ...first, 'operator-locked': 'operator' }, newcomer.api_key)
      await snap(paths, ada.api_key, ({ request }) => request.post(`${address}/v1/operator/session`, { data: { operator_token } }))
    }
  }
  return true
})
