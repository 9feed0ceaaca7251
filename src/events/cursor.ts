/** Cursors: a place in the feed, bound to an account, so that one of another account is refused instead of skipping events. */
import { createHash } from 'node:crypto'

const markOf = (account_id: string, place: number): string =>
  createHash('sha256').update(`events ${account_id} ${place}`).digest('base64url').slice(0, 12)

export const cursorOf = (account_id: string, place: number): string =>
  Buffer.from(`${place.toString(36)}.${markOf(account_id, place)}`).toString('base64url')

/** The place of a cursor; undefined if it is malformed, or another account's. */
export const placeOf = (account_id: string, cursor: string): number | undefined => {
  const [digits = '', mark] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  const place = Number.parseInt(digits, 36)
  return Number.isSafeInteger(place) && mark === markOf(account_id, place) && cursorOf(account_id, place) === cursor ? place : undefined
}
