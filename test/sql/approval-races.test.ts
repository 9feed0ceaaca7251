// Decisions at once: by many people, operations, links and the expiry, and callers that are killed in between.
import t from 'tap'
import { approvalsStage } from '../support/approvals-stage.ts'
import { exactly } from '../support/exactly.ts'
import { cases, shuffled } from '../support/seed.ts'

t.test('50 people, links and the expiry decide at once: one decision, the same for all, and at most one start', async t => {
  const s = await approvalsStage(t)
  await s.rows(`update cue.accounts set limits = '{"fires_per_hour": null}'`)
  const cue_id = await s.approved({}, { expires: '1m' })
  const seen: Record<string, number> = {}
  const sweeper = await s.connect()
  for (let round = 0; round < cases(20); round++) {
    const id = await s.fire(cue_id)
    s.clock.advance('59 seconds')
    const late = new Date(+s.clock.now() + 5000)
    const people = Array.from({ length: 50 }, (_, n) => async () => {
      const decision = n % 3 === 0 ? 'rejected' : 'approved'
      try {
        return (await s.decide(id, decision, { actor: `session:${n}`, source: n % 5 === 0 ? 'link' : 'call' })).decision
      } catch (error) {
        const { code, detail } = error as { code: string; detail: string }
        if (code !== 'QU074') throw error
        return JSON.parse(detail).decision as string
      }
    })
    const expire = () => s.rows('select cue.meet_approvals(200, $1)', [late]).then(() => null)
    // A sweep waits for nobody, so it comes first only if it has a start.
    if (round % 4 === 0) {
      await sweeper.client.query('begin')
      await sweeper.client.query('select cue.meet_approvals(200, $1)', [late])
    }
    const deciding = shuffled([...people, expire, expire, expire]).map(call => call())
    if (round % 4 === 0) await sweeper.client.query('commit')
    const answers = await Promise.all(deciding)
    const { decision } = await s.approval(id)
    seen[decision] = (seen[decision] ?? 0) + 1
    t.same([...new Set(answers.filter(answer => answer !== null))], [decision])
    t.equal(
      (await s.rows("select from cue.audit_events where event = 'approval.decided' and detail ->> 'execution_id' = $1", [id])).length,
      1
    )
    t.same(await s.events(id), ['approval.requested', 'approval.decided'])
    const begun = await s.begin()
    t.equal(begun.length, decision === 'approved' ? 1 : 0)
    await s.finish(begun)
    exactly(t, await s.execution(id), { status: { approved: 'success', rejected: 'failed', expired: 'missed' }[decision as string] })
  }
  t.comment(`decisions: ${JSON.stringify(seen)}`)
  t.ok(seen.expired! >= cases(20) / 4)
  t.same(await s.rows('select * from cue.held_executions'), [])
})

t.test('a caller that is killed after its decision has decided nothing, or everything', async t => {
  const s = await approvalsStage(t)
  const id = await s.fire(await s.approved())
  const killed = await s.connect()
  killed.client.on('error', () => {})
  await killed.client.query('begin')
  await s.decide(id, 'rejected', {}, killed.fn)
  const other = s.decide(id)
  await s.rows(
    "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()"
  )
  exactly(t, await other, { decision: 'approved' })
  exactly(t, await s.begin(), [{ execution_id: id }])
  t.same(await s.begin(), [], 'it starts once')
})

t.test('no reminder is sent twice by several replicas, nor lost with one that is killed', async t => {
  const s = await approvalsStage(t)
  const ids = []
  for (let n = 0; n < 5; n++) ids.push(await s.fire(await s.approved({}, { expires: null })))
  s.clock.advance('1 hour')
  const killed = await s.connect()
  await killed.client.query('begin')
  await killed.fn.meetApprovals({ limit: 3 })
  const replicas = await Promise.all([s.connect(), s.connect(), s.connect()])
  const counts = await Promise.all(replicas.map(({ fn }) => fn.meetApprovals({})))
  t.equal(
    counts.reduce((sum, count) => sum + count),
    2
  )
  await killed.client.query('rollback')
  t.equal(await s.fn.meetApprovals({}), 3)
  for (const id of ids) t.equal((await s.approval(id)).reminders, 1)
})

t.test('a sweep leaves alone what was decided since it began', async t => {
  const s = await approvalsStage(t)
  const [first, second] = [await s.fire(await s.approved({}, { expires: '1m' })), await s.fire(await s.approved({}, { expires: '1m' }))]
  const [holder, sweeper] = [await s.connect(), await s.connect()]
  await holder.client.query('begin')
  await holder.client.query('select from cue.approvals where execution_id = $1 for update', [first])
  const sweeping = sweeper.client.query('select cue.meet_approvals(200, $1)', [new Date(+s.clock.now() + 120_000)])
  await sweeper.blocked()
  await s.decide(second)
  await holder.client.query('commit')
  t.equal((await sweeping).rows[0].meet_approvals, 1)
  t.equal((await s.approval(first)).decision, 'expired')
  t.equal((await s.approval(second)).decision, 'approved')
  exactly(t, await s.begin(), [{ execution_id: second }])
})
