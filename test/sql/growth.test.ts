// Limits on everything that requests alone could make grow.
import t from 'tap'
import { stage } from '../support/stage.ts'

t.test('an account has at most 1,000 workers; a new one replaces the one silent longest', async t => {
  const { fn, rows, account, account_id, clock } = await stage(t)
  const other = await account()
  const add = (id: string, prefix: string) =>
    rows(`insert into cue.workers select $1, $2 || g, '{}', $3::timestamptz + g * interval '1 ms', $3 from generate_series(1, 1000) g`, [
      id,
      prefix,
      clock.now()
    ])
  await add(account_id, 'w')
  await add(other, 'w')
  clock.advance('1 minute')
  await fn.heartbeatWorker({ account_id, worker_id: 'w1', handlers: [] })
  await fn.heartbeatWorker({ account_id, worker_id: 'new', handlers: [] })
  const names = async (id: string) =>
    new Set((await rows('select worker_id from cue.workers where account_id = $1', [id])).map(row => row.worker_id))
  const mine = await names(account_id)
  t.equal(mine.size, 1000)
  t.same([mine.has('new'), mine.has('w1'), mine.has('w2'), mine.has('w3')], [true, true, false, true])
  t.equal((await names(other)).size, 1000)
})

t.test('an execution can be released 100 times; further releases count as claims', async t => {
  const { fn, cue, account_id, rows, attempts, execution } = await stage(t)
  const cue_id = await cue({ transport: 'worker', callback_url: null, retry_max_attempts: 2 }, { next_run: null })
  const { id } = await fn.fireCue({ account_id, cue_id })
  const giveBack = async () => {
    const [claim] = await fn.claimExecutions({ account_id, worker_id: 'w', execution_id: id })
    await fn.releaseExecution({ account_id, execution_id: id, claim_token: claim!.claim_token })
    return (await execution(id)).status
  }
  t.equal(await giveBack(), 'pending')
  await rows('update cue.executions set attempts = 99, lost_attempts = 99 where id = $1', [id])
  t.same([await giveBack(), await giveBack(), await giveBack()], ['pending', 'pending', 'missed'])
  t.equal((await attempts(id)).length, 4)
})

t.test('an account has at most 1,000 sessions; a new one replaces the oldest', async t => {
  const { fn, rows, row, account_id, clock } = await stage(t)
  await rows(
    `insert into cue.sessions select gen_random_uuid(), $1, $2::timestamptz + g * interval '1 ms', $2::timestamptz + interval '1 year'
       from generate_series(1, 1000) g`,
    [account_id, clock.now()]
  )
  const [oldest, newest] = await rows('select id from cue.sessions order by created_at').then(all => [all[0], all.at(-1)])
  clock.advance('1 minute')
  const { session_id } = await fn.refreshSession({ account_id, actor: `session:${newest.id}`, ip: '127.0.0.1' })
  t.equal((await row('select count(*)::int as n from cue.sessions')).n, 1000)
  t.same(await rows('select from cue.sessions where id = $1', [oldest.id]), [])
  t.equal((await rows('select from cue.sessions where id = any ($1)', [[newest.id, session_id]])).length, 2)
})

t.test('a key has at most 20 sessions; a new one replaces its oldest, and none of others', async t => {
  const { fn, rows, account_id, clock } = await stage(t)
  await rows(
    `insert into cue.sessions select gen_random_uuid(), $1, $2, $2::timestamptz + interval '1 year' from generate_series(1, 900)`,
    [account_id, clock.now()]
  )
  const open = async (key_hash: Buffer) => {
    clock.advance('1 second')
    return (await fn.openKeySession({ key_hash })).session_id
  }
  const [reader, other] = [Buffer.from('reader'), Buffer.from('other')]
  for (const key_hash of [reader, other]) await fn.createKey({ account_id, label: 'k', key_hash, prefix: 'svc_sk_12345', scopes: ['read'] })
  const theirs = await open(other)
  const opened: string[] = []
  for (let n = 0; n < 20; n++) opened.push(await open(reader))
  const left = async () => (await rows('select id from cue.sessions where id = any ($1)', [[...opened, theirs]])).length
  t.equal(await left(), 21)
  await Promise.all([open(reader), open(reader), open(reader)])
  t.same(await rows('select from cue.sessions where id = any ($1)', [opened.slice(0, 3)]), [])
  t.equal(await left(), 18)
  clock.advance('1 second')
  await fn.refreshSession({ account_id, actor: `session:${opened.at(-1)}` })
  t.equal(await left(), 17, 'a renewed session counts as one of the key')
  t.same(await rows('select key_id is null as alone, count(*)::int from cue.sessions group by 1 order by 1'), [
    { alone: false, count: 21 },
    { alone: true, count: 900 }
  ])
})

t.test('the audit log keeps the newest 10,000 entries of each repeatable request, and all others', async t => {
  const { fn, rows, account_id, account, clock } = await stage(t)
  const other = await account()
  for (const [id, count] of [
    [account_id, 10_030],
    [other, 500]
  ]) {
    await rows(
      `insert into cue.audit_events (id, account_id, event, actor, created_at)
       select gen_random_uuid(), $1, case when g in (1, 5) then 'key.created' else 'account.updated' end::cue.audit_event, 'key:x', $2
         from generate_series(1, $3) g order by g`,
      [id, clock.now(), count]
    )
  }
  await fn.prune({})
  const counts = await rows('select account_id, event, count(*)::int as n from cue.audit_events group by 1, 2')
  const count = (id: string, event: string) => counts.find(row => row.account_id === id && row.event === event).n
  t.same(
    [count(account_id, 'account.updated'), count(account_id, 'key.created'), count(other, 'account.updated'), count(other, 'key.created')],
    [10_000, 2, 498, 2]
  )
  await rows(
    `insert into cue.audit_events (id, account_id, event, actor, detail, created_at)
     select gen_random_uuid(), $1, 'session.created', 'key:x', case when g > 3 then '{"key_id": "k"}' else '{}' end::jsonb, $2
       from generate_series(1, 10_010) g order by g`,
    [account_id, clock.now()]
  )
  await fn.prune({})
  const left = await rows('select event, detail, count(*)::int as n from cue.audit_events where account_id = $1 group by 1, 2', [
    account_id
  ])
  t.same(
    left.map(({ event, n }) => `${n} ${event}`).sort(),
    ['10000 account.updated', '10000 session.created', '2 key.created', '3 session.created'],
    'sessions that a key opens displace only each other, and those of a mailed link stay'
  )
})

t.test('changes of cues have their own 10,000 entries, and displace no others', async t => {
  const { fn, rows, account_id, clock } = await stage(t)
  await rows(
    `insert into cue.audit_events (id, account_id, event, actor, created_at)
     select gen_random_uuid(), $1, case when g % 100 = 0 then 'key.revealed' else 'cue.updated' end::cue.audit_event, 'key:x', $2
       from generate_series(1, 20000) g order by g`,
    [account_id, clock.now()]
  )
  await fn.prune({})
  t.same(await rows('select event, count(*)::int as n from cue.audit_events group by 1 order by 1'), [
    { event: 'key.revealed', n: 200 },
    { event: 'cue.updated', n: 10_000 }
  ])
})

t.test('stores at most 1,000 echoes, not counting expired and replaced ones', async t => {
  const { fn, rows, clock } = await stage(t)
  const store = (token: string) => fn.storeEcho({ token, payload: '1', headers: {}, address: null })
  await rows(
    `insert into cue.echoes select 'a-token-of-a-test-' || g, '0', '{}', $1::timestamptz, $1::timestamptz + interval '5 minutes' from generate_series(1, 1000) g`,
    [clock.now()]
  )
  await t.rejects(store('one-token-too-many'), {
    code: 'QU031',
    message: 'The echo buffer is full. Try again in five minutes.',
    detail: '300'
  })
  await store('a-token-of-a-test-1')
  clock.advance('5 minutes')
  await store('one-token-too-many')
  t.same(await rows(`select payload from cue.echoes where token = 'one-token-too-many'`), [{ payload: '1' }])
  t.equal((await rows('select from cue.echoes')).length, 991)
})
