/**
 * The flights this engine holds, and their leases. What a flight holds may be sent only while its lease stands: a process that was frozen
 * finds its flights taken over, and what it had not sent yet is no longer its own to send. A flight is held, and its row stays, until the end
 * of every one of its attempts is written: without a row nobody would recover them.
 */
import type { Functions } from '../database/functions.ts'

const leaseMs = 4000
/** Sending stops this much before the lease ends, so that nothing leaves while another engine may take it over. */
const marginMs = 500

type Flight = { open: number; leasedUntil: number; lapses: boolean }

/** Flight → how many of its attempts have ended. */
export type Ended = ReadonlyMap<number, number>

export type Flights = ReturnType<typeof createFlights>

export const createFlights = (fn: Pick<Functions, 'extendFlights' | 'endFlights'>) => {
  const flights = new Map<number, Flight>()
  // Ended by two statements side by side, of which neither could know that it was the last.
  const over = new Set<number>()

  return {
    /** A flight was begun with so many attempts, by a statement sent at `sentAt` on the clock of `performance.now()`. */
    add: (id: number, attempts: number, sentAt: number): void => {
      flights.set(id, { open: attempts, leasedUntil: sentAt + leaseMs - marginMs, lapses: false })
    },

    /** Whether attempts of this flight may still be sent. */
    stands: (id: number): boolean => performance.now() < (flights.get(id)?.leasedUntil ?? 0),

    /** Whether the flight is known: false once it was taken over. */
    has: (id: number): boolean => flights.has(id),

    /** The flights whose rows may go with the statement that writes these ends. */
    ending: (ended: Ended): number[] => [
      ...over,
      ...[...ended].filter(([id, count]) => flights.get(id)?.open === count && !flights.get(id)!.lapses).map(([id]) => id)
    ],

    /** These ends are written, and these rows gone with them. */
    end: (ended: Ended, gone: number[] = []): void => {
      for (const [id, count] of ended) {
        const flight = flights.get(id)
        if (!flight) continue
        flight.open -= count
        if (flight.open > 0) continue
        flights.delete(id)
        if (!flight.lapses) over.add(id)
      }
      for (const id of gone) over.delete(id)
    },

    /** An end of this flight cannot be written: when nothing else of it is open, its lease is let go, and another engine takes it over. */
    giveUp: (id: number): void => {
      const flight = flights.get(id)
      if (!flight) return
      flight.lapses = true
      if (--flight.open <= 0) flights.delete(id)
    },

    /** Extends all leases; what the database no longer has was taken over, and is forgotten. Removes what has ended. */
    extend: async (): Promise<void> => {
      const ids = [...flights.keys()]
      if (ids.length > 0) {
        const sentAt = performance.now()
        const standing = new Set(await fn.extendFlights({ flight_ids: ids, lease: `${leaseMs} milliseconds` }))
        for (const id of ids) {
          const flight = flights.get(id)
          if (!standing.has(id)) flights.delete(id)
          else if (flight) flight.leasedUntil = sentAt + leaseMs - marginMs
        }
      }
      const gone = [...over]
      if (gone.length > 0) await fn.endFlights({ flight_ids: gone })
      for (const id of gone) over.delete(id)
    }
  }
}
