// Time zones: canonical names, and cached stretches of constant offset, because a call of Intl takes a microsecond. Instants and local
// times are whole seconds since 1970; local times are counted as if UTC. Offsets are seconds east of UTC.

import { memoize } from '../cache/memoize.ts'
import { effort } from './slots.ts'

const lone =
  'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan ' +
  'Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu'
const areas = 'Africa America Antarctica Arctic Asia Atlantic Australia Brazil Canada Chile Etc Europe Indian Mexico Pacific US'
const words = 'ACT BajaNorte BajaSur ComodRivadavia DeNoronha DumontDUrville EasterIsland IN LHI McMurdo NSW UCT UTC au es of'

const byLowerCase = (names: string) => new Map(names.split(' ').map(name => [name.toLowerCase(), name]))
const loneNames = byLowerCase(lone)
const areaNames = byLowerCase(areas)
const oddWords = byLowerCase(words)

const spellWord = (word: string) => oddWords.get(word) ?? word.charAt(0).toUpperCase() + word.slice(1)

// Intl would return its own choice among the links of a zone (Asia/Calcutta for Asia/Kolkata), and also accepts names that are not in the
// IANA database ("IST", "SystemV/EST5"), so names are spelled here.
const spell = (name: string) => {
  if (!/^[a-z][a-z0-9_+\-/]{1,49}$/i.test(name)) return undefined
  const lower = name.toLowerCase()
  const [first, ...rest] = lower.split('/')
  if (rest.length === 0) return loneNames.get(lower)
  const area = areaNames.get(first!)
  const places = rest.map(part => (part.startsWith('gmt') ? part.toUpperCase() : part.replace(/[^_-]+/g, spellWord)))
  return area && [area, ...places].join('/')
}

const canonical = new Set<string>()

/**
 * Returns a time zone's name as spelled in the IANA database ('europe/london' becomes 'Europe/London'); links such as 'US/Eastern' and
 * 'Asia/Kolkata' are kept. Undefined for anything else, including offsets such as '+02:00'.
 */
export const canonicalTimeZone = (name: string): string | undefined => {
  const spelled = spell(name)
  if (spelled === undefined || canonical.has(spelled)) return spelled
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: spelled })
  } catch {
    return undefined
  }
  canonical.add(spelled)
  return spelled
}

/** A stretch [start, end) of instants with one offset; `before` is the offset just before `start`. Neighbours may have the same offset. */
export type Segment = Readonly<{ start: number; end: number; offset: number; before: number }>

/** Returns the segment that contains an instant. */
export type Zone = (second: number) => Segment

// About four years; computing a chunk takes about half a millisecond.
const chunkSeconds = 2 ** 27
const chunkSteps = 1000
// All from the year 1800 to 2500, so that no zone is computed more than once: 60 ms and 100 KB at most.
const chunksKept = 200
const zonesKept = 1000
// Each holds about 100 KB outside the garbage collector's view.
const readersKept = 50
// Sampling at this interval finds every change: on record, none was reverted in less than 7 days minus an hour (Brazil, October 2000).
const day = 86_400
const stride = 4 * day
// From then on, zones have rules with at most two changes per year, and these repeat with the calendar, every 400 years.
const periodic = Date.UTC(2100, 0, 1) / 1000
const period = 146_097 * day
const periodicStride = 28 * day
// Earlier instants all have local mean time, and Intl would mix two calendars.
const dawn = Date.UTC(1800, 0, 1) / 1000
const oldest = Math.floor(dawn / chunkSeconds) - 1

const zero = '0'.charCodeAt(0)
type OffsetReader = (instant: number) => number

// Formatting takes most of the time, so only the fields that are needed.
const makeOffsetReader = (timeZone: string): OffsetReader => {
  const twoDigits = { day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' } as const
  const format = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', ...twoDigits })
  return (instant: number) => {
    const second = Math.max(instant, dawn)
    const text = format.format(second * 1000) // "31, 23:59:59"
    const at = (place: number) => text.charCodeAt(place) * 10 + text.charCodeAt(place + 1) - 11 * zero
    const days = at(0) - new Date(second * 1000).getUTCDate()
    const daysAhead = Math.abs(days) > 1 ? -Math.sign(days) : days
    return daysAhead * day + at(4) * 3600 + at(7) * 60 + at(10) - (second - Math.floor(second / day) * day)
  }
}

const offsetReader = memoize(readersKept, makeOffsetReader)

const makeChunk = (timeZone: string, start: number, end: number): Segment[] => {
  const offsetAt = offsetReader(timeZone)
  if (end <= dawn) return [{ start: -Infinity, end, offset: offsetAt(start), before: offsetAt(start) }]
  effort.steps += chunkSteps
  const step = start < periodic ? stride : periodicStride
  const segments: Segment[] = []
  let open = { start, offset: offsetAt(start), before: offsetAt(start - 1) }
  const close = (at: number, offset: number) => {
    segments.push({ ...open, end: at })
    open = { start: at, offset, before: open.offset }
  }
  for (let position = start; position < end - 1; position = Math.min(position + step, end - 1)) {
    const right = Math.min(position + step, end - 1)
    const offset = offsetAt(right)
    while (open.offset !== offset) {
      let low = Math.max(position, open.start)
      let high = right
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2)
        if (offsetAt(middle) === open.offset) low = middle
        else high = middle
      }
      close(high, offsetAt(high))
    }
  }
  close(end, open.offset)
  return segments
}

const utc: Segment = { start: -Infinity, end: Infinity, offset: 0, before: 0 }

const makeZone = (timeZone: string): Zone => {
  if (timeZone === 'UTC') return () => utc
  offsetReader(timeZone) // throws if the zone doesn't exist
  const chunkAt = memoize(chunksKept, (index: number) => makeChunk(timeZone, index * chunkSeconds, (index + 1) * chunkSeconds))
  const segmentAt = (second: number) => {
    const chunk = chunkAt(Math.max(Math.floor(second / chunkSeconds), oldest))
    let i = 0
    while (chunk[i]!.end <= second) i++
    return chunk[i]!
  }
  return second => {
    const shift = second < periodic + period ? 0 : Math.floor((second - periodic) / period) * period
    const segment = segmentAt(second - shift)
    return shift === 0 ? segment : { ...segment, start: segment.start + shift, end: segment.end + shift }
  }
}

/** Returns the offsets of a zone, under any name that Intl accepts. @throws RangeError for other names */
export const zoneOf: (timeZone: string) => Zone = memoize(zonesKept, makeZone)

/** Formats an offset as '+01:00', with seconds if a zone historically had them ('-04:56:02'). */
export const offsetText = (offset: number): string => {
  const time = new Date(Math.abs(offset) * 1000).toISOString().slice(11, 19).replace(/:00$/, '')
  return (offset < 0 ? '-' : '+') + time
}
