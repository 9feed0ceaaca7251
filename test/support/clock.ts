const units = { millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000 }

/** Beyond its milliseconds, the clock has these microseconds. */
const microseconds = '457'

/** A Date as a statement's parameter, which pg writes part by part, has microseconds, as PostgreSQL's own clock does. To JavaScript it has none. */
const exact = (date: Date): Date =>
  Object.defineProperty(date, 'getMilliseconds', { value: () => String(+date % 1000).padStart(3, '0') + microseconds })

/** A clock that stands still until it is moved: `advance('16 minutes')`, `set('2030-01-01T00:00:00Z')`. Has no time without a start. */
export const createTestClock = (start?: string | number) => {
  let time = start === undefined ? Number.NaN : new Date(start).getTime()
  const running = () => {
    if (Number.isNaN(time)) throw new Error('this test has no clock of its own: give it a start time')
    return time
  }
  return {
    now: () => exact(new Date(running())),
    advance: (by: string) => {
      const [, count, unit] = /^([\d.]+) (\w+?)s?$/.exec(by) ?? []
      const ms = units[unit as keyof typeof units]
      if (!ms) throw new Error(`${by} is not a duration`)
      time = running() + Number(count) * ms
    },
    set: (at: string | Date) => {
      time = new Date(at).getTime()
    }
  }
}
