import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cliStage, listening } from '../support/cli-stage.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { eventually, receiver } from '../support/setup.ts'
import { buildWithMail } from '../support/sign-in.ts'

const stage = async (t: Test) => {
  const { env, config, ...rest } = await cliStage(t)
  return { ...rest, config, env, file: join(config, 'pgcue/credentials.json'), noKey: { env: { PGCUE_API_KEY: '' } } }
}

t.test('checks and uses a key from standard input, stored for its owner only', async t => {
  const { cli, file, noKey, account, baseUrl } = await stage(t)
  exactly(t, await cli(['login', '--with-key'], { stdin: 'svc_sk_wrong\n' }), { code: 2, err: /Set PGCUE_API_KEY/ })
  t.notOk(existsSync(file), 'a bad key is not kept')
  const { code, out } = await cli(['login', '--with-key'], { stdin: `${account.api_key}\n` })
  t.equal(code, 0)
  t.ok(out.includes(`Logged in to ${baseUrl} as ${account.email}; the key is in ${file}`), out)
  t.notOk(out.includes(account.api_key))
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(statSync(join(file, '..')).mode & 0o777, 0o700)
  exactly(t, await cli(['whoami'], noKey), { code: 0, out: new RegExp(account.email) })
  exactly(t, await cli(['whoami'], { env: { PGCUE_API_KEY: '', PGCUE_BASE_URL: '' } }), { code: 0 }, 'its service is the default now')
  exactly(t, await cli(['whoami'], { env: { PGCUE_API_KEY: 'svc_sk_wrong' } }), { code: 2 }, 'the environment overrides it')
  exactly(t, await cli(['login', '--with-key', '--email', 'a@b.cd']), { code: 2, err: /only one/ })
})

t.test('sends a stored key only to the service it belongs to', async t => {
  const { cli, noKey, account } = await stage(t)
  await cli(['login', '--with-key'], { stdin: account.api_key })
  const { url, requests } = await receiver(t)
  exactly(t, await cli(['whoami', '--base-url', url], noKey), { code: 2, err: /No key for/ })
  t.equal(requests.length, 0)
})

t.test('logout removes the key of one service', async t => {
  const { cli, file, noKey, account, baseUrl } = await stage(t)
  await cli(['login', '--with-key'], { stdin: account.api_key })
  const other = { base_url: 'http://other', services: { 'http://other': { api_key: 'svc_sk_x', email: 'a' } } }
  const { services } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...other, services: { ...services, ...other.services } }))
  exactly(t, await cli(['logout']), { out: `Removed the stored key for ${baseUrl}\n` })
  t.same(JSON.parse(readFileSync(file, 'utf8')), other)
  exactly(t, await cli(['whoami'], noKey), { code: 2 })
  exactly(t, await cli(['logout']), { code: 0, out: /No stored key/ })
  exactly(t, await cli(['logout', '--base-url', 'http://other']), { code: 0 })
  t.notOk(existsSync(file))
})

t.test('rejects a credentials file that is damaged or readable by others', async t => {
  const { cli, file, noKey, account } = await stage(t)
  await cli(['login', '--with-key'], { stdin: account.api_key })
  chmodSync(file, 0o640)
  exactly(t, await cli(['whoami'], noKey), { code: 2, err: new RegExp(`chmod 600 ${file}`) })
  chmodSync(file, 0o600)
  writeFileSync(file, '{')
  exactly(t, await cli(['whoami'], noKey), { code: 2, err: /cannot be read: .*pgcue login/ })
})

t.test('login by mail works for new and for existing accounts', async t => {
  const { cli, env, account, mails, nobody, confirm, as } = await listening(t, await buildWithMail(t))
  const login = async (email: string) => {
    const done = cli(['login', '--email', email, '--json'], { env: { PGCUE_API_KEY: '' } })
    const { links } = await eventually(async () => (await mails()).at(-1))
    await confirm(Object.fromEntries(new URL(links[0]!).searchParams))
    const { code, out, err } = await done
    exactly(t, { code, err }, { code: 0, err: '' })
    return JSON.parse(out)
  }
  exactly(t, await login('new@example.com'), { email: 'new@example.com', base_url: env.PGCUE_BASE_URL })
  exactly(t, await cli(['whoami'], { env: { PGCUE_API_KEY: '' } }), { code: 0, out: /new@example\.com/ })
  const { stored_in } = await login(account.email)
  exactly(
    t,
    await cli(['keys', 'list'], { env: { PGCUE_API_KEY: '' } }),
    { out: /pgcue on [\s\S]*default/ },
    'a separate key, which can be revoked alone'
  )
  const { events } = await as(account).get('/v1/auth/audit')
  t.same(pluck(events, 'event'), ['session.revoked', 'key.created', 'session.created', 'account.registered'], 'no session remains')
  t.notOk(readFileSync(stored_in, 'utf8').includes(account.api_key))
  exactly(t, await nobody.get('/v1/auth/me'), { error: { code: 'not_authenticated' } })
})

t.test('without an address, a page asks for it and shows the code to compare', async t => {
  const { cli, nobody, mails, confirm } = await listening(t, await buildWithMail(t))
  const seen = Promise.withResolvers<string>()
  const done = cli(['login'], { env: { PGCUE_API_KEY: '' }, onError: text => /code: (\S+)/.test(text) && seen.resolve(text) })
  const device_code = /code: (\S+)/.exec(await seen.promise)![1]!
  await nobody.post('/v1/auth/device-code/submit-email', { device_code, email: 'page@example.com' })
  await confirm(Object.fromEntries(new URL((await mails())[0]!.links[0]!).searchParams))
  const { code, err, out } = await done
  exactly(t, { code, out }, { code: 0, out: /as page@example\.com/ })
  t.ok(err.startsWith(`Open https://pgcue.example/auth/device?code=${device_code}\n`))
})

t.test('reports a login that was not confirmed or was used already', async t => {
  const { cli, noKey } = await stage(t)
  for (const [status, message] of [
    ['expired', /Login not confirmed in time/],
    ['claimed', /already used/]
  ] as const) {
    const { url } = await receiver(t, ({ path }) =>
      path.endsWith('/poll') ? { body: { status } } : { body: { verification_url: 'http://localhost/auth/device', expires_in: 900 } }
    )
    exactly(t, await cli(['login', '--base-url', url], noKey), { code: 1, err: message })
  }
})

t.test('suggests an alternative if the service has no login by mail', async t => {
  const { cli, noKey } = await stage(t)
  const { url } = await receiver(t, () => ({ status: 404, body: { error: { code: 'not_found', message: 'nothing here', status: 404 } } }))
  exactly(t, await cli(['login', '--base-url', url], noKey), { code: 1, err: /does not support login by email.*--with-key/ })
})
