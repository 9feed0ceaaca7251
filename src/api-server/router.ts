/** One server for several cells: the home cell's, which passes each request to the app of the cell that its credential names. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { credentialOf } from '../accounts/cookies.ts'
import type { App } from '../app.ts'
import { type ApiError, toApiError, unavailable } from '../errors.ts'
import { serveRequests } from '../http/connections.ts'
import type { CellOf } from './cell-of-request.ts'

/** Headers of the connection, and those that are set anew. */
const perConnection = ['connection', 'keep-alive', 'transfer-encoding', 'content-length']

/** Call it when all apps are ready and before the first one, the home cell's, listens. */
export const routeByCell = (apps: readonly App[], cellOf: CellOf): void => {
  const [home] = apps as [App]

  /** Answers a request whose cell only its body names. */
  const answerByBody = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', socket } = request
    const body = await readBody(request, cellOf.bodyLimit(url))
    if (!body) return
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !perConnection.includes(name)))
    const ask = (app: App) =>
      app.inject({ method: method as 'POST', url, headers, payload: body, remoteAddress: socket.remoteAddress ?? '' })
    const cell = await cellOf.ofBody(url, body)
    const answers = await Promise.all(cell === null ? apps.map(ask) : [ask(apps[cell - 1]!)])
    // A request for all cells has succeeded if it did in each.
    const answer = answers.find(({ statusCode }) => statusCode >= 400) ?? answers[0]!
    for (const [name, value] of Object.entries(answer.headers)) {
      if (value !== undefined && !perConnection.includes(name)) response.setHeader(name, value)
    }
    response.statusCode = answer.statusCode
    response.end(answer.rawPayload)
    request.resume()
  }

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // The home cell's app refuses a request of another host or site, before its body is read or anything is looked up.
    const isRefused = home.origins.refusalOf(request) !== undefined
    const cell = isRefused
      ? 1
      : cellOf.ofHead(request.method ?? '', request.url ?? '', credentialOf(request.headers, home.config).authorization)
    if (typeof cell === 'number') return apps[cell - 1]!.routing(request, response)
    const answering =
      cell === 'body' ? answerByBody(request, response) : cell.then(cellNumber => apps[cellNumber - 1]!.routing(request, response))
    answering.catch(error => {
      if (!home.closing.aborted && !home.outageLog.lost(error, 'find cell', false)) home.log.error({ err: error }, 'request failed')
      // A closing app accepts no request that another one passes on.
      refuse(home.closing.aborted ? unavailable() : toApiError(error), response)
    })
  }
  serveRequests(home.server, answer)
}

const refuse = (error: ApiError, response: ServerResponse) => {
  if (response.headersSent) return response.destroy()
  const headers = { ...error.headers, 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' }
  response.writeHead(error.statusCode, headers).end(JSON.stringify(error))
}

/** Returns the body, or as much of it as exceeds the limit, which the route refuses at once; undefined if the client has gone. */
const readBody = async (request: IncomingMessage, limit: number): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk)
      length += chunk.length
      if (length > limit) break
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks)
}
