/** Cost of deleting an account beside many cues and executions of others, in pages touched by PostgreSQL. */
import pg from 'pg'
import t, { type Test } from 'tap'
import { createDatabase } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'

const setUp = async (t: Test) => {
  const { pool, url } = await createDatabase(t)
  const rows = async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows
  // Connections of the pool give up on what takes as long as a million cues.
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query('set session_replication_role = replica')
  const account = async () =>
    (
      await rows(`insert into cue.accounts (id, email, plan, webhook_secret) select id, id || '@example.com', 'scale', 'whsec_' || repeat('a', 64)
                 from gen_random_uuid() as id returning id`)
    )[0]!.id as string
  const addCues = (account_id: string, count: number) =>
    client.query(
      `with c as (
         insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload)
         select 'cue_' || left(md5(random()::text), 12), $1, 'c', 'webhook', 'recurring', '* * * * *', 'http://127.0.0.1/', '{}'
           from generate_series(1, $2::int) returning id, account_id, transport),
       r as (insert into cue.cue_runs (cue_id, account_id, transport) select id, account_id, transport from c)
       insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                   created_at, updated_at)
       select cue.uuid_v7(now()), account_id, id, 'webhook', 'success', 'schedule', now(), '{}', 1, now(), now(), now(), now() from c`,
      [account_id, count]
    )
  /** Deletes a due account of 40 cues with an execution each, ten at a time: the most pages that a batch touched, and all that went. */
  const deleteOne = async () => {
    const leaving = await account()
    await addCues(leaving, 40)
    await rows(
      "insert into cue.deletions (id, account_id, requested_at, due_at) values (gen_random_uuid(), $1, now(), now() - interval '1 minute')",
      [leaving]
    )
    await client.query('analyze cue.cues, cue.executions')
    let most = 0
    let batches = 0
    while ((await rows('select from cue.accounts where id = $1', [leaving])).length > 0 && batches++ < 50) {
      const [{ 'QUERY PLAN': plan }] = (await client.query('explain (analyze, buffers, format json) select cue.delete_due_accounts(10)'))
        .rows
      most = Math.max(most, plan[0].Plan['Shared Hit Blocks'] + plan[0].Plan['Shared Read Blocks'])
    }
    return { most, batches }
  }
  return { rows, account, addCues, deleteOne }
}

t.setTimeout(600_000)
t.test(`deleting a batch of an account reads as much among ${spelled(20_000)} other cues as among few`, async t => {
  const { account, addCues, deleteOne, rows } = await setUp(t)
  const other = await account()
  await addCues(other, 1000)
  await deleteOne() // the first one reads the catalog, too
  const small = await deleteOne()
  await addCues(other, scaled(20_000))
  // A batch also reads the catalog when another session has invalidated it, so the better of two counts.
  const [large] = [await deleteOne(), await deleteOne()].sort((a, b) => a.most - b.most) as [Awaited<ReturnType<typeof deleteOne>>]
  t.comment(small, large)
  t.ok(large.most <= small.most * 1.5 + 50, `${small.most} pages, then ${large.most}`)
  t.same(large.batches, small.batches)
  t.ok(small.batches <= 10, `${small.batches} batches of ten`)
  t.same(await rows('select count(*) from cue.executions where account_id <> $1', [other]), [{ count: 0 }])
})
