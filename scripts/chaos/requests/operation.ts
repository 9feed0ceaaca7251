/** An operation of many replays, whose replica is killed twice, and PostgreSQL once. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Stage } from '../stage.ts'
import { createCaller } from './caller.ts'

const patienceMs = 600_000

export const playOperation = async (stage: Stage, n: number) => {
  const { pool, account_id, call, kill, start, end } = await createCaller(stage, 'operation')
  const cue = (await call('POST', '/v1/cues', { name: 'failed', cron: '@yearly', worker: true }))!.body as { id: string }
  await pool.query(
    `with e as (
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, ended_at, created_at, updated_at)
       select cue.uuid_v7(now() - n * interval '1 second'), $1, $2, 'worker', 'failed', 'schedule', now(), '{}', now(), now() - n * interval '1 second', now()
         from generate_series(1, $3::int) n returning id, account_id, cue_id)
     insert into cue.dead_letters select *, gen_random_uuid() from e`,
    [account_id, cue.id, n]
  )
  await pool.query('vacuum analyze cue.executions, cue.dead_letters')
  const began = performance.now()
  const created = (await call('POST', '/v1/operations', { type: 'replay', filter: { dead: true } }))!.body as { id: string; total: number }
  const read = async () =>
    (await pool.query('select status, done, succeeded, failed, skipped from cue.operation_view where id = $1', [created.id])).rows[0]
  const reaches = async (share: number) => {
    for (const limit = performance.now() + patienceMs; ; await delay(20)) {
      const operation = await read().catch(() => undefined)
      if (operation && (operation.done >= n * share || operation.status !== 'running')) return operation
      if (performance.now() > limit) throw new Error(`the operation does not go on: ${JSON.stringify(operation)}`)
    }
  }
  const interrupted: number[] = []
  const interrupt = async (share: number, fault: () => Promise<void>) => {
    const { done } = await reaches(share)
    const since = performance.now()
    await fault()
    await reaches((done + 200) / n)
    interrupted.push(Math.round(performance.now() - since))
  }
  const replace = async () => {
    await kill()
    await start()
  }
  await interrupt(0.2, replace)
  await interrupt(0.4, stage.crash)
  await interrupt(0.6, replace)
  const ended = await reaches(2)
  const ms = Math.round(performance.now() - began)
  const { rows } = await pool.query(
    `select count(*)::int as replays, count(distinct replayed_from)::int as replayed from cue.executions where triggered_by = 'replay'`
  )
  const left = (await pool.query('select count(*)::int as count from cue.dead_letters')).rows[0].count
  const errors = await end()
  const figures = {
    targets: created.total,
    succeeded: ended.succeeded,
    failed: ended.failed,
    skipped: ended.skipped,
    replays: rows[0].replays,
    lost: n - rows[0].replayed,
    duplicated: rows[0].replays - rows[0].replayed,
    dead_letters_left: left,
    killed_1_ms: interrupted[0]!,
    crashed_ms: interrupted[1]!,
    killed_2_ms: interrupted[2]!,
    ms,
    errors_logged: errors.length
  }
  const faults = (['lost', 'duplicated', 'failed', 'skipped', 'dead_letters_left', 'errors_logged'] as const)
    .filter(name => figures[name] > 0)
    .map(name => `${name}: ${figures[name]}`)
  if (ended.status !== 'completed' || ended.succeeded !== n) faults.push(`ended as ${JSON.stringify(ended)}`)
  return { figures, faults: [...faults, ...errors.slice(0, 3)] }
}
