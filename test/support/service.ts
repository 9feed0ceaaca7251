/** One service for all tests of a file, emptied for each: creating a database takes longer than most tests. */
import root from 'tap'
import { type Account, build } from './setup.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of any shape
type Row = any

/**
 * Returns a function that resets the service to one new account, whose key every call carries; at the given time, or
 * otherwise in real time.
 */
export const serviceAt = (start?: string) => {
  let building: ReturnType<typeof build> | undefined
  return async () => {
    const isNew = building === undefined
    building ??= build(root, start, { env: { PLANS: '{"free": {"cues": 1000, "executions_per_month": 1000000}}' } })
    const service = await building
    // It would keep the rows of earlier tests.
    if (!isNew && !(await service.empty())) throw new Error('an earlier test changed the schema, or has queries under way')
    await service.fn.setPlans({ plans: service.config.plans })
    if (start) service.clock.set(start)
    const account = await service.register()
    const calls = service.as(account)
    const rows = async (text: string, values: unknown[] = []): Promise<Row[]> => (await service.pool.query(text, values)).rows
    const row = async (text: string, values: unknown[] = []): Promise<Row> => (await rows(text, values))[0]

    /** Creates a cue of this account, or of another: a worker cue unless it has a callback. */
    const cue = async (columns: object = {}, by = calls): Promise<string> => {
      const transport = 'callback' in columns ? {} : { worker: true, payload: { task: 'go' } }
      const { status, body } = await by.call('POST', '/v1/cues', { name: 'job', cron: '@hourly', ...transport, ...columns })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body.id
    }
    /** Creates a waiting execution of a cue, from the eleventh per hour on by replaying. */
    const fire = async (cue_id: string, body: object = {}, by = calls): Promise<string> => {
      const answer = await by.call('POST', `/v1/cues/${cue_id}/fire`, body)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return answer.body.id
    }
    return {
      ...service,
      ...calls,
      account,
      rows,
      row,
      cue,
      fire,
      claim: (id: string, worker_id = 'w1', by = calls) => by.post(`/v1/executions/${id}/claim`, { worker_id }),
      execution: (id: string) => row('select * from cue.executions where id = $1', [id]),
      attempts: (id: string) => rows('select * from cue.attempt_view where execution_id = $1 order by attempt', [id]),
      run: (cue_id: string) => row('select r.*, c.status from cue.cue_runs r join cue.cues c on c.id = r.cue_id where c.id = $1', [cue_id]),
      jobs: (queue: string) => rows('select data, start_after from pgboss.job where name = $1 order by created_on, id', [queue]),
      other: async (): Promise<{ account: Account; calls: typeof calls }> => {
        const account = await service.register()
        return { account, calls: service.as(account) }
      }
    }
  }
}

/** Adds waiting executions of a worker cue, a millisecond apart, bypassing the limits of API and plan. Returns their ids, oldest first. */
export const addWaiting = async (
  { pool, clock }: { pool: { query: (text: string, values: unknown[]) => Promise<{ rows: Row[] }> }; clock: { now: () => Date } },
  cue_id: string,
  count: number,
  task: string | null = 'go'
): Promise<string[]> => {
  const at = clock.now()
  const ids: string[] = []
  // In statements of at most a few seconds, even on a busy machine.
  for (let first = 1; first <= count; first += 10_000) {
    const { rows } = await pool.query(
      `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, task, claimable_at,
                                 claim_deadline_at, created_at, updated_at)
     select cue.uuid_v7(w.at), c.account_id, c.id, 'worker', 'pending', 'schedule', w.at, c.payload, $3, w.at, $4::timestamptz + interval '7 days', $4, $4
       from cue.cues c cross join generate_series($5::int, least($5 + 9999, $2)) as g (n)
      cross join lateral (select $4::timestamptz - ($2 - g.n) * interval '1 millisecond' as at) w
      where c.id = $1
     returning id`,
      [cue_id, count, task, at, first]
    )
    for (const { id } of rows) ids.push(id)
  }
  return ids.sort()
}
