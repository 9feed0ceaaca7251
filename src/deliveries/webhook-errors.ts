/** Why a webhook request failed, as a sentence that its cue's owner can act on. */
import { STATUS_CODES } from 'node:http'
import { AddressError } from './address.ts'

/** The sentence for a status that isn't 2xx. */
export const answered = (status: number): string =>
  status >= 300 && status < 400
    ? `redirects are not followed (${status})`
    : `answered ${status}${STATUS_CODES[status] ? ` ${STATUS_CODES[status]}` : ''}`

const SENTENCES: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed before a response',
  EPIPE: 'connection closed before a response',
  ETIMEDOUT: 'host not responding',
  UND_ERR_CONNECT_TIMEOUT: 'host not responding',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EPROTO: 'TLS: handshake failed',
  CERT_HAS_EXPIRED: 'TLS: certificate expired',
  CERT_NOT_YET_VALID: 'TLS: certificate not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'TLS: self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'TLS: self-signed certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'TLS: unknown certificate issuer',
  UNABLE_TO_GET_ISSUER_CERT: 'TLS: unknown certificate issuer',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'TLS: unknown certificate issuer',
  ERR_TLS_CERT_ALTNAME_INVALID: 'TLS: certificate issued for another host',
  UND_ERR_SOCKET: 'connection closed before a response',
  UND_ERR_HEADERS_OVERFLOW: 'response headers too long',
  HTTPParserError: 'response is not HTTP/1.1',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'response is not HTTP/1.1',
  UND_ERR_DESTROYED: 'sending has stopped',
  INVALID_HEADER: 'invalid request header'
}

/** Whether the receiver closed or reset the connection. */
export const isClosed = ({ code }: Error & { code?: string }): boolean =>
  code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'

/** The sentence for an error of the network, without the addresses that its message may contain. */
export const sentence = (error: Error & { code?: string }): string => {
  if (error instanceof AddressError) return error.code === 'EBLOCKED' ? `blocked address: ${error.message}` : error.message
  const code = error.code ?? error.name
  if (/^ERR_(SSL|TLS)_/.test(code)) return SENTENCES[code] ?? 'TLS: handshake failed'
  return SENTENCES[code] ?? SENTENCES[error.name] ?? `connection failed (${code})`
}
