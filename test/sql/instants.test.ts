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

t.test('a constraint rejects microseconds in whatever engines send back to be compared', async t => {
  const { rows, cue } = await stage(t)
  const id = await cue()
  for (const column of ['next_run', 'next_slot', 'success_due_at', 'excluded_at']) {
    const change = `update cue.cue_runs set ${column} = '2030-01-15T08:00:00.123456Z' where cue_id = $1`
    await t.rejects(rows(change, [id]), { code: '23514', constraint: 'instants_in_milliseconds' }, column)
  }
})
