import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { eventually } from '../support/setup.ts'

const service = serviceAt()

t.test("an account's lists are read one after another; other accounts and its other requests don't wait for them", async t => {
  const { get, other, cue, row, pool } = await service()
  const { calls } = await other()
  const cue_id = await cue()
  const blocker = await pool.connect()
  await blocker.query('begin; lock table cue.alerts, cue.tickets in access exclusive mode')
  const lists = ['/v1/alerts', '/v1/alerts?limit=2', '/v1/support'].map(path => get(path))
  const others = calls.get('/v1/alerts')
  const blocked = async () =>
    (await row("select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")).n
  await eventually(async () => (await blocked()) === 4) // each list has two statements: its rows and their number
  exactly(t, await get(`/v1/cues/${cue_id}`), { id: cue_id })
  t.equal(await blocked(), 4)
  await blocker.query('commit')
  blocker.release()
  for (const list of await Promise.all([...lists, others])) exactly(t, list, { total: 0 })
})
