/** Setup for tests of executions through the API. */
import root from 'tap'
import { beginWaiting } from './begin-waiting.ts'
import { build } from './setup.ts'
import { resultsOf } from './stage.ts'

export const start = '2030-01-15T09:00:00.000Z'
export const webhook = { name: 'backup', cron: '* * * * *', callback_url: 'http://127.0.0.1:9999/' }
export const worker = { name: 'report', cron: '* * * * *', worker: true }
export const once = { name: 'reminder', at: '2030-02-01T00:00:00Z', callback_url: 'http://127.0.0.1:9999/' }

let shared: ReturnType<typeof build> | undefined

/** One service for all tests, and an account for each. */
export const service = async () => {
  shared ??= build(root, start)
  const s = await shared
  const { fn, clock, pool, register, as } = s
  clock.set(start)
  const account = await register()
  const calls = as(account)
  const { post } = calls
  const cue = async (body: object = webhook): Promise<string> => {
    const { id } = await post('/v1/cues', body)
    if (!id) throw new Error('no cue was created')
    return id
  }
  const fire = async (cue_id: string, body?: object): Promise<string> => (await post(`/v1/cues/${cue_id}/fire`, body)).id
  const begin = () => beginWaiting(fn, { limit: 100 })
  /** Fires the cue and records the result of its only attempt. */
  const ran = async (cue_id: string, result = {}, body?: object): Promise<string> => {
    const id = await fire(cue_id, body)
    await fn.settleAttempts(
      resultsOf(
        (await begin()).filter(attempt => attempt.execution_id === id),
        result,
        clock.now()
      )
    )
    return id
  }
  const set = (id: string, columns: string) => pool.query(`update cue.executions set ${columns} where id = $1`, [id])
  /** The jobs of these executions, including mails and notifications about them. */
  const jobsOf = async (...ids: string[]) =>
    (await pool.query(`select id, name from pgboss.job where id = any ($1) or data ->> 'execution_id' = any ($1::text[])`, [ids])).rows
  return { ...s, ...calls, account, cue, fire, begin, ran, set, jobsOf }
}
