/** Creates with an Idempotency-Key whose responses are lost, because the replica was killed. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Stage } from '../stage.ts'
import { createCaller } from './caller.ts'

const keys = 100
const rounds = 5

export const playIdempotency = async (stage: Stage) => {
  const { pool, call, kill, start, end } = await createCaller(stage, 'idempotency')
  const create = (key: string) => call('POST', '/v1/cues', { name: key, cron: '@yearly', worker: true }, key)
  const faults: string[] = []
  let [lost, stored, repeated] = [0, 0, 0]
  for (let round = 0; round < rounds; round++) {
    const names = Array.from({ length: keys }, (_, n) => `round-${round}-${n}`)
    let received = 0
    const first = names.map(async name => {
      const answer = await create(name)
      if (answer) received++
      return answer
    })
    while (received < 5 + round * 20) await delay(1)
    await kill()
    const answers = await Promise.all(first)
    await start()
    const { rows } = await pool.query('select name, id from cue.cues where name like $1', [`round-${round}-%`])
    const before = new Map(rows.map(({ name, id }) => [name, id]))
    stored += before.size
    for (const [n, name] of names.entries()) {
      const again = await create(name)
      const { id } = (again?.body ?? {}) as { id?: string }
      const answered = answers[n]?.body
      if (!answered) lost++
      if (again?.isRepeated) repeated++
      if (again?.status !== 201) faults.push(`${name}: ${JSON.stringify(again)}`)
      if (before.has(name) !== again?.isRepeated)
        faults.push(`${name}: existed: ${before.has(name)}, response repeated: ${again?.isRepeated}`)
      if (before.has(name) && before.get(name) !== id) faults.push(`${name}: another cue was returned`)
      if (answered && JSON.stringify(answered) !== JSON.stringify(again?.body)) faults.push(`${name}: another response was returned`)
    }
  }
  const { rows } = await pool.query('select count(*)::int as cues, count(distinct name)::int as names from cue.cues')
  const { cues, names } = rows[0]
  if (cues !== keys * rounds || names !== cues) faults.push(`${cues} cues with ${names} names for ${keys * rounds} keys`)
  const errors = await end()
  const figures = {
    requests: keys * rounds,
    responses_lost: lost,
    created_without_response: stored - (keys * rounds - lost),
    created_before_the_kill: stored,
    responses_repeated: repeated,
    cues,
    duplicated: cues - names,
    errors_logged: errors.length
  }
  return { figures, faults: [...faults.slice(0, 10), ...errors.slice(0, 3)] }
}
