/**
 * Takes a screenshot of every page of the dashboard with a realistic account, on a phone and a desktop, light and dark:
 * `node_modules/.bin/node scripts/pictures/main.ts DIRECTORY [PAGE…]`. Look at each of them.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { args, executablePath } from '../../test/support/browser.ts'
import { onStage } from '../stage/play.ts'
import { atEnd } from '../stage/processes.ts'
import { openAccount, operator_token } from './account.ts'

const [directory = 'pictures', ...only] = process.argv.slice(2)
mkdirSync(directory, { recursive: true })

const screens = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }
}
const newcomersPages = ['', 'cues', 'inbox', 'approvals', 'workers', 'calendars', 'support', 'errors', 'destinations']

await onStage({ durable: false }, async stage => {
  const { address, ada, newcomer, cues, backup, follower, failed, verified, operation, waiting } = await openAccount(stage)
  const paths: Record<string, string> = {
    attention: '',
    'cues-empty-search': 'cues?search=nothing+like+this',
    cue: `cues/${cues.get('Daily sales report')}`,
    'cue-chain': `cues/${cues.get('Nightly database backup')}`,
    'cue-follower': `cues/${follower}`,
    'cue-follower-edit': `cues/${follower}/edit`,
    'cue-paused': `cues/${cues.get('Import price feed')}`,
    'cue-new': 'cues/new',
    'cue-edit': `cues/${cues.get('Check partner API')}/edit`,
    'execution-chain': `executions/${backup}`,
    'execution-failed': `executions/${failed}`,
    'execution-verified': `executions/${verified}`,
    'execution-waiting': `executions/${waiting}`,
    'cue-approval': `cues/${cues.get('Send refunds')}`,
    'cue-approval-edit': `cues/${cues.get('Send refunds')}/edit`,
    operation: `operations/${operation}`,
    calendar: 'calendars/holidays%2Fde',
    gate: 'gates/openai',
    'calendar-edit': 'calendars/holidays%2Fde/edit',
    unknown: 'nothing'
  }
  const lists = `cues executions inbox approvals errors destinations workers alerts channels operations calendars gates keys sessions usage audit settings support operator`
  for (const name of lists.split(' ')) paths[name] = name

  const browser = await chromium.launch({ executablePath, args, headless: true })
  atEnd(() => browser.close())
  for (const [screen, options] of Object.entries(screens)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const open = async (api_key?: string) => {
        const context = await browser.newContext({ ...options, colorScheme, timezoneId: 'Europe/Berlin' })
        // Without the stream of events, the network can be idle.
        await context.route('**/v1/events*', route => route.abort())
        const page = await context.newPage()
        page.on(
          'console',
          message => message.type() === 'error' && !/40[134]|ERR_FAILED/.test(message.text()) && console.error(message.text())
        )
        page.on('pageerror', error => console.error(error))
        if (api_key) await context.request.post(`${address}/v1/auth/browser-session`, { data: { api_key } })
        const snap = async (name: string, path: string) => {
          if (only.length > 0 && !only.includes(name)) return
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
        return { snap, context }
      }
      const [visitor, first, owner] = [await open(), await open(newcomer.api_key), await open(ada.api_key)]
      await visitor.snap('sign-in', '')
      for (const path of newcomersPages) await first.snap(`new-${path || 'attention'}`, path)
      await first.snap('operator-locked', 'operator')
      await owner.context.request.post(`${address}/v1/operator/session`, { data: { operator_token } })
      for (const [name, path] of Object.entries(paths)) await owner.snap(name, path)
      for (const { context } of [visitor, first, owner]) await context.close()
    }
  }
  return true
})
