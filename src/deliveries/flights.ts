/**
 * The flights this engine holds, and their leases. Attempts of a flight are sent only while its lease stands: if this process was frozen, another
 * engine may have taken the flight over. A flight's row stays until the results of all its attempts are written, so that another engine can
 * always recover them.
 */
import { constants } from '../catalog.ts'
import type { Functions } from '../database/functions.ts'

type Flight = { open: number; leasedUntil: number; lapses: boolean }

/** Flight → how many of its attempts have ended. */
export type Ended = ReadonlyMap<number, number>

export type Flights = ReturnType<typeof createFlights>

/** @param leaseMs granted by every statement that begins or extends a flight */
export const createFlights = (fn: Pick<Functions, 'extendFlights' | 'endFlights'>, leaseMs = constants.flightLeaseMs) => {
  const flights = new Map<number, Flight>()
  // Ended by two concurrent statements, neither of which could know that it was the last: their rows are still there.
  const over = new Set<number>()
  // By the latest extension, which may have locked their rows when another statement meant to remove them.
  let extended: ReadonlySet<number> = new Set()
  const lease = `${leaseMs} milliseconds`
  /** Sending stops an eighth of the lease before its end, so that no request starts after another engine may have taken over. */
  const standsUntil = (sentAt: number) => sentAt + leaseMs * (7 / 8)

  return {
    /** For the statements that begin flights, as an interval. */
    lease,

    /** A flight with so many attempts was begun by a statement sent at `sentAt`, on the clock of `performance.now()`. */
    add: (id: number, attempts: number, sentAt: number): void => {
      flights.set(id, { open: attempts, leasedUntil: standsUntil(sentAt), lapses: false })
    },

    /** Whether nothing is in flight here, and no row is left to be removed. */
    get isEmpty() {
      return flights.size === 0 && over.size === 0
    },

    /** Whether attempts of this flight may still be sent. */
    stands: (id: number): boolean => performance.now() < (flights.get(id)?.leasedUntil ?? 0),

    /** Whether this engine holds the flight: false once it was taken over. */
    has: (id: number): boolean => flights.has(id),

    /** The flights whose rows the statement that writes these results may remove. */
    ending: (ended: Ended): number[] => [
      ...over,
      ...[...ended].filter(([id, count]) => flights.get(id)?.open === count && !flights.get(id)!.lapses).map(([id]) => id)
    ],

    /** Results of these flights are written, and the rows of `gone` removed, except for some that are removed again. */
    end: (ended: Ended, gone: number[] = []): void => {
      for (const [id, count] of ended) {
        const flight = flights.get(id)
        if (!flight) continue
        flight.open -= count
        if (flight.open > 0) continue
        flights.delete(id)
        if (!flight.lapses) over.add(id)
      }
      for (const id of gone) if (!extended.has(id)) over.delete(id)
    },

    /** A result of this flight cannot be written: once nothing else of it is open, its lease lapses and another engine recovers the attempt. */
    giveUp: (id: number): void => {
      const flight = flights.get(id)
      if (!flight) return
      flight.lapses = true
      if (--flight.open <= 0) flights.delete(id)
    },

    /** Extends all leases, forgets flights that were taken over, and removes the rows of flights that have ended. */
    extend: async (): Promise<void> => {
      const ids = [...flights.keys()]
      extended = new Set(ids)
      if (ids.length > 0) {
        const sentAt = performance.now()
        const standing = new Set(await fn.extendFlights({ flight_ids: ids, lease }))
        for (const id of ids) {
          const flight = flights.get(id)
          if (!standing.has(id)) flights.delete(id)
          else if (flight) flight.leasedUntil = standsUntil(sentAt)
        }
      }
      const gone = [...over]
      if (gone.length > 0) await fn.endFlights({ flight_ids: gone })
      for (const id of gone) over.delete(id)
    }
  }
}
