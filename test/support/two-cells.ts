/** With TEST_CELLS=2, a service under test has two cells. Its accounts live in one of them, which differs from service to service. */
import { basename } from 'node:path'
import Fastify, { type FastifyListenOptions, type InjectOptions } from 'fastify'
import type pg from 'pg'
import { joinCells } from '../../src/api-server/api.ts'
import type { App } from '../../src/app.ts'
import { cellConfig } from '../../src/cells/settings.ts'
import type { Config } from '../../src/config.ts'
import { testConfig } from './database.ts'

type OpenCell = { app: App; pool: pg.Pool }

export const cellNumbers = process.env.TEST_CELLS === '2' ? [1, 2] : [1]

let built = basename(process.argv[1] ?? '').length
/** Why a test is skipped that inspects one cell of what all cells do, or a limit that each cell has. */
export const forOneCell = cellNumbers.length > 1 && 'a test of one cell'

export const nextCell = (): number => cellNumbers[built++ % cellNumbers.length]!

/** The configuration of a cell of a service that creates accounts in `accountsIn`. */
export const configOf = (cell: number, urls: string[], accountsIn: number, env: Record<string, string>): Config => {
  if (urls.length === 1) return testConfig(urls[0]!, env)
  return cellConfig(testConfig('', { CELLS: urls.join(' '), REGISTER_CELLS: String(accountsIn), ...env }), cell)
}

/** Returns the app of a cell with the server of all cells, which are joined by the first request: until then, tests add routes of their own. */
export const appOf = (cell: number, open: OpenCell[]): App => {
  const [{ app: home }] = open as [OpenCell]
  if (open.length === 1) return home
  let joined: Promise<void> | undefined
  const join = () => (joined ??= joinCells(open.map(({ app }) => app)))

  // Only the router of the cells reads the URL.
  const urls = new WeakMap<object, string>()
  const front = Fastify({
    rewriteUrl: request => {
      urls.set(request, request.url!)
      return '/'
    }
  })
  front.addHook('onRequest', async ({ raw }, reply) => {
    reply.hijack()
    raw.url = urls.get(raw)
    home.server.emit('request', raw, reply.raw)
  })
  const routed = {
    inject: async (options: InjectOptions) => {
      await join()
      return front.inject(options)
    },
    listen: async (options: FastifyListenOptions) => {
      await join()
      return home.listen(options)
    },
    ready: join,
    server: home.server,
    close: () => Promise.all(open.map(({ app }) => app.close()))
  }
  // Requests without a key go to the home cell, which must know them too.
  const everywhere = (name: 'get' | 'post' | 'addHook') => ({
    [name]: (...args: unknown[]) => open.map(({ app }) => Reflect.apply(app[name], app, args))
  })
  const shared = { ...routed, ...everywhere('get'), ...everywhere('post'), ...everywhere('addHook') }
  const own = open[cell - 1]!.app
  return new Proxy(own, { get: (_, name) => Reflect.get(name in shared ? shared : own, name) })
}
