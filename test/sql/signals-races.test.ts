// Signals between transactions: parents that end at once, engines that meet, and locked rows.
import t from 'tap'
import { chainStage } from '../support/chain-stage.ts'
import { exactly } from '../support/exactly.ts'
import { cases, shuffled } from '../support/seed.ts'

const rounds = cases(60)

t.test(`two parents that end in the same millisecond start their follower once (${rounds} times)`, async t => {
  const s = await chainStage(t)
  const connections = [await s.connect(), await s.connect()]
  const engines = connections.map(({ fn }) => fn)
  const [a, b] = [await s.parent(), await s.parent()]
  const f = await s.follower({ cues: [a, b] })
  const expected: string[][] = []
  for (let round = 0; round < rounds; round++) {
    const attempts = [await s.begun(a), await s.begun(b)]
    expected.push(attempts.map(({ execution_id }) => execution_id))
    // Each sees nothing of the other before its commit.
    for (const { client } of connections) await client.query('begin')
    for (const [n, attempt] of attempts.entries()) await s.finish([attempt], engines[n])
    for (const { client } of shuffled(connections)) {
      await client.query('commit')
      if (round % 3 === 0) await s.start()
    }
    await Promise.all([s.start(engines[0]), s.start(engines[1]), s.start()])
    await s.start()
    s.clock.advance('1 millisecond')
  }
  t.same(await s.followed(f), expected)
})

t.test('a crash before the commit of an end, or of a start, changes nothing', async t => {
  const s = await chainStage(t)
  const { client, fn } = await s.connect()
  const a = await s.parent()
  const f = await s.follower({ cues: [a] })
  const attempt = await s.begun(a)
  await client.query('begin')
  await s.finish([attempt], fn)
  await client.query('rollback')
  t.same(await s.signals(f), [])
  await s.finish([attempt])
  await s.finish([attempt])
  t.equal((await s.signals(f)).length, 1)
  await client.query('begin')
  await s.start(fn)
  await client.query('rollback')
  t.same(await s.followed(f), [])
  exactly(t, await s.signals(f), [{ is_new: true }])
  await s.start()
  t.same(await s.followed(f), [[attempt.execution_id]])
})

t.test('neither the end of a parent nor other followers wait for a locked follower', async t => {
  const s = await chainStage(t)
  const { client } = await s.connect()
  const a = await s.parent()
  const [locked, free] = [await s.follower({ cues: [a] }), await s.follower({ cues: [a] })]
  for (const query of ['select from cue.cues where id = $1 for update', 'select from cue.cue_runs where cue_id = $1 for update']) {
    await client.query('begin')
    await client.query(query, [locked])
    const id = await s.ran(a)
    t.equal(await s.start(), true, 'is behind')
    t.same((await s.followed(free)).at(-1), [id])
    await client.query('rollback')
    t.equal(await s.start(), false)
    t.same((await s.followed(locked)).at(-1), [id])
  }
})

t.test('a chain of 20 cues, of webhooks and workers: each link runs once per lineage, in spite of crashes', async t => {
  const s = await chainStage(t)
  const { client, fn: crashing } = await s.connect()
  const { fn, account_id } = s
  const worker = { transport: 'worker', callback_url: null }
  const links = [await s.parent()]
  for (let n = 1; n < 20; n++) links.push(await s.follower({ cues: [links[n - 1]!] }, n % 2 ? worker : {}))
  const lineages = cases(10)
  for (let n = 0; n < lineages; n++) await s.ran(links[0]!)
  const claimed: { execution_id: string; claim_token: string }[] = []
  const steps = [
    (by: typeof fn) => s.start(by),
    async (by: typeof fn) => {
      for (const attempt of await s.begin()) await s.finish([attempt], by)
    },
    async () => void claimed.push(...(await fn.claimExecutions({ account_id, worker_id: 'w', limit: 100 }))),
    async (by: typeof fn) => {
      for (const { execution_id, claim_token } of claimed) await by.reportOutcome({ account_id, execution_id, claim_token, success: true })
    }
  ]
  for (let link = 0; link < 25; link++) {
    for (const [n, step] of steps.entries()) {
      if (n === 0 || n === 3) {
        await client.query('begin')
        await step(crashing)
        await client.query('rollback')
      }
      await step(fn)
      if (n === 3) claimed.length = 0
    }
    s.clock.advance('1 second')
  }
  const counts = await s.rows(
    'select cue_id, count(*)::int, count(distinct parents) ::int as parents from cue.executions where cue_id = any ($1) group by 1',
    [links]
  )
  t.equal(counts.length, 20)
  for (const { count, cue_id } of counts) t.equal(count, lineages, cue_id)
  exactly(t, await s.rows("select from cue.executions where status <> 'success'"), [])
})
