/** The month that usage counts in, and what it comes to. UTC; pure. */

const dayMs = 86_400_000

/** The billing month of an instant: first and last day, and how many days come after this one. */
export const billingPeriod = (now: Date) => {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  const start = new Date(Date.UTC(year, month, 1))
  const end = new Date(Date.UTC(year, month + 1, 0))
  const today = Date.UTC(year, month, now.getUTCDate())
  return { start: day(start), end: day(end), days_remaining: (end.getTime() - today) / dayMs }
}

const day = (date: Date): string => date.toISOString().slice(0, 10)

/** What a count comes to by the end of the month if it grows on as it has: by whole days, so that the first minutes of a month say little. */
export const projected = (used: number, now: Date): number => {
  const days = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate()
  return Math.round((used / now.getUTCDate()) * days)
}

/** A share of a limit: 100 only when the limit is reached, and never more. */
export const share = (used: number, limit: number) => ({
  used,
  limit,
  remaining: Math.max(limit - used, 0),
  percent_used: used >= limit ? 100 : Math.floor((used / limit) * 100)
})
