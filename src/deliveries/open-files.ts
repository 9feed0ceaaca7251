/** How many deliveries this process can have open: each needs file descriptors. */
import type { FastifyBaseLogger } from 'fastify'
import { reserveAtMost, sharedAtMost } from './capacity.ts'

/** Descriptors for everything else: connections of API callers and to the database, idle sockets of receivers, files. */
const otherFiles = 2000
/** After a burst, connections stay idle for a few seconds, while other receivers need new ones. */
const filesPerDelivery = 1.5
/** The reserve's part of the total, also of a smaller total. */
const reservePart = reserveAtMost / (sharedAtMost + reserveAtMost)

/**
 * Returns the open deliveries that accounts share, and the reserve, which must hold the fast slots. Both are smaller, with a warning, if the
 * system allows too few open files, which the engines of a process share. (Node has already raised the soft limit to the hard one.)
 */
export const capacityFor = (concurrency: number, log: Pick<FastifyBaseLogger, 'warn'>, openFiles = openFilesAllowed(), engines = 1) => {
  const usual = { shared: sharedAtMost, reserve: Math.max(reserveAtMost, concurrency) }
  const needed = usual.shared + usual.reserve
  // At least half of a very low limit: development machines deliver little.
  const total = Math.floor(Math.max(openFiles - otherFiles, openFiles / 2) / filesPerDelivery / engines)
  if (total >= needed) return usual
  log.warn(
    { open_files: openFiles, open_deliveries: total },
    `open file limit too low for DELIVERY_CONCURRENCY: fewer deliveries run at once; raise it to ${needed * filesPerDelivery * engines + otherFiles} (ulimit -n)`
  )
  const reserve = Math.ceil(total * reservePart)
  return { shared: total - reserve, reserve }
}

const openFilesAllowed = (): number => {
  // Without network details, which would look up names of peers and may take long.
  const report: NodeJS.ProcessReport & { excludeNetwork?: boolean } = process.report
  const before = report.excludeNetwork
  report.excludeNetwork = true
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } }
  report.excludeNetwork = before ?? false
  const allowed = userLimits?.open_files?.soft
  return typeof allowed === 'number' ? allowed : Number.POSITIVE_INFINITY
}
