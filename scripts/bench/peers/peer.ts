/** A PostgreSQL job queue that can deliver the bench's herd. */

/** The body posted: the job's name, its due time in ISO 8601, and padding up to 200 bytes. */
export type Job = { job: string; due: string; pad: string }

export type Peer = {
  /** Where its tables are. */
  schema: string
  /** Creates the schema, in the bench's process. */
  open: (databaseUrl: string) => Promise<{
    /** Enqueues jobs that wait until they are due. */
    enqueue: (jobs: Job[], due: Date) => Promise<void>
    /** Removes what earlier herds have left, and updates the planner's statistics. */
    tidy: () => Promise<void>
    isEmpty: () => Promise<boolean>
    close: () => Promise<void>
  }>
  /** Starts working in its own process, until that is ended. */
  work: (databaseUrl: string, handle: (job: Job) => Promise<void>) => Promise<void>
}
