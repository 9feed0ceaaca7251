/** The list of schedules of QStash's API. */
import { enums } from '../catalog.ts'
import { bounds } from '../cues/columns.ts'
import { isObject, parseExactly } from '../json/canonical-json.ts'
import { type Fields, type Importer, objectOf, optionalText, refuse, textOf, translate } from './entries.ts'
import { goSchedule } from './go-cron.ts'
import { readParts } from './parts.ts'

type Method = (typeof enums.callbackMethod)[number]

export const qstash: Importer = (text, options) =>
  translate(readParts(text), entry => {
    const url = textOf(entry, 'destination')
    if (!/^https?:/.test(url) || !URL.canParse(url))
      refuse(`destination ${url} is not a URL: only schedules that call a URL can be imported`)
    if (entry.delay) refuse('delay is not supported')
    const method = (optionalText(entry, 'method') ?? 'POST') as Method
    if (!enums.callbackMethod.includes(method)) refuse(`method ${method} is not supported: use ${enums.callbackMethod.join(', ')}`)
    const headers = headersOf(objectOf(entry, 'header'))
    const payload = payloadOf(entry)
    const failureCallback = optionalText(entry, 'failureCallback')
    const attempts = (typeof entry.retries === 'number' ? entry.retries : 3) + 1
    const lost = ['callback', 'queueName', 'flowControlKey', 'parallelism', 'rate', 'retryDelayExpression'].filter(name => entry[name])
    if (attempts > bounds.retry_max_attempts.maximum) lost.push(`retries over ${bounds.retry_max_attempts.maximum - 1}`)
    return {
      name: optionalText(entry, 'label') || optionalText(entry, 'scheduleId') || new URL(url).pathname,
      ...(lost.length > 0 && { comment: `Left out: ${lost.join(', ')}.` }),
      cue: {
        schedule: goSchedule(textOf(entry, 'cron'), options.timezone, options),
        callback: { url, ...(method !== 'POST' && { method }), ...(Object.keys(headers).length > 0 && { headers }) },
        ...(payload !== undefined && { payload }),
        retry: { max_attempts: Math.min(attempts, bounds.retry_max_attempts.maximum) },
        ...(failureCallback !== undefined && { on_failure: { webhook: failureCallback } }),
        ...(entry.isPaused === true && { paused: true })
      }
    }
  })

/** What is forwarded: QStash's own settings are not. */
const headersOf = (header: Fields): Record<string, string> =>
  Object.fromEntries(
    Object.entries(header).flatMap(([name, values]) => {
      const forwarded = name.replace(/^Upstash-Forward-/i, '')
      const value = Array.isArray(values) ? values.join(', ') : String(values)
      if (/^(upstash-|content-length$|host$)/i.test(forwarded)) return []
      const isType = /^content-type$/i.test(forwarded)
      if (isType && !/^application\/(.+\+)?json\b/i.test(value)) refuse(`content type ${value} is not JSON`)
      return isType && /^application\/json$/i.test(value) ? [] : [[forwarded, value]]
    })
  )

const payloadOf = ({ body, bodyBase64 }: Fields): unknown => {
  if (body === undefined && typeof bodyBase64 === 'string') body = Buffer.from(bodyBase64, 'base64').toString()
  if (body === undefined || body === null || body === '') return undefined
  if (isObject(body)) return body
  try {
    return parseExactly(String(body))
  } catch {
    return refuse('the body is not JSON')
  }
}
