/** A real browser on this machine: the one that CHROMIUM_PATH names, or an installed Chromium or Chrome. */
import { existsSync, readFileSync } from 'node:fs'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'

const places = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
]

/** Where it is. A named one that is not there is an error, not a reason to skip. */
export const executablePath = process.env.CHROMIUM_PATH || places.find(existsSync)

/** For tap's `skip`: why, or false. */
export const noBrowser = !executablePath && 'there is no Chromium here: install one (apt-get install chromium), or name it in CHROMIUM_PATH'

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync'
]

/** A browser for all tests of a file; closed when they are over. */
export const startBrowser = async (t: Test) => {
  const browser = await chromium.launch({ executablePath, args, headless: true })
  t.teardown(() => browser.close())
  /** A page in a profile of its own. `complaints` collects what the browser says against it: errors, refused content, failed requests. */
  const openPage = async (t: Test, options: BrowserContextOptions = {}): Promise<Page & { complaints: string[] }> => {
    const context = await browser.newContext(options)
    t.teardown(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', message => void (['error', 'warning'].includes(message.type()) && complaints.push(message.text())))
    page.on('pageerror', error => void complaints.push(error.message))
    page.on('requestfailed', request => void complaints.push(`${request.url()} failed`))
    return Object.assign(page, { complaints })
  }
  return openPage
}

/** What a person with poor sight, a keyboard or a small screen would miss on a page; nothing where all is well. */
export const inspect = (page: Page): Promise<string[]> => page.evaluate(inspector)

const inspector = readFileSync(new URL('inspect-page.js', import.meta.url), 'utf8')
