/** Work that may wait for minutes: schedules that run once per cluster, and the deletion of accounts and of deleted cues' histories. */
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import type { Functions } from '../database/functions.ts'
import type { Jobs } from './boss.ts'

type Options = {
  jobs: Jobs
  fn: Functions
  config: Pick<Config, 'eventRetentionDays' | 'executionRetentionDays'>
  release: string
  now: () => number
  log: FastifyBaseLogger
}
type Task = 'minute' | 'hour' | 'day'

const schedules: Record<Task, string> = { minute: '* * * * *', hour: '7 * * * *', day: '13 3 * * *' }

/** Schedules the tasks and works off the queues `housekeeping`, `purges` and `deletions`. */
export const startHousekeeping = async ({ jobs, fn, config, release, now, log }: Options): Promise<void> => {
  const daysAgo = (days: number) => new Date(now() - days * 86_400_000)
  const tasks: Record<Task, () => Promise<void>> = {
    minute: async () => {
      await fn.foldUsage({})
      await fn.requeueAttempts({})
      await fn.recoverStuck({})
      for (let after: string | null = ''; after !== null; ) after = await fn.repairQueues({ after })
      await fn.requeueOperations({})
    },
    hour: async () => {
      await fn.prune({})
      while ((await fn.pruneIdempotencyKeys({})) > 0);
      await fn.requeuePurges({})
      await fn.noteMemoryRelease({ release })
      await deleteAccounts()
    },
    day: async () => {
      await fn.maintainPartitions({})
      await fn.dropOldEvents({ before: daysAgo(config.eventRetentionDays) })
      const before = daysAgo(config.executionRetentionDays)
      const dropped = await fn.dropOldExecutions({ before })
      if (dropped.length > 0) log.info({ dropped }, 'old executions dropped')
      while ((await fn.deleteOldExecutions({ before })) > 0);
      while ((await fn.pruneDeadLetters({})) > 0);
      while ((await fn.prunePayloads({ before })) > 0);
    }
  }
  const deleteAccounts = async () => {
    while ((await fn.deleteDueAccounts({})) > 0);
  }
  await jobs.work<{ task: Task }>('housekeeping', async ({ task }) => tasks[task]?.())
  await jobs.work<{ cue_id: string }>('purges', async ({ cue_id }) => {
    while ((await fn.purgeCue({ cue_id })) > 0);
  })
  await jobs.work('deletions', deleteAccounts)
  for (const [task, cron] of Object.entries(schedules)) await jobs.schedule('housekeeping', task, cron, { task })
}
