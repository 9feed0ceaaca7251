/** Each execution is counted once when it ends, however it ends. */
import t from 'tap'
import { awaiting, once, refused, stage } from '../support/stage.ts'

t.test('counts every ended execution under its status', async t => {
  const { fn, cue, take, settle, finish, begun, clock, rows, row, account, account_id } = await stage(t)
  const counted = async () => new Map((await fn.endedExecutions({})).map(({ status, count }) => [status, count]))
  const before = await counted()
  const stored = async () => {
    const found = await rows('select status, count(*)::int as count from cue.executions where ended_at is not null group by status')
    return new Map<string, number>(found.map(({ status, count }) => [status, count]))
  }
  const difference = async () => {
    const now = await counted()
    return [...now].map(([status, count]) => [status, count - before.get(status)!])
  }
  const check = async (way: string, change: Record<string, number>) => {
    const total = Object.fromEntries([...expected].map(([status, count]) => [status, count + (change[status] ?? 0)]))
    for (const [status, count] of Object.entries(total)) expected.set(status, count)
    t.same(Object.fromEntries(await difference()), total, way)
    const found = await stored()
    t.same(Object.fromEntries([...expected.keys()].map(status => [status, found.get(status) ?? 0])), total, `${way}: the rows`)
  }
  const expected = new Map([...before.keys()].map(status => [status as string, 0]))
  t.same([...expected.keys()], ['success', 'failed', 'missed', 'outcome_timeout'])

  await finish(await take([await cue(), await cue()]))
  await check('finish_attempts', { success: 2 })
  await settle([await begun(once)])
  await settle([await begun()], refused)
  await check('settle_attempts', { success: 1 })
  await settle([await begun()], { ...refused, gone: true })
  await check('settle_attempts, for good', { failed: 1 })

  await settle([await begun(awaiting)])
  clock.advance('300 seconds')
  await fn.expireOutcomes({})
  await check('expire_outcomes', { outcome_timeout: 1 })

  const worker = { transport: 'worker', callback_url: null }
  const fire = async (columns: object = worker) => (await fn.fireCue({ account_id, cue_id: await cue(columns, { next_run: null }) }))!.id
  const reported = await fire()
  await fn.claimExecutions({ account_id, worker_id: 'w', execution_id: reported })
  await fn.reportOutcome({ account_id, execution_id: reported, success: false })
  await check('report_outcome', { failed: 1 })
  await fn.cancelExecution({ account_id, execution_id: await fire() })
  await check('cancel_execution', { failed: 1 })
  await fire()
  clock.advance('900 seconds')
  await fn.missUnclaimed({})
  await check('miss_unclaimed', { missed: 1 })

  const lost = await begun()
  await rows('update cue.executions set lost_attempts = 4, attempts = 5 where id = $1', [lost.execution_id])
  clock.advance('5 seconds')
  await fn.recoverFlights({})
  await check('recover_flights', { missed: 1 })

  const leaving = await account({ created_at: clock.now() })
  await fn.fireCue({ account_id: leaving, cue_id: await cue({}, { next_run: null, account_id: leaving }) })
  await fn.disownAccount({ account_id: leaving, ip: '127.0.0.1' })
  await check('cancel_waiting', { failed: 1 })

  const { id } = await row('update cue.accounts set limit_reached_at = $2 where id = $1 returning id', [account_id, clock.now()])
  clock.advance('25 hours')
  t.equal(id, account_id)
  const over = await cue()
  await fn.refuseDueCues({ cue_ids: [over], versions: [1], expected: [new Date(+clock.now())], next: [null] })
  await check('refuse_due_cues', { failed: 1 })
})
