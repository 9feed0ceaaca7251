/** The calendars that requests name. */
import type { Calendar } from './exclusions.ts'

/** By name. */
export type StoredCalendars = ReadonlyMap<string, Calendar & { name: string; revision: number }>

type Reader = {
  namedCalendars: (args: { account_id: string; names: string[] }) => Promise<(Calendar & { name: string; revision: number })[]>
}

/** Reads an account's calendars. Those that don't exist are left out. */
export const readCalendars = async (fn: Reader, account_id: string, names: readonly string[]): Promise<StoredCalendars> =>
  new Map(names.length > 0 ? (await fn.namedCalendars({ account_id, names: [...names] })).map(calendar => [calendar.name, calendar]) : [])
