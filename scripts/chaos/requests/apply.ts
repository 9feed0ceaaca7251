/** `apply` of 500 cues, whose replica is killed at several points of the request. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Stage } from '../stage.ts'
import { createCaller } from './caller.ts'

const cues = 500
const rounds = 10

export const playApply = async (stage: Stage) => {
  const { pool, call, kill, start, end } = await createCaller(stage, 'apply')
  const apply = (round: number) => {
    const declared = Array.from({ length: cues }, (_, n) => ({
      key: `k${n}`,
      name: `round ${round}`,
      cron: '@yearly',
      worker: true,
      payload: { round }
    }))
    return call('POST', '/v1/cues/apply', { set: 'chaos', cues: declared })
  }
  const faults: string[] = []
  const undisturbed: number[] = []
  for (const round of [-2, -1]) {
    const began = performance.now()
    const answer = await apply(round)
    if (answer?.status !== 200) faults.push(`round ${round}: ${JSON.stringify(answer)}`)
    undisturbed.push(performance.now() - began)
  }
  let [all, none] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    const answered = apply(round)
    await delay((undisturbed[1]! * (round + 0.5)) / rounds)
    await kill()
    const answer = await answered
    await start()
    const { rows } = await pool.query('select count(*)::int as changed from cue.cues where name = $1 and deleted_at is null', [
      `round ${round}`
    ])
    const { changed } = rows[0]
    if (changed === cues) all++
    else if (changed === 0) none++
    else faults.push(`round ${round}: ${changed} of ${cues} cues were changed`)
    if (answer?.status === 200 && changed !== cues) faults.push(`round ${round}: was confirmed, and ${changed} cues were changed`)
  }
  const errors = await end()
  const figures = { cues, rounds, all, none, undisturbed_ms: Math.round(undisturbed[1]!), errors_logged: errors.length }
  return { figures, faults: [...faults, ...errors.slice(0, 3)] }
}
