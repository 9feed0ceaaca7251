/** The pages in a real browser: with a keyboard, on a phone, in dark mode, and without scripts. */
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { freePort } from '../../src/embedded-postgres/embedded-postgres.ts'
import { inspect, noBrowser, startBrowser } from '../support/browser.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { buildWithMail, newDeviceCode } from '../support/sign-in.ts'

// Starts many services; run directly with node, a file would have only 30 seconds.

/** Directory for a screenshot of every page. */
const pictures = process.env.PAGE_PICTURES

const screens = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 320, height: 640 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  dark: { viewport: { width: 390, height: 844 }, colorScheme: 'dark' as const }
}

/** Starts the service on a port. `look` opens and inspects a page on every kind of screen. */
const setup = async (t: Test, env: Record<string, string> = {}) => {
  const port = await freePort('127.0.0.1')
  const service = await buildWithMail(t, '2030-01-15T12:00:00.000Z', { BASE_URL: `http://127.0.0.1:${port}`, ...env })
  await service.app.listen({ host: '127.0.0.1', port })
  const pages: Record<string, Awaited<ReturnType<typeof openPage>>> = {}
  /** Opens and inspects a URL on every kind of screen; returns the desktop's page. */
  const look = async (t: Test, url: string, name: string) => {
    for (const [screen, options] of Object.entries(screens)) {
      pages[screen] ??= await openPage(t, options)
      await pages[screen].goto(url)
      await snap(t, pages[screen], `${name}-${screen}`)
      const complaints = pages[screen].complaints.splice(0)
      t.same(
        complaints.filter(line => !/status of 4\d\d/.test(line)),
        [],
        `${name} on ${screen}: no errors`
      )
    }
    return pages.desktop!
  }
  return { ...service, look, base: config(service) }
}
const config = ({ config }: { config: { baseUrl: string } }) => config.baseUrl

const snap = async (t: Test, page: Page, name: string) => {
  if (pictures) {
    mkdirSync(pictures, { recursive: true })
    await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true })
  }
  t.same(await inspect(page), [], `${name} is accessible`)
}

const openPage = noBrowser ? (undefined as never) : await startBrowser(t)
const test = (name: string, body: (t: Test) => Promise<unknown>) => t.test(name, { skip: noBrowser }, body)

test('a person signs in a device with pages and a keyboard only, without scripts', async t => {
  const { nobody, mails, poll } = await setup(t)
  const page = await openPage(t, { javaScriptEnabled: false })
  const device_code = newDeviceCode()
  const { verification_url } = await nobody.post('/v1/auth/device-code', { device_code })

  await page.goto(verification_url)
  t.equal(await page.getByText(device_code).count(), 1)
  await page.keyboard.press('Tab')
  await page.keyboard.type('grace@example.com')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
  t.same(await poll(device_code), { status: 'email_sent' })

  const [mail] = await mails()
  await page.goto(mail!.links[0]!)
  await page.getByRole('heading', { name: 'Is this your device?' }).waitFor()
  t.match(await page.locator('main').innerText(), new RegExp(`${device_code}.*grace@example.com`, 's'))
  t.same(await poll(device_code), { status: 'email_sent' })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Your device is signed in' }).waitFor()
  exactly(t, await poll(device_code), { status: 'approved', email: 'grace@example.com' })
  t.same(page.complaints, [])
})

test('an invalid address is reported at its field and can be corrected there', async t => {
  const { nobody } = await setup(t)
  const page = await openPage(t, screens.phone)
  const device_code = newDeviceCode()
  const { verification_url } = await nobody.post('/v1/auth/device-code', { device_code })
  await page.goto(verification_url)
  const field = page.getByLabel('Your email address')
  await field.fill('grace')
  await page.getByRole('button').click()
  t.equal(await page.locator('input:invalid').count(), 1, 'the browser holds it back')
  await field.fill('grace@host')
  await page.getByRole('button').click()
  await page.getByRole('alert').waitFor()
  t.equal(await field.inputValue(), 'grace@host')
  t.equal(await field.getAttribute('aria-invalid'), 'true')
  await snap(t, page, 'device-wrong-address')
  await field.fill('grace@example.com')
  await page.getByRole('button').click()
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
})

test('the pages of a sign-in work on every screen', async t => {
  const { nobody, look, requestLink, confirm, base, mails } = await setup(t)
  const device_code = newDeviceCode()
  const { verification_url } = await nobody.post('/v1/auth/device-code', { device_code })
  await look(t, verification_url, 'device')
  const { link, fields } = await requestLink('grace@example.com', 'x'.repeat(128))
  await look(t, `${base}/auth/device?code=${fields.device_code}`, 'device-mail-sent')
  const page = await look(t, link.href, 'verify-new-account')
  await page.getByRole('button', { name: 'Yes, sign it in' }).click()
  await page.getByRole('heading', { name: 'Your device is signed in' }).waitFor()
  await snap(t, page, 'verify-done')
  await look(t, link.href, 'verify-used')
  await look(t, `${base}/auth/device?code=${fields.device_code}`, 'device-done')
  await look(t, `${base}/auth/device?code=unknown`, 'device-expired')
  await look(t, `${base}/v1/auth/verify?token=wrong&device_code=unknown`, 'verify-unknown')
  await look(t, `${base}/v1/auth/verify`, 'verify-incomplete')
  const again = await requestLink('grace@example.com')
  await look(t, again.link.href, 'verify-known-account')
  await confirm(again.fields)
  await mails()
})

test('the owner of an account keeps it with one button', async t => {
  const { call, mails, look, get } = await setup(t)
  await call('DELETE', '/v1/auth/me', undefined, { 'x-confirm-destructive': 'true' })
  const link = (await mails())[0]!.links[0]!
  const page = await look(t, link, 'cancel')
  await page.getByRole('button', { name: 'Keep my account' }).click()
  await page.getByRole('heading', { name: 'Your account is kept' }).waitFor()
  await snap(t, page, 'cancel-done')
  const { events } = await get('/v1/auth/audit')
  t.same(pluck(events, 'event'), ['account.deletion_cancelled', 'account.deletion_requested', 'account.registered'])
  await look(t, link, 'cancel-again')
})

test('a person who did not register ends the account with one button', async t => {
  const { nobody, mails, look, base, as } = await setup(t)
  const { api_key } = await nobody.post('/v1/auth/register', { email: 'grace@example.com' })
  const link = (await mails())[0]!.links[0]!
  const page = await look(t, link, 'not-me-untouched')
  await page.getByRole('button', { name: 'Delete this account' }).click()
  await page.getByRole('heading', { name: 'The account is deleted' }).waitFor()
  await snap(t, page, 'not-me-deleted')
  exactly(t, await as({ id: '', email: '', api_key }).call('GET', '/v1/auth/me'), { status: 401 })
  await look(t, link, 'not-me-gone')

  const used = await nobody.post('/v1/auth/register', { email: 'ada@example.org' })
  await as({ id: '', email: '', api_key: used.api_key }).post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
  const other = await look(t, (await mails())[0]!.links[0]!, 'not-me-in-use')
  await other.getByRole('button', { name: 'Delete this account' }).click()
  await other.getByRole('heading', { name: 'The account is closed' }).waitFor()
  await snap(t, other, 'not-me-closed')
  await look(t, `${base}/auth/cancel-deletion?token=wrong`, 'cancel-unknown')
})

test('posts can be read and link to each other', async t => {
  const { look, base } = await setup(t)
  const list = await look(t, `${base}/v1/blog/posts`, 'posts')
  await list.getByRole('link', { name: 'What pgcue is' }).click()
  await list.getByRole('heading', { name: 'What pgcue is' }).waitFor()
  t.ok((await list.locator('article pre').count()) > 0)
  await look(t, `${base}/v1/blog/posts/what-pgcue-is`, 'post')
  const none = await look(t, `${base}/v1/blog/posts/none`, 'post-unknown')
  await none.getByRole('link', { name: 'All posts' }).click()
  await none.getByRole('heading', { name: 'What is new' }).waitFor()
})

test('the guide can be read on every screen, in the theme of the dashboard, and searched with the keyboard', async t => {
  const { look, base } = await setup(t)
  for (const slug of ['delivery', 'errors']) await look(t, `${base}/docs/guide/${slug}`, `guide-${slug}`)
  const page = await openPage(t, screens.desktop)
  await page.goto(`${base}/docs/guide/concepts`)
  await page.evaluate("localStorage.setItem('pgcue-theme', 'dark')")
  await page.reload()
  t.equal(await page.evaluate('getComputedStyle(document.body).color'), 'rgb(240, 240, 246)')
  await page.keyboard.press('/')
  await page.keyboard.type('Daylight')
  await page.getByText('Nothing found').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.type('CLOCK hour')
  await page.getByRole('link', { name: /^Clock changes/ }).waitFor()
  t.same(await inspect(page), [])
  await page.getByRole('searchbox').focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${base}/docs/guide/schedules#clock-changes`)
  await page.getByRole('link', { name: 'API reference' }).first().click()
  await page.waitForURL(`${base}/docs`)
  t.same(page.complaints, [])
})

test('the reference has the key of who is signed in, but looks at it only when asked', async t => {
  const { base, account, get } = await setup(t)
  const page = await openPage(t, screens.desktop)
  await page.goto(`${base}/docs`)
  const button = page.locator('#key')
  await button.click()
  await page.getByText('You are not signed in').waitFor()
  await page.context().request.post(`${base}/v1/auth/browser-session`, { data: { api_key: account.api_key } })
  await page.reload()
  const token = page
    .getByText(account.api_key.slice(-8))
    .or(page.locator(`input[value="${account.api_key}"]`))
    .first()
  await page.getByText('Authentication').first().waitFor()
  const isRevealed = async () => pluck((await get('/v1/auth/audit')).events, 'event').includes('key.revealed')
  t.notOk(await isRevealed())
  await button.click()
  await page.getByText('Your key is in the examples').waitFor()
  t.ok(await isRevealed())
  await token.waitFor({ state: 'attached' })
})

test('the plans page shows the plans and how to buy one', async t => {
  const { look, base } = await setup(t, { STRIPE_SECRET_KEY: 'sk_test', PLANS: '{"pro": {"cues": 12345}}' })
  const page = await look(t, `${base}/plans`, 'plans')
  t.match(await page.getByRole('row', { name: /^pro/ }).innerText(), /12,345/)
  t.match(await page.locator('main').innerText(), /curl -X POST http.*\/v1\/billing\/checkout/)
  const unsold = await setup(t)
  const other = await unsold.look(t, `${unsold.base}/plans`, 'plans-unsold')
  t.match(await other.locator('main').innerText(), /The operator of this service sets plans and limits\..*curl -X PATCH/s)
})

test('a mail is readable, also on a phone', async t => {
  const { requestLink, server } = await setup(t)
  await requestLink('grace@example.com')
  for (const [screen, options] of Object.entries({ desktop: screens.desktop, phone: screens.phone })) {
    const page = await openPage(t, { ...options, javaScriptEnabled: true })
    await page.setContent(server.mails[0]!.html)
    if (pictures) await page.screenshot({ path: `${pictures}/mail-${screen}.png`, fullPage: true })
    t.same(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), false)
  }
})
