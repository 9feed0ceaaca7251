import t from 'tap'
import { stage } from '../support/stage.ts'

t.test('a slot written in psql with microseconds is rounded to milliseconds and runs', async t => {
  const { rows, run, account_id, cue } = await stage(t)
  const id = await cue()
  await rows(`select cue.update_cue($1, $2, 1, '{"cron": "0 * * * *"}', '2030-01-15T10:00:00.123456Z', '2030-01-15T09:00:00Z')`, [
    account_id,
    id
  ])
  t.same((await run(id)).next_run, new Date('2030-01-15T10:00:00.123Z'))
  const [{ exact }] = await rows("select next_run = '2030-01-15T10:00:00.123Z' as exact from cue.cue_runs where cue_id = $1", [id])
  t.equal(exact, true)
})

t.test('constraints reject a slot with microseconds', async t => {
  const { rows, cue } = await stage(t)
  const id = await cue()
  await t.rejects(rows("update cue.cue_runs set next_run = '2030-01-15T10:00:00.123456Z' where cue_id = $1", [id]), { code: '23514' })
})
