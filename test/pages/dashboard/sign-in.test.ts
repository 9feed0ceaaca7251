/** Signing in and out: keys, mailed links, links with a token, sessions. */
import { randomUUID } from 'node:crypto'
import { hashKey } from '../../../src/accounts/keys.ts'
import { createLocalToken } from '../../../src/accounts/local-token.ts'
import { newAccount, stage, test } from '../../support/dashboard-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { forOneCell } from '../../support/two-cells.ts'

test('a key opens a session, which the browser keeps without the key', async t => {
  const { openPage, dashboard } = stage
  const { api_key, email } = await newAccount()
  const page = await openPage(t)
  await page.goto(`${dashboard}/cues`)
  await page.getByLabel('API key', { exact: true }).last().fill('svc_sk_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('Invalid API key').waitFor()
  await page.getByLabel('API key', { exact: true }).last().fill(api_key)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Cues', exact: true }).waitFor()
  await page.getByRole('heading', { name: 'No cues yet' }).waitFor()
  t.notOk(/^0$/m.test(await page.locator('main').innerText()), 'no number without a name')
  t.ok(page.url().endsWith('/dashboard/cues'), 'on the requested page')
  await page.getByText(email).first().waitFor()

  const kept = await page.evaluate<string>(
    'document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.documentElement.outerHTML'
  )
  t.notOk(kept.includes(api_key), 'no script can read the key')
  t.notOk(kept.includes('pgcue_session'), 'nor the session')
  await page.getByRole('button', { name: email }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
  t.same(
    page.complaints.filter(line => !line.includes('401')),
    []
  )
})

test('a link by mail signs in, on whichever device it is opened', async t => {
  const { openPage, dashboard, server, nobody } = stage
  const page = await openPage(t)
  await page.goto(dashboard)
  await page.getByRole('tab', { name: 'Email link' }).click()
  await page.getByLabel('Email address').fill('grace@example.com')
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
  const mail = await eventually(() => server.mails.find(({ recipients }) => recipients.includes('grace@example.com')))
  const link = new URL(mail.links[0]!)
  const code = link.searchParams.get('device_code')!
  await page.getByText(code).waitFor()
  await nobody.call('POST', '/v1/auth/verify', new URLSearchParams(link.searchParams).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'text/html'
  })
  await page.getByRole('heading', { name: 'Your account is ready' }).waitFor()
  await page.getByText(/^svc_sk_/).waitFor()
  await page.getByRole('button', { name: 'Open the dashboard' }).click()
  await page.getByRole('heading', { name: 'Welcome to pgcue' }).waitFor()
  t.same(
    page.complaints.filter(line => !line.includes('401')),
    []
  )
})

test('a link with a token signs in to its own account, whoever was signed in before', async t => {
  if (forOneCell) return t.pass('only an embedded database, which is one cell, has such links')
  const { api_key, email } = await newAccount()
  const page = await stage.open(t, { api_key })
  await page.getByText(email).first().waitFor()
  const token = createLocalToken()
  const account = {
    account_id: randomUUID(),
    email: `${token}@localhost`,
    prefix: token.slice(0, 12),
    ciphertext: 'k.x',
    key_hash: hashKey(token)
  }
  await stage.fn.openLocalAccount({ ...account, token_hash: hashKey(token) })
  await page.goto('about:blank')
  await page.goto(`${stage.dashboard}#token=${token}`)
  await page.getByText(account.email).first().waitFor()
  t.equal(await page.getByText(email).count(), 0)
  t.notOk(page.url().includes(token))
  t.same(page.complaints, [])
})

test('sessions are listed, one is ended, and then all of them', async t => {
  const { api_key } = await newAccount()
  const page = await stage.open(t, {
    api_key,
    path: '/sessions',
    userAgent: 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) Version/19.0 Safari/605.1'
  })
  const other = await stage.open(t, { api_key, userAgent: 'curl/8.9' })
  await page.getByRole('button', { name: 'Live' }).click()
  const rows = page.locator('tbody tr')
  await rows.nth(1).waitFor()
  t.same(await page.locator('tbody .name').allInnerTexts(), ['curl/8.9', 'Safari on macOS'])
  t.equal(await rows.nth(1).getByText('this browser').count(), 1)
  await rows.first().getByRole('button', { name: 'End the session' }).click()
  await page.getByRole('dialog').getByText('curl/8.9 at 127.0.0.1 is signed out immediately.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'End the session' }).click()
  await rows.nth(1).waitFor({ state: 'detached' })
  await other.reload()
  await other.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.getByRole('heading', { name: 'Sign in to pgcue' }).waitFor()
})
