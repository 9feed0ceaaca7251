/** A job queue for PostgreSQL that can deliver the bench's herd. */

/** What is posted: the name of the job, when it is due in ISO 8601, and what fills it up to 200 bytes. */
export type Job = { job: string; due: string; pad: string }

export type Peer = {
  /** Makes its schema, in the bench's process. */
  open: (databaseUrl: string) => Promise<{
    /** Enqueues jobs that wait for their instant. */
    enqueue: (jobs: Job[], due: Date) => Promise<void>
    /** What is left of former herds is removed, and the planner knows the table. */
    tidy: () => Promise<void>
    isEmpty: () => Promise<boolean>
    close: () => Promise<void>
  }>
  /** Begins to work, in a process of its own, and goes on until that ends. */
  work: (databaseUrl: string, handle: (job: Job) => Promise<void>) => Promise<void>
}
