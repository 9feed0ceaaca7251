// Budgets of gates: costs that executions report limit what starts.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { gatesStage } from '../support/gates-stage.ts'

const worker = { transport: 'worker', callback_url: null }

const budget = { budget_limit: 10, budget_unit: 'usd', budget_period: 'day', budget_timezone: 'UTC' }

t.test('budget: starts until the limit is reached, then in the next period or with a higher limit', async t => {
  const s = await gatesStage(t)
  await s.gate(budget)
  const cue = await s.cue({ gate: 'g', ...worker })
  const claim = () => s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w', limit: 5 })
  const report = (execution_id: string, amount: string, unit = 'usd') =>
    s.fn.reportOutcome({ account_id: s.account_id, execution_id, success: true, costs: JSON.stringify([{ amount, unit }]) })
  const spend = async (amount: string, unit?: string) => {
    const id = await s.fire(cue)
    t.equal((await claim()).length, 1)
    await report(id, amount, unit)
    return id
  }
  const events = async () =>
    (await s.rows("select type from cue.new_events where type::text like 'gate.%' order by seq")).map(row => row.type)
  await spend('7.999999999')
  await spend('100', 'eur')
  t.same(await events(), [])
  const last = await spend('0.5')
  t.same(await events(), ['gate.budget_warning'])
  await s.fn.attachEvidence({ account_id: s.account_id, execution_id: last, costs: JSON.stringify([{ amount: '5', unit: 'usd' }]) })
  t.same(await events(), ['gate.budget_warning', 'gate.budget_reached'])
  await s.fire(cue)
  t.same(await claim(), [])
  exactly(t, await s.row('select * from cue.gate_state($1, $2, $3)', [s.account_id, 'g', s.clock.now()]), {
    spent: '13.499999999',
    reserved: '0',
    period_ends_at: new Date('2030-01-16')
  })
  await s.fn.attachEvidence({ account_id: s.account_id, execution_id: last, costs: JSON.stringify([{ amount: '1', unit: 'usd' }]) })
  await s.sweep()
  t.equal((await claim()).length, 1, 'evidence replaces what earlier evidence stated')
  await s.gate({ ...budget, budget_limit: 9 })
  await s.fire(cue)
  t.same(await claim(), [])
  await s.gate({ ...budget, budget_limit: 9, budget_unit: 'eur' })
  await s.sweep()
  t.same(await claim(), [], 'another unit is counted from the costs')
  s.clock.set('2030-01-16T00:00:00.001Z')
  await s.sweep()
  t.equal((await claim()).length, 1)
  t.equal((await events()).length, 2, 'once a period')
})

t.test('budget with reserve: starts reserve it until they report or end, and together never exceed the limit', async t => {
  const s = await gatesStage(t)
  await s.gate({ ...budget, budget_reserve: 3 })
  const cues = [await s.cue({ gate: 'g', ...worker }), await s.cue({ gate: 'g', ...worker })]
  const ids = []
  for (let n = 0; n < 8; n++) ids.push(await s.fire(cues[n % 2]!))
  const engines = [s.fn, (await s.connect()).fn, (await s.connect()).fn]
  const claims = (await Promise.all(engines.map(fn => fn.claimExecutions({ account_id: s.account_id, worker_id: 'w', limit: 8 })))).flat()
  await s.sweep()
  claims.push(...(await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w', limit: 8 })))
  t.equal(claims.length, 3)
  exactly(t, await s.row('select * from cue.gate_state($1, $2, $3)', [s.account_id, 'g', s.clock.now()]), { spent: '0', reserved: '9' })
  const costs = JSON.stringify([
    { amount: '0.5', unit: 'usd' },
    { amount: '0.5', unit: 'usd' }
  ])
  await s.fn.reportOutcome({ account_id: s.account_id, execution_id: claims[0]!.execution_id, success: true, costs })
  await s.sweep()
  t.equal((await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w', limit: 8 })).length, 1)
  exactly(t, await s.row('select * from cue.gate_state($1, $2, $3)', [s.account_id, 'g', s.clock.now()]), { spent: '1', reserved: '9' })
})

t.test('costs in the answer of a webhook count against the budget, once', async t => {
  const s = await gatesStage(t)
  await s.gate(budget)
  const cue = await s.cue({
    gate: 'g',
    timeout_seconds: 30,
    outcome_deadline_seconds: 300,
    claim_timeout_seconds: 900,
    await_outcome: true
  })
  await s.fire(cue)
  const attempts = await s.begin()
  const report = { report: { success: true, costs: [{ amount: '10', unit: 'usd' }] } }
  t.equal(await s.settle(attempts, report), 1)
  t.equal(await s.settle(attempts, report), 0)
  const id = await s.fire(cue)
  t.same(await s.begin(), [])
  exactly(t, await s.row('select spent::text from cue.gate_parts'), { spent: '10' })
  exactly(t, await s.execution(id), { attempt_due_at: new Date('2030-01-16') })
  t.same(
    (await s.rows("select type from cue.new_events where type::text like 'gate.%'")).map(row => row.type),
    ['gate.budget_reached']
  )
})

t.test('periods begin at the first midnight of a local day, wherever clocks are set back or forward', async t => {
  const s = await gatesStage(t)
  const periods: [period: string, timezone: string, at: string, start: string, end: string][] = [
    ['day', 'America/Havana', '2030-11-03T03:59:59Z', '2030-11-02T04:00:00Z', '2030-11-03T04:00:00Z'],
    ['day', 'America/Havana', '2030-11-03T04:30:00Z', '2030-11-03T04:00:00Z', '2030-11-04T05:00:00Z'],
    ['day', 'America/Havana', '2030-11-03T05:30:00Z', '2030-11-03T04:00:00Z', '2030-11-04T05:00:00Z'],
    ['day', 'Asia/Beirut', '2030-03-30T22:30:00Z', '2030-03-30T22:00:00Z', '2030-03-31T21:00:00Z'],
    ['day', 'America/Nuuk', '2030-03-31T01:30:00Z', '2030-03-31T01:00:00Z', '2030-04-01T01:00:00Z'],
    ['day', 'America/Asuncion', '2024-03-24T03:30:00Z', '2024-03-23T03:00:00Z', '2024-03-24T04:00:00Z'],
    ['week', 'Europe/Berlin', '2030-03-31T10:00:00Z', '2030-03-24T23:00:00Z', '2030-03-31T22:00:00Z'],
    ['week', 'UTC', '2030-01-14T00:00:00Z', '2030-01-14T00:00:00Z', '2030-01-21T00:00:00Z'],
    ['month', 'America/New_York', '2030-11-01T04:00:00Z', '2030-11-01T04:00:00Z', '2030-12-01T05:00:00Z']
  ]
  for (const [budget_period, budget_timezone, at, start, ends] of periods) {
    const row = await s.row(
      'select cue.budget_bound(g, $2) as start, cue.budget_bound(g, $2, 1) as ends from jsonb_populate_record(null::cue.gates, $1) g',
      [JSON.stringify({ budget_period, budget_timezone }), at]
    )
    t.same(row, { start: new Date(start), ends: new Date(ends) }, `${budget_timezone} ${at}`)
  }
})

t.test('evidence that replaces costs of an earlier period changes that period', async t => {
  const s = await gatesStage(t)
  await s.gate(budget)
  const cue = await s.cue({ gate: 'g', ...worker })
  const usd = (amount: number) => JSON.stringify([{ amount: String(amount), unit: 'usd' }])
  const id = await s.fire(cue)
  await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })
  await s.fn.reportOutcome({ account_id: s.account_id, execution_id: id, success: true })
  await s.fn.attachEvidence({ account_id: s.account_id, execution_id: id, costs: usd(8) })
  s.clock.set('2030-01-16T09:00:00Z')
  const next = await s.fire(cue)
  t.equal((await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })).length, 1)
  await s.fn.reportOutcome({ account_id: s.account_id, execution_id: next, success: true, costs: usd(6) })
  await s.fn.attachEvidence({ account_id: s.account_id, execution_id: id, costs: usd(2) })
  exactly(t, await s.row('select spent::text from cue.gate_parts'), { spent: '6' })
  await s.fn.attachEvidence({ account_id: s.account_id, execution_id: id, costs: JSON.stringify([{ amount: '3', unit: 'eur' }]) })
  exactly(t, await s.row('select spent::text from cue.gate_parts'), { spent: '6' })
})
