/** With TEST_CELLS=2, a service under test has two cells. Its accounts live in one of them, which differs from service to service. */
import { basename } from 'node:path'
import Fastify from 'fastify'
import type { Test } from 'tap'
import { joinCells } from '../src/api/api.ts'
import type { OpenCell } from '../src/api/former.ts'
import type { App } from '../src/app.ts'
import { cellConfig } from '../src/cells/settings.ts'
import type { Config } from '../src/config.ts'
import { testConfig } from './database.ts'

export const cellNumbers = process.env.TEST_CELLS === '2' ? [1, 2] : [1]

let built = basename(process.argv[1] ?? '').length
export const nextCell = (): number => cellNumbers[built++ % cellNumbers.length]!

/** The configuration of a cell of a service that creates accounts in `accountsIn`. */
export const configOf = (cell: number, urls: string[], accountsIn: number, env: Record<string, string>): Config => {
  if (urls.length === 1) return testConfig(urls[0]!, env)
  return cellConfig(testConfig('', { CELLS: urls.join(' '), REGISTER_CELLS: String(accountsIn), ...env }), cell)
}

/** Returns the app of a cell with the server of all cells. */
export const appOf = async (t: Test, cell: number, open: OpenCell[]): Promise<App> => {
  const [{ app: home }] = open as [OpenCell]
  if (open.length === 1) return home
  const ending = new AbortController()
  t.teardown(() => ending.abort())
  await joinCells(open, ending.signal)
  const front = Fastify()
  front.addHook('onRequest', async (request, reply) => {
    reply.hijack()
    home.server.emit('request', request.raw, reply.raw)
  })
  const routed = {
    inject: front.inject.bind(front),
    listen: home.listen.bind(home),
    server: home.server,
    close: () => Promise.all(open.map(({ app }) => app.close()))
  }
  const own = open[cell - 1]!.app
  return new Proxy(own, { get: (_, name) => Reflect.get(name in routed ? routed : own, name) })
}
