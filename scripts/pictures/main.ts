/**
 * Takes a screenshot of every page of the dashboard with a realistic account, on a phone and a desktop, light and dark:
 * `node_modules/.bin/node scripts/pictures/main.ts DIRECTORY [PAGE…]`. Look at each of them.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { args, executablePath } from '../../test/support/browser.ts'
import { openAccount } from './account.ts'

const [directory = 'pictures', ...only] = process.argv.slice(2)
mkdirSync(directory, { recursive: true })

const { config, operator_token, ada, newcomer, cues, failed, verified, operation, close } = await openAccount()

const cue = (name: string) => cues.get(name)
const pages: Record<string, string> = {
  attention: '',
  cues: '/cues',
  'cues-empty-search': '/cues?search=nothing+like+this',
  cue: `/cues/${cue('Daily sales report')}`,
  'cue-paused': `/cues/${cue('Import price feed')}`,
  'cue-new': '/cues/new',
  'cue-edit': `/cues/${cue('Check partner API')}/edit`,
  executions: '/executions',
  'execution-failed': `/executions/${failed}`,
  'execution-verified': `/executions/${verified}`,
  inbox: '/inbox',
  errors: '/errors',
  destinations: '/destinations',
  workers: '/workers',
  alerts: '/alerts',
  operations: '/operations',
  operation: `/operations/${operation}`,
  calendars: '/calendars',
  calendar: '/calendars/holidays%2Fde',
  'calendar-edit': '/calendars/holidays%2Fde/edit',
  keys: '/keys',
  sessions: '/sessions',
  usage: '/usage',
  audit: '/audit',
  settings: '/settings',
  support: '/support',
  operator: '/operator',
  unknown: '/nothing'
}
const screens = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }
}

const browser = await chromium.launch({ executablePath, args, headless: true })
const wanted = (name: string) => only.length === 0 || only.includes(name)
for (const [screen, options] of Object.entries(screens)) {
  for (const colorScheme of ['light', 'dark'] as const) {
    const open = async (api_key?: string) => {
      const context = await browser.newContext({ ...options, colorScheme, timezoneId: 'Europe/Berlin' })
      const page = await context.newPage()
      page.on('console', message => message.type() === 'error' && !/40[134]/.test(message.text()) && console.error(message.text()))
      page.on('pageerror', error => console.error(error))
      if (api_key) await context.request.post(`${config.baseUrl}/v1/auth/browser-session`, { data: { api_key } })
      const snap = async (name: string, path: string) => {
        if (!wanted(name)) return
        await page.goto(`${config.baseUrl}/dashboard${path}`)
        await page.locator('h1').waitFor()
        await page.waitForLoadState('networkidle')
        await page.locator('.loading').waitFor({ state: 'detached' })
        await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        await page.waitForTimeout(150)
        // The whole page in one window: what is fixed to its edges would else be in the middle of the picture.
        const height = Math.max(await page.evaluate<number>('document.documentElement.scrollHeight'), options.viewport.height)
        await page.setViewportSize({ ...options.viewport, height })
        await page.waitForLoadState('networkidle')
        await page.waitForTimeout(150)
        await page.screenshot({ path: join(directory, `${name}-${screen}-${colorScheme}.png`) })
        await page.setViewportSize(options.viewport)
      }
      return { snap, context }
    }
    const visitor = await open()
    await visitor.snap('sign-in', '')
    const first = await open(newcomer.api_key)
    for (const [name, path] of [
      ['attention', ''],
      ['cues', '/cues'],
      ['inbox', '/inbox'],
      ['workers', '/workers'],
      ['calendars', '/calendars'],
      ['support', '/support'],
      ['errors', '/errors'],
      ['destinations', '/destinations']
    ] as const)
      await first.snap(`new-${name}`, path)
    await first.snap('operator-locked', '/operator')
    const owner = await open(ada.api_key)
    await owner.context.request.post(`${config.baseUrl}/v1/operator/session`, { data: { operator_token } })
    for (const [name, path] of Object.entries(pages)) await owner.snap(name, path)
    for (const { context } of [visitor, first, owner]) await context.close()
  }
}
await browser.close()
await close()
