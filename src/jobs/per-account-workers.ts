/**
 * Works off a queue of jobs that wait for other people's servers: many at a time, but few of one account, in the whole cluster. So a server
 * that hangs holds up its own account's jobs, and nobody else's.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { JobWithMetadata, PgBoss } from 'pg-boss'

type Options<T> = {
  boss: Pick<PgBoss, 'fetch' | 'complete' | 'fail'>
  queue: string
  /** How many jobs of one account may be under way. */
  perAccount: number
  pollSeconds: number
  handle: (data: T, id: string, tries: number) => Promise<void>
  warn: (error: unknown, what: string, fields: object) => void
}

/** In one replica. */
const atOnce = 100
const batchSize = 20

export const workPerAccount = <T extends object>({ boss, queue, perAccount, pollSeconds, handle, warn }: Options<T>) => {
  const underWay = new Map<string, JobWithMetadata<T>>()
  let isLooking = false
  let isAsked = false
  let stopped = false

  /** One look at a time; who asks meanwhile has it look again. */
  const look = async () => {
    isAsked = true
    if (isLooking) return
    isLooking = true
    try {
      while (isAsked && !stopped && underWay.size < atOnce) {
        isAsked = false
        const limit = Math.min(batchSize, atOnce - underWay.size)
        const jobs = await boss.fetch<T>(queue, { batchSize: limit, includeMetadata: true, groupConcurrency: perAccount })
        for (const job of jobs) void run(job)
        // Of one account's many only some were taken: behind them are others'.
        if (jobs.length > 0) isAsked = true
      }
    } catch (error) {
      warn(error, 'fetching jobs failed', { queue })
    } finally {
      isLooking = false
    }
  }

  const run = async (job: JobWithMetadata<T>) => {
    const attempt = { id: job.id, retryCount: job.retryCount }
    underWay.set(job.id, job)
    try {
      try {
        await handle(job.data, job.id, job.retryCount)
      } catch (error) {
        warn(error, 'job failed', { queue, job_id: job.id })
        await boss.fail(queue, attempt, { message: (error as Error).message })
        return
      }
      await boss.complete(queue, attempt)
    } catch (error) {
      // It expires, and is done again.
      warn(error, 'job result not recorded', { queue, job_id: job.id })
    } finally {
      underWay.delete(job.id)
      void look()
    }
  }

  const poll = setInterval(look, pollSeconds * 1000)
  void look()

  return {
    look,
    /** Takes nothing more, and waits for what is under way; gives back what takes longer. */
    stop: async (timeoutMs: number) => {
      stopped = true
      clearInterval(poll)
      for (const end = Date.now() + timeoutMs; underWay.size > 0 && Date.now() < end; ) await delay(20)
      const left = [...underWay.values()].map(({ id, retryCount }) => ({ id, retryCount }))
      // Else they expire.
      const given = left.length > 0 && boss.fail(queue, left, { message: 'the service stopped' })
      await Promise.resolve(given).catch(error => warn(error, 'running jobs not returned to their queues', { queue }))
    }
  }
}
