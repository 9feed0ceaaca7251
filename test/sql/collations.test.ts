// Ids keep their collation on the way through functions: with that of names, no index of ids would be used.
import t from 'tap'
import { overlapStage } from '../support/overlap-stage.ts'

t.test('creating, changing and deleting cues scans no table of cues', async t => {
  const s = await overlapStage(t)
  const { client } = await s.connect()
  const scans = async () => {
    await client.query('select pg_stat_force_next_flush()')
    return (await client.query("select relname, seq_scan from pg_stat_user_tables where relname in ('cues', 'cue_runs') order by 1")).rows
  }
  const cue = { name: 'x', transport: 'worker', schedule_type: 'recurring', cron: '* * * * *' }
  const before = await scans()
  const created = await client.query('select id from cue.create_each_cue($1, $2, $3, p_actors => $4)', [
    [s.account_id],
    JSON.stringify([cue]),
    [new Date('2030-01-16T00:00:00Z')],
    ['key:1']
  ])
  const { id } = created.rows[0]
  await client.query('select id from cue.create_each_cue($1, $2, $3)', [[s.account_id], JSON.stringify([cue]), [null]])
  await client.query(`select cue.update_cue($1, $2, 1, '{"name": "y"}', p_actor => 'key:1')`, [s.account_id, id])
  await client.query(`select cue.delete_cues($1, $2, p_actor => 'key:1')`, [s.account_id, [id]])
  t.strictSame(await scans(), before)
})
