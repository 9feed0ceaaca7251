/**
 * The flights this engine holds, and their leases. What a flight holds may be sent only while its lease stands: a process that was frozen
 * finds its flights taken over, and what it had not sent yet is no longer its own to send.
 */
import type { Functions } from '../functions.ts'

const leaseMs = 4000
/** Sending stops this much before the lease ends, so that nothing leaves while another engine may take it over. */
const marginMs = 500

type Flight = { open: number; leasedUntil: number }

export type Flights = ReturnType<typeof createFlights>

export const createFlights = (fn: Pick<Functions, 'extendFlights'>) => {
  const flights = new Map<number, Flight>()

  return {
    /** A flight was begun with so many attempts, by a statement sent at `sentAt` on the clock of `performance.now()`. */
    add: (id: number, attempts: number, sentAt: number) => flights.set(id, { open: attempts, leasedUntil: sentAt + leaseMs - marginMs }),

    /** Whether attempts of this flight may still be sent. */
    stands: (id: number): boolean => performance.now() < (flights.get(id)?.leasedUntil ?? 0),

    /** Whether the flight is known: false once it was taken over. */
    has: (id: number): boolean => flights.has(id),

    /** So many attempts of the flight ended; true when none is left, and the row may go. */
    end: (id: number, attempts: number): boolean => {
      const flight = flights.get(id)
      if (!flight) return false
      flight.open -= attempts
      if (flight.open > 0) return false
      flights.delete(id)
      return true
    },

    /** Extends all leases. Flights that the database no longer has were taken over, and are forgotten. */
    extend: async (): Promise<void> => {
      if (flights.size === 0) return
      const ids = [...flights.keys()]
      const sentAt = performance.now()
      const standing = new Set(await fn.extendFlights({ flight_ids: ids, lease: `${leaseMs} milliseconds` }))
      for (const id of ids) {
        const flight = flights.get(id)
        if (!standing.has(id)) flights.delete(id)
        else if (flight) flight.leasedUntil = sentAt + leaseMs - marginMs
      }
    },

    get size() {
      return flights.size
    }
  }
}
