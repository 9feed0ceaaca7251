/** How many deliveries this process may hold open: each takes a file descriptor. */
import type { FastifyBaseLogger } from 'fastify'
import { reserveAtMost, sharedAtMost } from './capacity.ts'

/** Descriptors for all else: connections of API callers and to the database, idle sockets of receivers, files. */
const otherFiles = 2000
/** Of a smaller number of deliveries, the part that is reserve is the same. */
const reservePart = reserveAtMost / (sharedAtMost + reserveAtMost)

/**
 * What accounts share of open deliveries and the reserve on top, which holds the fast slots. Less than usual, with a warning, where the
 * system allows few open files: Node has raised the soft limit to the hard one by itself.
 */
export const capacityFor = (concurrency: number, log: Pick<FastifyBaseLogger, 'warn'>, openFiles = openFilesAllowed()) => {
  const usual = { shared: sharedAtMost, reserve: Math.max(reserveAtMost, concurrency) }
  const needed = usual.shared + usual.reserve
  // Half of what there is for very low limits: a development machine delivers little.
  const total = Math.floor(Math.max(openFiles - otherFiles, openFiles / 2))
  if (total >= needed) return usual
  log.warn(
    { open_files: openFiles, open_deliveries: total },
    `open file limit too low for DELIVERY_CONCURRENCY: fewer deliveries run at once; raise it to ${needed + otherFiles} (ulimit -n)`
  )
  const reserve = Math.ceil(total * reservePart)
  return { shared: total - reserve, reserve }
}

const openFilesAllowed = (): number => {
  // What the process is connected to is not asked for: looking up names may take long.
  const report: NodeJS.ProcessReport & { excludeNetwork?: boolean } = process.report
  const before = report.excludeNetwork
  report.excludeNetwork = true
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } }
  report.excludeNetwork = before ?? false
  const allowed = userLimits?.open_files?.soft
  return typeof allowed === 'number' ? allowed : Number.POSITIVE_INFINITY
}
