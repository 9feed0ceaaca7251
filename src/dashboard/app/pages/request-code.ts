/** The request of an execution as text and as curl. */
import type { CueDetail, ExecutionDetail } from '../../../client/types.ts'

/** Canonical JSON has sorted members and no spaces; this is close enough to read, and to send again. */
const bodyOf = ({ payload }: ExecutionDetail): string => JSON.stringify(payload)

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

export const requestOf = (execution: ExecutionDetail, { callback }: CueDetail): string => {
  const url = new URL(callback.url!)
  const headers = Object.entries(callback.headers).map(([name, value]) => `${name}: ${value}`)
  return [
    `${callback.method} ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'Content-Type: application/json',
    `X-Service-Execution-Id: ${execution.id}`,
    `X-Service-Cue-Id: ${execution.cue_id}`,
    `X-Service-Attempt: ${execution.attempts}`,
    'X-Service-Timestamp: …',
    'X-Service-Signature: v1=…',
    'webhook-id, webhook-timestamp, webhook-signature: …',
    'Authorization: Bearer …',
    ...headers,
    '',
    bodyOf(execution)
  ].join('\n')
}

export const curlOf = (execution: ExecutionDetail, { callback }: CueDetail): string =>
  [
    `curl -X ${callback.method} ${quoted(callback.url!)}`,
    "-H 'Content-Type: application/json'",
    `-H 'X-Service-Execution-Id: ${execution.id}'`,
    `-H 'X-Service-Cue-Id: ${execution.cue_id}'`,
    ...Object.keys(callback.headers).map(name => `-H ${quoted(`${name}: …`)}`),
    `--data-raw ${quoted(bodyOf(execution))}`
  ].join(' \\\n  ')
