/** Times in words. The user chooses the zone: the cue's own, this computer's, or UTC. */
import { signal } from '@preact/signals'
import { service } from './api.ts'

export type ZoneChoice = (typeof zones)[number]

let zoneHere: string | undefined
/** This computer's zone. A browser needs a tenth of a second for its first use of Intl on a phone, so the first view does without. */
export const localZone = (): string => {
  zoneHere ??= Intl.DateTimeFormat().resolvedOptions().timeZone
  return zoneHere
}

export const stored = (name: string): string | null => {
  try {
    return localStorage.getItem(name)
  } catch {
    return null // private windows may refuse
  }
}
export const store = (name: string, value: string): void => {
  try {
    localStorage.setItem(name, value)
  } catch {}
}

export const zones = ['cue', 'local', 'utc'] as const
const choice = signal<ZoneChoice>(zones.find(name => name === stored('pgcue-zone')) ?? 'cue')
// Relative times move on by themselves.
const second = signal(Date.now())
setInterval(() => {
  if (!document.hidden) second.value = Date.now()
}, 1000)

export const setZone = (zone: ZoneChoice): void => {
  store('pgcue-zone', zone)
  choice.value = zone
}
export const useZone = (): ZoneChoice => choice.value
/** The service's time, each second. */
export const useNow = (): number => second.value + service.aheadMs
export const serviceNow = (): number => Date.now() + service.aheadMs

/** The zone to show: `cue` where there is one. */
export const zoneFor = (zone: ZoneChoice, ofCue: string | undefined): string =>
  zone === 'utc' ? 'UTC' : zone === 'cue' && ofCue ? ofCue : localZone()

const formats = new Map<string, Intl.DateTimeFormat>()
const format = (timeZone: string, options: Intl.DateTimeFormatOptions) => {
  const key = timeZone + JSON.stringify(options)
  const cached = formats.get(key)
  if (cached) return cached
  const made = safely(() => new Intl.DateTimeFormat('en-GB', { timeZone, hourCycle: 'h23', ...options }))
  formats.set(key, made)
  return made
}
/** A zone may be newer than the browser. */
const safely = (make: () => Intl.DateTimeFormat) => {
  try {
    return make()
  } catch {
    return new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC' })
  }
}

const day = { day: 'numeric', month: 'short' } as const
const clock = { hour: '2-digit', minute: '2-digit' } as const

/** 15 Jan, 09:00: without the year if it is the current one. */
export const shortTime = (iso: string | number, zone: string, withSeconds = false): string => {
  const date = new Date(iso)
  const isThisYear = date.getFullYear() === new Date(serviceNow()).getFullYear()
  const second = withSeconds ? ({ second: '2-digit' } as const) : {}
  return format(zone, { ...day, ...(isThisYear ? {} : { year: 'numeric' }), ...clock, ...second }).format(date)
}
/** Tue 15 Jan 2030, 09:00:00.123 GMT+1 */
export const fullTime = (iso: string | number, zone: string): string =>
  format(zone, {
    weekday: 'short',
    ...day,
    year: 'numeric',
    ...clock,
    second: '2-digit',
    fractionalSecondDigits: 3,
    timeZoneName: 'short'
  }).format(new Date(iso))
export const clockTime = (iso: string | number, zone: string): string => format(zone, { ...clock, second: '2-digit' }).format(new Date(iso))
export const hourTime = (iso: string | number, zone: string): string => format(zone, clock).format(new Date(iso))
export const dayName = (iso: string | number, zone: string): string => format(zone, { weekday: 'long', ...day }).format(new Date(iso))

/** Whether any two are less than a minute apart, so that times need seconds. Neighbours are next to each other. */
export const areDense = (times: string[]): boolean =>
  times.some((at, n) => n > 0 && Math.abs(Date.parse(at) - Date.parse(times[n - 1]!)) < 60_000)

const units: [string, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1]
]
/** in 5 minutes, 3 hours ago, now */
export const relative = (iso: string | number, now: number): string => {
  const seconds = (Number(new Date(iso)) - now) / 1000
  const size = Math.abs(seconds)
  if (size < 1.5) return 'now'
  const [unit, length] = units.find(([, length]) => size >= length) ?? units.at(-1)!
  const count = Math.floor(size / length)
  const text = `${count} ${unit}${count === 1 ? '' : 's'}`
  return seconds > 0 ? `in ${text}` : `${text} ago`
}

/** 320 ms, 4.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h */
export const duration = (ms: number): string => {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const pairs: [string, number][] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000]
  ]
  const first = pairs.findIndex(([, length]) => ms >= length)
  const [unit, length] = pairs[first]!
  const [nextUnit, nextLength] = pairs[first + 1]!
  const rest = Math.floor((ms % length) / nextLength)
  return `${Math.floor(ms / length)} ${unit}${rest ? ` ${rest} ${nextUnit}` : ''}`
}
