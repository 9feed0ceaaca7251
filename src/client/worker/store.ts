/** What a worker holds: claims, and reports that the service has not accepted yet. */
import type { Evidence, Report } from '../types.ts'

/** A claim with its proofs. */
export type Held = { execution_id: string; claim_token: string; execution_token: string; attempt: number }

/** A report not yet accepted, and evidence to add afterwards. */
export type Spooled = {
  held: Held
  report: Report
  evidence?: Evidence
  /** Replaces a report that was rejected. */
  second?: boolean
}

type Box<T> = { put: (held: Held, value: T) => void; remove: (held: Held) => void }

/** Keeps what must outlive the process. */
export type Store = {
  claims: Box<Held>
  reports: Box<Spooled>
  /** Reports that the service will never accept. */
  refused: Box<Spooled>
}

export type Log = (event: string, fields?: Record<string, string | number | boolean | null | undefined>) => void
