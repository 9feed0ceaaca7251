/** The worker's log: one line per event, with ids as fields. */
import type { Sink } from '../io.ts'
import { printable } from '../printable.ts'

type Fields = Record<string, string | number | boolean | null | undefined>
export type Log = (event: string, fields?: Fields) => void

export const createLog =
  (sink: Sink, json: boolean): Log =>
  (event, fields = {}) => {
    const at = new Date().toISOString()
    const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)
    if (json) sink.write(`${printable(JSON.stringify({ at, event, ...Object.fromEntries(given) }))}\n`)
    else sink.write(`${[at, event, ...given.map(([name, value]) => `${name}=${wordOf(value)}`)].join('  ')}\n`)
  }

const wordOf = (value: unknown) => (/^[\w.:/@+-]+$/.test(String(value)) ? String(value) : printable(JSON.stringify(value)))
