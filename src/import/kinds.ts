/** The importers by the kinds of `pgcue import`. */
import { crontab } from './crontab.ts'
import type { Importer } from './entries.ts'
import { eventbridge } from './eventbridge.ts'
import { githubActions } from './github-actions.ts'
import { kubernetes } from './kubernetes.ts'
import { pgCron } from './pg-cron.ts'
import { qstash } from './qstash.ts'
import { vercel } from './vercel.ts'

export const importers = {
  'github-actions': githubActions,
  crontab,
  kubernetes,
  vercel,
  qstash,
  eventbridge,
  pg_cron: pgCron
} satisfies Record<string, Importer>
