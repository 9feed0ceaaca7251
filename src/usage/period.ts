/** The billing month and projections, in UTC. */

const dayMs = 86_400_000

/** Returns first and last day of an instant's billing month, and the number of days after this one. */
export const billingPeriod = (now: Date) => {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  const start = new Date(Date.UTC(year, month, 1))
  const end = new Date(Date.UTC(year, month + 1, 0))
  const today = Date.UTC(year, month, now.getUTCDate())
  return { start: day(start), end: day(end), days_remaining: (end.getTime() - today) / dayMs }
}

const day = (date: Date): string => date.toISOString().slice(0, 10)

/** Projects a count linearly to the end of the month, in whole days, so that the first minutes of a month don't distort it. */
export const projected = (used: number, now: Date): number => {
  const days = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate()
  return Math.round((used / now.getUTCDate()) * days)
}

/** Returns the use of a limit, which may be none. `percent_used` is 100 only if the limit is reached, and never more. */
export const share = (used: number, limit: number | null) => ({
  used,
  limit,
  remaining: limit === null ? null : Math.max(limit - used, 0),
  percent_used: limit === null ? 0 : used >= limit ? 100 : Math.floor((used / limit) * 100)
})
