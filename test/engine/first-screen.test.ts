import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { firstScreen, tour } from '../../src/startup/first-screen.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { build } from '../support/setup.ts'

/** The paths listed on a first screen above its tour. */
const pages = (screen: string) => screen.split('\nA tour')[0]!.match(/(?<=localhost:0)\/[\w./-]+/g) ?? []

for (const ROLES of ['api,engine', 'engine']) {
  t.test(`every page listed on the first screen of ${ROLES} exists`, async t => {
    const { app, config } = await build(t, undefined, { env: { ROLES } })
    const shown = pages(firstScreen(config))
    t.same(shown.sort(), ROLES === 'engine' ? ['/health', '/status'] : ['/dashboard', '/docs', '/health', '/openapi.json', '/status'])
    for (const path of shown) t.not((await app.inject(path)).statusCode, 404, path)
  })
}

t.test('an engine without the API prints no tour', t => {
  const url = 'postgres://cue@db/cue'
  t.ok(firstScreen(testConfig(url)).includes('/v1/auth/register'))
  t.notOk(firstScreen(testConfig(url, { ROLES: 'engine' })).includes('/v1/'))
  t.end()
})

for (const shell of ['sh', 'bash']) {
  t.test(`the tour pasted into ${shell} ends with the delivery`, async t => {
    const { app, config } = await build(t)
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    await startEngine(t, config)
    const lines = tour(url).split('\n')
    t.equal(lines.length, 3)
    const { stdout, stderr } = await promisify(execFile)(shell, ['-c', lines.join('\n')])
    t.equal(stderr, '')
    const [key, cue, delivery, ...rest] = stdout.split('\n')
    t.match(key, /^svc_sk_\w{38}$/)
    t.match(cue, /^cue_\w{12}$/)
    const { status, payload, headers } = JSON.parse(delivery!)
    t.same([status, payload, headers['x-service-cue-id']], ['delivered', { task: 'hello' }, cue])
    t.same(rest, [''], 'and nothing after it')
  })
}
