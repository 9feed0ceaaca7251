/** Where mails are without a mail server. */
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { shortPath } from '../files/directories.ts'

/** The folder as people know it; null if mails are sent. Beyond this machine, nobody needs to know the path. */
export const outboxOf = ({ smtpUrl, embedded, dataDir }: Pick<Config, 'smtpUrl' | 'embedded' | 'dataDir'>): string | null =>
  smtpUrl ? null : join(embedded ? shortPath(dataDir) : 'DATA_DIR', 'outbox')
