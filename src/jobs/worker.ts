/**
 * Runs the jobs of a queue one by one. Those that call users' servers run many at a time, but few per account across the cluster, so that a hanging
 * server delays only the jobs of its own account.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { JobWithMetadata, PgBoss } from 'pg-boss'
import { inTime } from '../errors.ts'

type Options<T> = {
  boss: Pick<PgBoss, 'fetch' | 'complete' | 'fail'>
  queue: string
  /** Maximum running jobs per account; undefined to run all one by one. */
  perAccount: number | undefined
  pollSeconds: number
  handle: (job: JobWithMetadata<T>) => Promise<void>
  warn: (error: unknown, what: string, fields: object) => void
}

/** Maximum running jobs in one replica, with `perAccount`. */
const mostAtOnce = 100
const batchSize = 20

/** Starts working off a queue: fetches at once, on `look`, and every `pollSeconds`. If `handle` rejects, pg-boss retries the job. */
export const startWorker = <T extends object>({ boss, queue, perAccount, pollSeconds, handle, warn }: Options<T>) => {
  const atOnce = perAccount === undefined ? 1 : mostAtOnce
  const underWay = new Map<string, JobWithMetadata<T>>()
  let isLooking = false
  let isAsked = false
  let stopped = false

  /** Fetches jobs, one fetch at a time; a call meanwhile makes it fetch again. */
  const look = async () => {
    isAsked = true
    if (isLooking) return
    isLooking = true
    try {
      while (isAsked && !stopped && underWay.size < atOnce) {
        isAsked = false
        const limit = Math.min(batchSize, atOnce - underWay.size)
        const jobs = await boss.fetch<T>(queue, {
          batchSize: limit,
          includeMetadata: true,
          ...(perAccount && { groupConcurrency: perAccount })
        })
        for (const job of jobs) void run(job)
        // Only some jobs of a busy account were fetched; jobs of others may follow.
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
        await inTime(handle(job), job.expireInSeconds * 1000)
      } catch (error) {
        await boss.fail(queue, attempt, { message: (error as Error).message })
        return
      }
      await boss.complete(queue, attempt)
    } catch (error) {
      // The job expires and runs again.
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
    /** Stops fetching, waits for running jobs up to `timeoutMs`, and returns the others to the queue. */
    stop: async (timeoutMs: number) => {
      stopped = true
      clearInterval(poll)
      for (const end = Date.now() + timeoutMs; underWay.size > 0 && Date.now() < end; ) await delay(20)
      const unfinished = [...underWay.values()].map(({ id, retryCount }) => ({ id, retryCount }))
      // Else they expire.
      const returned = unfinished.length > 0 && boss.fail(queue, unfinished, { message: 'the service stopped' })
      await Promise.resolve(returned).catch(error => warn(error, 'running jobs not returned to their queues', { queue }))
    }
  }
}
