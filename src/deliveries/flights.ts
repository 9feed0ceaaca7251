/**
 * The flights this engine holds, and their leases. Attempts of a flight are sent only while its lease stands: if this process was frozen, another
 * engine may have taken the flight over. A flight's row stays until the results of all its attempts are written, so that another engine can
 * always recover them.
 */
import { constants } from '../catalog.ts'
import type { Functions } from '../database/functions.ts'

type Flight = { open: number; leasedUntil: number; lapses: boolean }
type InFlight = { flight_id: number }

export type Flights = ReturnType<typeof createFlights>

/** @param leaseMs granted by every statement that begins or extends a flight */
export const createFlights = (fn: Pick<Functions, 'extendFlights' | 'endFlights'>, leaseMs = constants.flightLeaseMs) => {
  const flights = new Map<number, Flight>()
  // Flights that have ended, whose rows are still there.
  const over = new Set<number>()
  const lease = `${leaseMs} milliseconds`
  /** Sending stops an eighth of the lease before its end, so that no request starts after another engine may have taken over. */
  const standsUntil = (sentAt: number) => sentAt + leaseMs * (7 / 8)

  const end = ({ flight_id }: InFlight) => {
    const flight = flights.get(flight_id)
    if (!flight || --flight.open > 0) return
    flights.delete(flight_id)
    if (!flight.lapses) over.add(flight_id)
  }

  /** Removes the rows of flights that have ended. */
  const removeEnded = async (): Promise<void> => {
    const ids = [...over]
    if (ids.length > 0) await fn.endFlights({ flight_ids: ids })
    for (const id of ids) over.delete(id)
  }

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

    /** The results of these attempts are written, or not wanted. */
    end: (attempts: readonly InFlight[]): void => attempts.forEach(end),

    /** A result cannot be written: once nothing else of its flight is open, the lease lapses and another engine recovers the attempt. */
    giveUp: (attempt: InFlight): void => {
      const flight = flights.get(attempt.flight_id)
      if (flight) flight.lapses = true
      end(attempt)
    },

    /** Extends all leases, forgets flights that were taken over, and removes the rows of those that have ended. */
    extend: async (): Promise<void> => {
      const ids = [...flights.keys()]
      if (ids.length > 0) {
        const sentAt = performance.now()
        const standing = new Set(await fn.extendFlights({ flight_ids: ids, lease }))
        for (const id of ids) {
          const flight = flights.get(id)
          if (!standing.has(id)) flights.delete(id)
          else if (flight) flight.leasedUntil = standsUntil(sentAt)
        }
      }
      await removeEnded()
    },
    removeEnded
  }
}
