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
