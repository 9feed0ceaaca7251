/** A real browser: the one named by CHROMIUM_PATH, or an installed Chromium or Chrome. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'

/** The headless shell first: it takes a third of the time. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
]

/** Path of the browser. If CHROMIUM_PATH is wrong, tests fail instead of being skipped. */
export const executablePath = process.env.CHROMIUM_PATH || places.find(existsSync)

/** The reason to skip tests, or false. */
export const noBrowser =
  !executablePath && 'there is no Chromium here: install one (apt-get install chromium-headless-shell), or name it in CHROMIUM_PATH'

export const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync'
]

/** Starts a browser for all tests of a file, and closes it after them. */
export const startBrowser = async (t: Test) => {
  const browser = await chromium.launch({ executablePath, args, headless: true })
  t.teardown(() => browser.close())
  /** Opens a page in its own profile. `complaints` collects the browser's errors and warnings, and failed requests. */
  const openPage = async (t: Test, options: BrowserContextOptions = {}): Promise<Page & { complaints: string[] }> => {
    const context = await browser.newContext(options)
    t.teardown(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', message => void (['error', 'warning'].includes(message.type()) && complaints.push(message.text())))
    page.on('pageerror', error => void complaints.push(error.message))
    // A request that the page itself gave up, such as when it is left, has not failed.
    page.on('requestfailed', request => {
      if (request.failure()?.errorText !== 'net::ERR_ABORTED') complaints.push(`${request.url()} failed`)
    })
    return Object.assign(page, { complaints })
  }
  return openPage
}

/**
 * Returns what keeps people with poor sight, a keyboard or a small screen from using a page: violations of axe's rules (WCAG up to AAA and
 * best practices), and what axe doesn't check: focus, touch targets of 44 px, or less where there is a mouse, and sideways scrolling.
 */
export const inspect = async (page: Page, least = 44): Promise<string[]> => {
  // Not page.evaluate, which takes longer for a script of this size than axe does for a page.
  const session = await page.context().newCDPSession(page)
  const run = (expression: string) => session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
  // Loading axe takes as long as checking a page: once is enough until the page is left.
  const isLoaded = (await run('typeof inspectPage')).result.value === 'function'
  if (!isLoaded) await run(`${axe};(() => { ${inspector} })()`)
  const { result, exceptionDetails } = await run(`Promise.all([axe.run(${JSON.stringify(options)}), inspectPage(${least})])`)
  await session.detach()
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
  const [{ violations }, own]: [AxeResults, string[]] = result.value
  return [...violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`)), ...own]
}

const tags = ['wcag2a', 'wcag2aa', 'wcag2aaa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** `preload` would fetch the page's resources again; `color-contrast` is the weaker form of a rule of AAA. */
const options = { runOnly: tags, resultTypes: ['violations'], preload: false, rules: { 'color-contrast': { enabled: false } } }
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const inspector = readFileSync(new URL('inspect-page.js', import.meta.url), 'utf8')
