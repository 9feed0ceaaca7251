/**
 * Requests that are interrupted:
 *
 *   operation    10,000 replays: the replica is killed twice, PostgreSQL crashes once; each target is acted on exactly once
 *   apply        500 declared cues: the replica is killed at ten points of the request; all or none are changed
 *   idempotency  creates with an Idempotency-Key whose responses are lost: the same key again returns the stored response, and there is one cue
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, call } from '../stage/client.ts'
import { addAccounts, addCues } from '../stage/seed.ts'
import type { Replica, Stage } from '../stage/stage.ts'

type Result = { figures: Record<string, number>; faults: string[] }

/** An account, and a replica that can be killed and replaced. */
const serve = async (stage: Stage, scenario: string) => {
  const { name, url, pool } = await stage.createDatabase(scenario)
  const [account] = await addAccounts(pool, 1)
  const replicas: Replica[] = []
  const start = async () => void replicas.push(await stage.startReplica(`${name}-${replicas.length + 1}`, { DATABASE_URL: url }))
  await start()
  const current = () => replicas.at(-1)!
  return {
    pool,
    account: account!,
    send: (method: string, path: string, body: object, key?: string): Promise<Answer> =>
      call(current().address, method, path, account!.api_key, body, key ? { 'idempotency-key': key } : {}),
    kill: () => current().kill(),
    start,
    end: async ({ figures, faults }: Result): Promise<Result> => {
      await current().stop()
      const errors = replicas.flatMap(replica => replica.errors())
      return { figures: { ...figures, errors_logged: errors.length }, faults: [...faults.slice(0, 10), ...errors.slice(0, 3)] }
    }
  }
}

const playOperation = async (stage: Stage, n: number) => {
  const { pool, account, send, kill, start, end } = await serve(stage, 'operation')
  const [cue] = await addCues(pool, { accounts: [account], count: 1 })
  await pool.query(
    `with e as (
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, ended_at, created_at, updated_at)
       select cue.uuid_v7(now() - n * interval '1 second'), $1, $2, 'worker', 'failed', 'schedule', now(), '{}', now(), now() - n * interval '1 second', now()
         from generate_series(1, $3::int) n returning id, account_id, cue_id)
     insert into cue.dead_letters select *, gen_random_uuid() from e`,
    [account.id, cue, n]
  )
  await pool.query('vacuum analyze cue.executions, cue.dead_letters')
  const began = performance.now()
  const { id, total } = (await send('POST', '/v1/operations', { type: 'replay', filter: { dead: true } })).body
  const read = async () =>
    (await pool.query('select status, done, succeeded, failed, skipped from cue.operation_view where id = $1', [id])).rows[0]
  const reaches = async (share: number) => {
    for (const limit = Date.now() + 600_000; ; await delay(20)) {
      const operation = await read().catch(() => undefined)
      if (operation && (operation.done >= n * share || operation.status !== 'running')) return operation
      if (Date.now() > limit) throw new Error(`the operation does not go on: ${JSON.stringify(operation)}`)
    }
  }
  const interrupt = async (share: number, fault: () => Promise<unknown>) => {
    const { done } = await reaches(share)
    const since = performance.now()
    await fault()
    await reaches((done + 200) / n)
    return Math.round(performance.now() - since)
  }
  const replace = () => kill().then(start)
  const [killed_1_ms, crashed_ms, killed_2_ms] = [
    await interrupt(0.2, replace),
    await interrupt(0.4, stage.crash),
    await interrupt(0.6, replace)
  ]
  const { status, succeeded, failed, skipped } = await reaches(2)
  const ms = Math.round(performance.now() - began)
  const { rows } = await pool.query(
    `select count(*)::int as replays, count(distinct replayed_from)::int as replayed, (select count(*)::int from cue.dead_letters) as left
       from cue.executions where triggered_by = 'replay'`
  )
  const { replays, replayed, left } = rows[0]
  const mustBeNone = { lost: n - replayed, duplicated: replays - replayed, failed, skipped, dead_letters_left: left }
  const faults = Object.entries(mustBeNone).flatMap(([name, value]) => (value > 0 ? `${name}: ${value}` : []))
  if (status !== 'completed' || succeeded !== n) faults.push(`${status}, and ${succeeded} succeeded`)
  return end({ figures: { targets: total, succeeded, replays, ...mustBeNone, killed_1_ms, crashed_ms, killed_2_ms, ms }, faults })
}

const playApply = async (stage: Stage) => {
  const { pool, send, kill, start, end } = await serve(stage, 'apply')
  const [cues, rounds] = [500, 10]
  const apply = (round: number) => {
    const cue = { name: `round ${round}`, cron: '@yearly', worker: true, payload: { round } }
    return send('POST', '/v1/cues/apply', { set: 'chaos', cues: Array.from({ length: cues }, (_, n) => ({ key: `k${n}`, ...cue })) })
  }
  const faults: string[] = []
  await apply(-2)
  const undisturbed = await apply(-1)
  if (undisturbed.status !== 200) faults.push(`undisturbed: ${undisturbed.text}`)
  let [all, none] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    const answering = apply(round)
    await delay((undisturbed.ms * (round + 0.5)) / rounds)
    await kill()
    const { status } = await answering
    await start()
    const { rows } = await pool.query('select count(*)::int as changed from cue.cues where name = $1 and deleted_at is null', [
      `round ${round}`
    ])
    const { changed } = rows[0]
    if (changed === cues) all++
    else if (changed === 0) none++
    else faults.push(`round ${round}: ${changed} of ${cues} cues were changed`)
    if (status === 200 && changed !== cues) faults.push(`round ${round}: was confirmed, and ${changed} cues were changed`)
  }
  return end({ figures: { cues, rounds, all, none, undisturbed_ms: Math.round(undisturbed.ms) }, faults })
}

const playIdempotency = async (stage: Stage) => {
  const { pool, send, kill, start, end } = await serve(stage, 'idempotency')
  const [keys, rounds] = [100, 5]
  const create = (key: string) => send('POST', '/v1/cues', { name: key, cron: '@yearly', worker: true }, key)
  const faults: string[] = []
  let [lost, stored, repeated] = [0, 0, 0]
  for (let round = 0; round < rounds; round++) {
    const names = Array.from({ length: keys }, (_, n) => `round-${round}-${n}`)
    let received = 0
    const creating = names.map(async name => {
      const answer = await create(name)
      if (answer.status !== 0) received++
      return answer
    })
    while (received < 5 + round * 20) await delay(1)
    await kill()
    const answers = await Promise.all(creating)
    await start()
    const { rows } = await pool.query('select name, id from cue.cues where name like $1', [`round-${round}-%`])
    const before = new Map(rows.map(({ name, id }) => [name, id]))
    stored += before.size
    for (const [n, name] of names.entries()) {
      const again = await create(name)
      const isRepeated = again.headers.get('idempotency-replayed') === 'true'
      const { status, text } = answers[n]!
      if (status === 0) lost++
      if (isRepeated) repeated++
      if (again.status !== 201) faults.push(`${name}: ${again.status} ${again.text}`)
      if (before.has(name) !== isRepeated) faults.push(`${name}: existed: ${before.has(name)}, response repeated: ${isRepeated}`)
      if (before.has(name) && before.get(name) !== again.body.id) faults.push(`${name}: another cue was returned`)
      if (status !== 0 && text !== again.text) faults.push(`${name}: another response was returned`)
    }
  }
  const { rows } = await pool.query('select count(*)::int as cues, count(distinct name)::int as names from cue.cues')
  const { cues, names } = rows[0]
  if (cues !== keys * rounds || names !== cues) faults.push(`${cues} cues with ${names} names for ${keys * rounds} keys`)
  const figures = {
    requests: keys * rounds,
    responses_lost: lost,
    created_without_response: stored - (keys * rounds - lost),
    created_before_the_kill: stored,
    responses_repeated: repeated,
    cues,
    duplicated: cues - names
  }
  return end({ figures, faults })
}

export const requests: Record<string, (stage: Stage, n: number) => Promise<Result>> = {
  operation: playOperation,
  apply: playApply,
  idempotency: playIdempotency
}
