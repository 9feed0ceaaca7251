// Time zones: their names, and stretches of constant offset kept in memory, since asking Intl costs a microsecond a question.
// Instants and local times are whole seconds since 1970; a local time is counted as if it were UTC. Offsets are seconds east of UTC.

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

// Intl would answer with its own choice among the links of a zone (Asia/Calcutta to someone who lives in Asia/Kolkata),
// and it also knows names that are not the database's ("IST", "SystemV/EST5"); so the spelling is ours.
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
 * The name of a time zone as the IANA database spells it ('europe/london' gives 'Europe/London'); links such as 'US/Eastern' or
 * 'Asia/Kolkata' stay what they are. Undefined for anything that is no such name, offsets like '+02:00' included.
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

/** A stretch [start, end) of instants with one offset; `before` is the offset just before `start`. Neighbours may share an offset. */
export type Segment = Readonly<{ start: number; end: number; offset: number; before: number }>

/** Answers the segment that an instant lies in. */
export type Zone = (second: number) => Segment

// About four years; a chunk costs about half a millisecond to make.
const chunkSeconds = 2 ** 27
const chunksKept = 64
const zonesKept = 1000
// Each holds some 100 KB that the garbage collector does not see.
const readersKept = 50
// Samples this far apart see every change: none on record was taken back sooner than after 7 days less an hour (Brazil, October 2000).
const stride = 4 * 86_400
// Before this every zone keeps its local mean time, and Intl would answer with years of two calendars.
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
  offsetReader(timeZone) // throws where there is no such zone
  const chunkAt = memoize(chunksKept, (index: number) => makeChunk(timeZone, index * chunkSeconds, (index + 1) * chunkSeconds))
  return second => {
    const chunk = chunkAt(Math.floor(second / chunkSeconds))
    let i = 0
    while (chunk[i]!.end <= second) i++
    return chunk[i]!
  }
}

/** The offsets of a zone, by any name that Intl knows; throws RangeError for others. */
export const zoneOf: (timeZone: string) => Zone = memoize(zonesKept, makeZone)

/** '+01:00'; with seconds where a zone once had them ('-04:56:02'). */
export const offsetText = (offset: number): string => {
  const time = new Date(Math.abs(offset) * 1000).toISOString().slice(11, 19).replace(/:00$/, '')
  return (offset < 0 ? '-' : '+') + time
}
