import type { Cron } from './cron.ts'
import { cronTimetable, longestGapBridged } from './next-run.ts'
import { nextSlot } from './slots.ts'
import { offsetText, zoneOf } from './zones.ts'

const day = 86_400
const slotsNamed = 3

// The time on a local clock. The date is omitted unless it differs from that of `beside`.
const clockText = (local: number, beside = local) => {
  const [date, time] = new Date(local * 1000).toISOString().slice(0, -5).split('T') as [string, string]
  const short = time.replace(/:00$/, '')
  return Math.floor(local / day) === Math.floor(beside / day) ? short : `${date} ${short}`
}

const listText = (items: string[]) => (items.length < 2 ? items.join() : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`)

const lengthText = (seconds: number) => {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return [hours && `${hours} h`, minutes && `${minutes} min`, rest && `${rest} s`].filter(Boolean).join(' ')
}

const movedNote = (cron: Cron, shown: number, resumed: number) => {
  const missing: string[] = []
  let count = 0
  for (let slot = nextSlot(cron.calendar, shown); slot < resumed; slot = nextSlot(cron.calendar, slot + 1)) {
    if (++count <= slotsNamed) missing.push(clockText(slot, resumed))
  }
  if (count === 0) return undefined
  if (count > slotsNamed) missing.push(`${count - slotsNamed} more`)
  const lacking = `${listText(missing)} ${count > 1 ? 'do' : 'does'} not exist, as the clocks go from ${clockText(shown, resumed)} to ${clockText(resumed)}`
  if (resumed - shown >= longestGapBridged) return `${lacking}: no run stands for ${count > 1 ? 'them' : 'it'}.`
  const together = nextSlot(cron.calendar, resumed) === resumed
  const outcome =
    count > 1 || together
      ? `one run at ${clockText(resumed)} stands for ${count > 1 ? 'them' : 'it'}${together ? ' and its own' : ''}`
      : `it runs at ${clockText(resumed)}`
  return `${lacking}: ${outcome}.`
}

/**
 * Describes in a sentence how a clock change affects a run: moved out of a gap, one of two at a repeated time, or at another offset than
 * the previous run. Null if it doesn't.
 * @param crons the expressions of a schedule; none if it runs at regular intervals, which clocks don't change
 * @param previous the previous run; undefined for the first
 */
export const noteOf = (crons: readonly Cron[], timeZone: string, at: Date, previous: Date | undefined): string | null => {
  const zone = zoneOf(timeZone)
  const second = Math.floor(at.getTime() / 1000)
  const now = zone(second)
  const local = second + now.offset

  const named = crons.filter(cron => cronTimetable(cron, timeZone).next(+at - 1) === +at)
  const isFixed = named.length > 0 && named.every(cron => !cron.wildcard)

  if (now.start === second && now.offset > now.before) {
    for (const cron of named) {
      const moved = !cron.wildcard && movedNote(cron, second + now.before, local)
      if (moved) return moved
    }
  }

  const isSecond = now.before > now.offset && local < now.start + now.before
  const next = zone(now.end)
  const isFirst = next.offset < now.offset && local >= next.start + next.offset
  if (isFirst || isSecond) {
    const which = isFixed ? 'it runs the first time only' : `this is the ${isFirst ? 'first' : 'second'}`
    return `${clockText(local)} comes twice, as the clocks go back: ${which}.`
  }

  const change = previous ? now.offset - zone(Math.floor(previous.getTime() / 1000)).offset : 0
  if (change === 0) return null
  return `The clocks have gone ${change > 0 ? 'forward' : 'back'} by ${lengthText(Math.abs(change))} since the run before, to UTC${offsetText(now.offset)}.`
}
