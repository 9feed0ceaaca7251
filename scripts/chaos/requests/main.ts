/**
 * Requests that are interrupted: `npm run chaos -- requests` kills the replica that works on them, and PostgreSQL.
 *
 *   operation    10,000 replays: the replica is killed twice, PostgreSQL crashes once; each target is acted on exactly once
 *   apply        500 declared cues: the replica is killed at ten points of the request; all or none are changed
 *   idempotency  creates with an Idempotency-Key whose responses are lost: the same key again returns the stored response, and there is one cue
 *
 * Prints the figures of each as JSON. Exits with 1 if one of them is wrong.
 */
import { openStage, type Stage } from '../stage.ts'
import { playApply } from './apply.ts'
import { playIdempotency } from './idempotency.ts'
import { playOperation } from './operation.ts'

export type Result = { figures: Record<string, number>; faults: string[] }
const plays: Record<string, (stage: Stage, n: number) => Promise<Result>> = {
  operation: playOperation,
  apply: playApply,
  idempotency: playIdempotency
}

export const playRequests = async (names: string[], n: number): Promise<boolean> => {
  const unknown = names.find(name => !plays[name])
  if (unknown) throw new Error(`there is no ${unknown}; there are ${Object.keys(plays).join(', ')}`)
  const stage = openStage()
  let failed = false
  let closing: Promise<void> | undefined
  const close = () => (closing ??= stage.close(failed))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void close().then(() => process.exit(130)))
  try {
    const open = await stage.open()
    for (const name of names.length > 0 ? names : Object.keys(plays)) {
      const { figures, faults } = await plays[name]!(open, n)
      console.log(JSON.stringify({ scenario: name, figures, faults }))
      failed ||= faults.length > 0
    }
    if (failed) console.log(`The logs are in ${open.dir}`)
  } catch (error) {
    if (!closing) {
      failed = true
      throw error
    }
  } finally {
    await close()
  }
  return !failed
}
