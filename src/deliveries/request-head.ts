/** The head of an HTTP/1.1 request. Pure: no network. */
import { headerName, headerValue } from '../http/header-text.ts'
import { memoize } from '../memoize/memoize.ts'

type Request = {
  method: string
  /** As in a parsed URL, so that they contain no spaces and no line breaks. */
  host: string
  path: string
  headers: Record<string, string>
  body: string
  /** Sent unless `headers` has a `User-Agent`, in this spelling. */
  userAgent: string
}

const MAX_CACHED_NAMES = 1000

/** They say where the request ends, or belong to the connection. */
const reserved = /^(?:host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect)$/i

const mayName = memoize(MAX_CACHED_NAMES, (name: string) => headerName.test(name) && !reserved.test(name))

const invalid = (name: string) => Object.assign(new Error(`header ${name} cannot be sent`), { code: 'INVALID_HEADER' })

/**
 * Returns the request line and the header fields, in Latin-1, with the empty line after them.
 * @throws an error with the code `INVALID_HEADER` if a header is not one line or would change how the request is read
 */
export const requestHead = ({ method, host, path, headers, body, userAgent }: Request): string => {
  let head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n`
  for (const name in headers) {
    const value = headers[name]!
    if (!mayName(name) || !headerValue.test(value)) throw invalid(name)
    head += `${name}: ${value}\r\n`
  }
  if (headers['User-Agent'] === undefined) head += `User-Agent: ${userAgent}\r\n`
  if (method === 'GET') return `${head}\r\n`
  if (body && headers['Content-Type'] === undefined) head += 'Content-Type: application/json\r\n'
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`
}
