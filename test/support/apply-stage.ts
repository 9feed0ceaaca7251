import pg from 'pg'
import { build } from './setup.ts'

export const start = '2030-01-07T08:30:00Z'
export const url = 'http://127.0.0.1:5555/hook'
export const hourly = (key: string) => ({ key, name: 'Hourly', cron: '0 * * * *', callback_url: url })
export const env = { PLANS: '{"free":{"cues":1000,"executions_per_month":1000}}' }
export const nothing = { created: [], updated: [], unchanged: [], pruned: [] }

export const stage = async (t: Parameters<typeof build>[0]) => {
  const service = await build(t, start, { env })
  const { call, pool } = service
  return {
    ...service,
    apply: (cues: unknown, options: object = {}) => call('POST', '/v1/cues/apply', { set: 's', cues, ...options }),
    /** Everything an apply could write. */
    stored: async () =>
      (
        await pool.query(
          `select c.key, c.xmin::text, c.ctid::text, r.xmin::text as run_xmin, r.ctid::text as run_ctid, m.xmin::text as room
             from cue.cues c left join cue.cue_runs r on r.cue_id = c.id left join cue.cue_rooms m on m.account_id = c.account_id order by c.id`
        )
      ).rows
  }
}

/** The same, with connections of its own. */
export const withClient = async (t: Parameters<typeof build>[0]) => {
  const service = await stage(t)
  const connect = async () => {
    const client = new pg.Client(service.url)
    client.on('error', () => {})
    await client.connect()
    t.teardown(() => client.end())
    return client
  }
  return { ...service, connect }
}

export const faults = ({ body }: { body: { detail?: { type: string; loc: unknown[] }[] } }) =>
  body.detail?.map(({ type, loc }) => [type, loc.slice(2).join(' ')])
