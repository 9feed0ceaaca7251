// Time zones: canonical names, and cached stretches of constant offset, because a call of Intl takes a microsecond. Instants and local
// times are whole seconds since 1970; local times are counted as if UTC. Offsets are seconds east of UTC.

import { memoize } from '../memoize/memoize.ts'

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
const chunksKept = 64
const zonesKept = 1000
// Each holds about 100 KB outside the garbage collector's view.
const readersKept = 50
// Sampling at this interval finds every change: on record, none was reverted in less than 7 days minus an hour (Brazil, October 2000).
const stride = 4 * 86_400
// Earlier instants all have local mean time, and Intl would mix two calendars.
const dawn = Date.UTC(1800, 0, 1) / 1000

type OffsetReader = (instant: number) => number

const makeOffsetReader = (timeZone: string): OffsetReader => {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit'
  })
  return (instant: number) => {
    const second = Math.max(instant, dawn)
    const [month, day, year, hour, minute, sec] = format
      .format(second * 1000)
      .split(/\D+/)
      .map(Number) as [number, number, number, number, number, number]
    return Date.UTC(year, month - 1, day, hour, minute, sec) / 1000 - second
  }
}

const offsetReader = memoize(readersKept, makeOffsetReader)

const makeChunk = (timeZone: string, start: number, end: number): Segment[] => {
  const offsetAt = offsetReader(timeZone)
  const segments: Segment[] = []
  let open = { start, offset: offsetAt(start), before: offsetAt(start - 1) }
  const close = (at: number, offset: number) => {
    segments.push({ ...open, end: at })
    open = { start: at, offset, before: open.offset }
  }
  for (let left = start; left < end - 1; left = Math.min(left + stride, end - 1)) {
    const right = Math.min(left + stride, end - 1)
    const offset = offsetAt(right)
    while (open.offset !== offset) {
      let low = Math.max(left, open.start)
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

const makeZone = (timeZone: string): Zone => {
  offsetReader(timeZone) // throws if the zone doesn't exist
  const chunkAt = memoize(chunksKept, (index: number) => makeChunk(timeZone, index * chunkSeconds, (index + 1) * chunkSeconds))
  return second => {
    const chunk = chunkAt(Math.floor(second / chunkSeconds))
    let i = 0
    while (chunk[i]!.end <= second) i++
    return chunk[i]!
  }
}

/** Returns the offsets of a zone, under any name that Intl accepts. @throws RangeError for other names */
export const zoneOf: (timeZone: string) => Zone = memoize(zonesKept, makeZone)

/** Formats an offset as '+01:00', with seconds if a zone historically had them ('-04:56:02'). */
export const offsetText = (offset: number): string => {
  const time = new Date(Math.abs(offset) * 1000).toISOString().slice(11, 19).replace(/:00$/, '')
  return (offset < 0 ? '-' : '+') + time
}
