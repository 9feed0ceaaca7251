/**
 * Releases executions that wait at gates. Whatever makes room does so in its own transaction; this does it for what another transaction could not see:
 * after a notification that something waits, and every second for all gates, which also ends what has waited too long.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Functions } from '../database/functions.ts'

/** Between two calls, so that those of a flood are one. */
const gatherMs = 10
/** Gates released in one call. */
const batch = 200

export const createGates = ({ fn }: { fn: Pick<Functions, 'releaseGates' | 'admitHeld'> }) => {
  const noticed = new Set<string>()
  let after: string | null = null

  return {
    /** Something waits at a gate: `payload` is its account, and its key with the part. */
    notice: (payload: string): void => void noticed.add(payload),
    /** Releases executions at the gates that were noticed. */
    release: async (): Promise<void> => {
      while (noticed.size > 0) {
        await delay(gatherMs)
        const payloads = [...noticed].slice(0, batch)
        const gates = payloads.map(payload => [payload.slice(0, 36), payload.slice(37)] as const)
        for (const payload of payloads) noticed.delete(payload)
        await fn.releaseGates({ account_ids: gates.map(([account]) => account), gates: gates.map(([, gate]) => gate) })
      }
    },
    /** Goes on with the next gates, a batch at a time: very many may have something waiting. */
    sweep: async (): Promise<void> => {
      after = await fn.admitHeld({ after: after ?? '' })
    }
  }
}
