import t from 'tap'
import { firstScreen } from '../src/startup/first-screen.ts'
import { testConfig } from './database.ts'
import { build } from './setup.ts'

/** The paths that a first screen shows above its tour. */
const pages = (screen: string) => screen.split('\nA tour')[0]!.match(/(?<=localhost:0)\/[\w./-]+/g) ?? []

for (const ROLES of ['api,engine', 'engine']) {
  t.test(`every page that the first screen of ${ROLES} shows is there`, async t => {
    const { app, config } = await build(t, undefined, { env: { ROLES } })
    const shown = pages(firstScreen(config))
    t.same(shown.sort(), ROLES === 'engine' ? ['/health', '/status'] : ['/dashboard', '/docs', '/health', '/openapi.json', '/status'])
    for (const path of shown) t.not((await app.inject(path)).statusCode, 404, path)
  })
}

t.test('an engine alone has no tour: its account would be made nowhere', t => {
  const url = 'postgres://cue@db/cue'
  t.match(firstScreen(testConfig(url)), '/v1/auth/register')
  t.notMatch(firstScreen(testConfig(url, { ROLES: 'engine' })), '/v1/')
  t.end()
})
