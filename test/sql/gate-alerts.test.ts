// Alerts about gates whose breaker stays open.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { gatesStage } from '../support/gates-stage.ts'
import { refused } from '../support/stage.ts'

t.test('a breaker that has been open for five minutes raises one alert, which its closing resolves', async t => {
  const s = await gatesStage(t)
  await s.gate({ breaker_failures: 1, breaker_open_seconds: 600, breaker_max_open_seconds: 600 })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  const other = await s.cue({ gate: 'g#part' })
  await s.fire(cue)
  await s.fire(other)
  const begun = await s.begin()
  await s.settle(
    begun.filter(attempt => attempt.cue_id === cue),
    refused
  )
  const waiting = await s.fire(cue)
  t.same(await s.begin(), [])
  const alerts = () => s.rows("select * from cue.alerts where alert_type = 'gate_open'")
  s.later(299_000)
  await s.sweep()
  t.same(await alerts(), [])
  s.later(1000)
  await s.sweep()
  const raised = {
    ...{ cue_id: cue, severity: 'high', resolved_at: null, message: 'Gate g has been open for five minutes (failures in a row: 1)' },
    metadata: { gate: 'g', failure_count: 1, opened_at: String }
  }
  exactly(t, await alerts(), [raised])
  s.later(1000)
  await s.sweep()
  exactly(t, await alerts(), [raised], 'once')
  s.later(300_000)
  await s.sweep()
  const probe = await s.begin()
  exactly(t, probe, [{ execution_id: waiting }])
  await s.settle(probe, {})
  await s.sweep()
  exactly(t, await alerts(), [{ resolved_at: Date, resolution: { after_seconds: 301, failed: 1, missed: 0 }, acknowledged_at: null }])
  const types =
    "select type from cue.new_events where type in ('alert.raised', 'alert.resolved', 'gate.opened', 'gate.closed') order by seq"
  t.same(
    (await s.rows(types)).map(({ type }) => type),
    ['gate.opened', 'alert.raised', 'gate.closed', 'alert.resolved']
  )
  exactly(t, await s.row("select alert_id from cue.gate_parts where gate = 'g'"), { alert_id: null })
})

t.test('nobody waits for a locked cue: the alert comes once it is free', async t => {
  const s = await gatesStage(t)
  await s.gate({ breaker_failures: 1, breaker_open_seconds: 600, breaker_max_open_seconds: 600 })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  await s.fire(cue)
  await s.settle(await s.begin(), refused)
  await s.fire(cue)
  await s.begin()
  s.later(301_000)
  const { client } = await s.connect()
  await client.query('begin')
  await client.query('select from cue.cues where id = $1 for update', [cue])
  const count = async () => (await s.row("select count(*)::int from cue.alerts where alert_type = 'gate_open'")).count
  await s.sweep()
  t.equal(await count(), 0)
  await client.query('rollback')
  await s.sweep()
  t.equal(await count(), 1)
})
