/** The worker's log: one line per event, with ids as fields. */
import type { Log } from '../../client/worker/store.ts'
import type { Sink } from '../io.ts'
import { printable } from '../printable.ts'

export const createLog =
  (sink: Sink, json: boolean): Log =>
  (event, fields = {}) => {
    const at = new Date().toISOString()
    const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)
    if (json) sink.write(`${printable(JSON.stringify({ at, event, ...Object.fromEntries(given) }))}\n`)
    else sink.write(`${[at, event, ...given.map(([name, value]) => `${name}=${wordOf(value)}`)].join('  ')}\n`)
  }

const wordOf = (value: unknown) => (/^[\w.:/@+-]+$/.test(String(value)) ? String(value) : printable(JSON.stringify(value)))
