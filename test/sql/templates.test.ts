/** Values of names in templates, fixed when an execution is created. */
import t, { type Test } from 'tap'
import { renderPayload } from '../../src/templates/template.ts'
import { exactly } from '../support/exactly.ts'
import { refused, stage } from '../support/stage.ts'

const template = { template: true, key: 'etl', name: 'ETL' }

const stageTemplates = async (t: Test) => {
  const s = await stage(t)
  const valuesOf = async (id: string) =>
    (await s.rows('select template_values as v from cue.fixed_requests where execution_id = $1', [id]))[0]?.v
  const fire = (cue_id: string, more: object = {}) => s.fn.fireCue({ account_id: s.account_id, cue_id, ...more })
  /** Begins the attempt of an execution, and ends it. */
  const end = async (id: string, ok = true) => {
    const begun = await s.fn.beginAttempts({ execution_ids: [id] })
    await s.settle(begun, ok ? {} : refused)
    return begun[0]!
  }
  const report = (execution_id: string, outcome: object) =>
    s.rows('select cue.report_outcome($1, $2, $3, p_now => $4)', [s.account_id, execution_id, outcome, s.clock.now()])
  /** Fires the due slot of a cue. */
  const slot = async (id: string) => {
    const run = await s.run(id)
    await s.fn.fireTrackedCues({
      cue_ids: [id],
      versions: [run.version],
      expected: [run.next_run],
      next: [new Date(+run.next_run + 3_600_000)],
      missed_after: '100 years'
    })
    return (await s.rows('select * from cue.executions where cue_id = $1 order by id desc limit 1', [id]))[0]
  }
  return { ...s, valuesOf, fire, end, report, slot }
}

t.test('an execution has the values of the names that its texts contain', async t => {
  const { cue, slot, valuesOf, row } = await stageTemplates(t)
  const payload =
    '{"a": "{{execution_id}} {{ cue.name }}", "b": ["{{scheduled_date}}", "{{{{triggered_by}}"], "{{due_at}}": "{{previous.success_at}} {{x}} {{ cue.id"}'
  const id = await cue({
    ...template,
    payload,
    timezone: 'Pacific/Kiritimati',
    callback_headers: { 'X-A': '{{scheduled_for}}' },
    callback_url: 'http://h/?k={{cue.key}}'
  })
  const e = await slot(id)
  const at = '2030-01-15T09:00:00.000Z'
  t.strictSame(await valuesOf(e.id), {
    execution_id: e.id,
    'cue.name': 'ETL',
    'cue.key': 'etl',
    scheduled_for: at,
    scheduled_date: '2030-01-15',
    triggered_by: 'schedule',
    due_at: at
  })
  exactly(t, e, { is_fixed: true, template_truncated: null, status: 'pending' })
  exactly(
    t,
    await row('select template_truncated, template_values::jsonb is not null as has from cue.execution_view where id = $1', [e.id]),
    { template_truncated: false, has: true }
  )
})

t.test('the date is that of the time zone of the cue; of one that PostgreSQL does not know, there is none', async t => {
  const { cue, fire, valuesOf, rows } = await stageTemplates(t)
  const id = await cue({ ...template, payload: '"{{scheduled_date}}"', timezone: 'Pacific/Kiritimati' }, { next_run: null })
  t.strictSame(await valuesOf((await fire(id, { send_at: new Date('2030-01-15T10:00:00Z') })).id), { scheduled_date: '2030-01-16' })
  await rows("update cue.cues set timezone = 'Mars/Base'")
  t.strictSame(await valuesOf((await fire(id)).id), {})
})

t.test('a plain execution has no values, and a cue without template keeps its braces', async t => {
  const { begun, row } = await stageTemplates(t)
  const attempt = await begun({ payload: '"{{cue.name}}"' })
  exactly(t, attempt, { payload: '"{{cue.name}}"', template_values: null })
  t.strictSame(await row('select count(*)::int as n from cue.fixed_requests'), { n: 0 })
})

t.test('previous is the latest success that ended before, with its outcome', async t => {
  const { cue, fire, end, valuesOf, clock, rows } = await stageTemplates(t)
  const payload =
    '["{{previous.scheduled_for}}", "{{previous.success_at}}", "{{previous.outcome.result}}", "{{previous.outcome.metadata.a.b}}", "{{previous.outcome.metadata.none}}"]'
  const id = await cue({ ...template, payload }, { next_run: null })
  const at = (minute: number) => new Date(Date.UTC(2030, 0, 15, 9, minute))
  const next = async () => valuesOf((await fire(id)).id)
  const run = async (minute: number, ok: boolean, result: string | null = null) => {
    clock.set(at(minute).toISOString())
    const { id: execution } = await fire(id)
    clock.set(at(minute + 2).toISOString())
    await end(execution, ok)
    if (result)
      await rows(
        `update cue.executions set outcome_success = $2 <> 'bad', outcome_recorded_at = $3, outcome_state = case when $2 = 'bad' then 'reported_failure'::cue.outcome_state else 'reported_success' end, result = $2, metadata = '{"a": {"b": 1.50}}' where id = $1`,
        [execution, result, clock.now()]
      )
    return execution
  }
  t.strictSame(await next(), {}, 'none')
  await run(0, true, 'first')
  const first = {
    'previous.scheduled_for': at(0).toISOString(),
    'previous.success_at': at(2).toISOString(),
    'previous.outcome.result': 'first',
    'previous.outcome.metadata.a.b': 1.5
  }
  t.strictSame(await next(), first)
  await run(10, false)
  await run(20, true, 'bad')
  t.strictSame(await next(), first, 'neither a failed delivery nor a reported failure')
  clock.set(at(1).toISOString())
  t.strictSame(await next(), {}, 'created before it ended')
  clock.set(at(40).toISOString())
  const waiting = await fire(id)
  await run(50, true, 'second')
  t.strictSame(await valuesOf(waiting.id), first, 'fixed')
  exactly(t, await next(), { 'previous.outcome.result': 'second' })
})

t.test('a retry and a replay have the values of the original', async t => {
  const { account_id, cue, fire, end, fn, clock, valuesOf, rows } = await stageTemplates(t)
  const id = await cue({ ...template, payload: '"{{execution_id}} {{scheduled_for}}"' }, { next_run: null })
  const { id: original } = await fire(id)
  const first = await end(original, false)
  clock.advance('5 minutes')
  const second = await end(original)
  t.equal(second.template_values, first.template_values)
  t.strictSame(JSON.parse(first.template_values!), { execution_id: original, scheduled_for: '2030-01-15T09:00:00.000Z' })
  await fn.updateCue({ account_id, cue_id: id, version: 1, changes: '{"template": false, "payload": "1"}', next_run: null })
  const replay = await fn.replayExecution({ account_id, execution_id: original })
  t.strictSame(await valuesOf(replay.id), await valuesOf(original))
  await end(replay.id)
  exactly(t, (await fn.beginAttempts({ execution_ids: [(await fire(id)).id] }))[0], { payload: '1', template_values: null })
  const again = await fn.replayExecution({ account_id, execution_id: replay.id })
  t.strictSame(await valuesOf(again.id), await valuesOf(original), 'a replay of the replay, too')
  // The other way round.
  const plain = await cue({ payload: '"{{execution_id}}"' }, { next_run: null })
  const { id: literal } = await fire(plain)
  await end(literal)
  await fn.updateCue({ account_id, cue_id: plain, version: 1, changes: '{"template": true}', next_run: null })
  exactly(t, (await fn.beginAttempts({ execution_ids: [(await fn.replayExecution({ account_id, execution_id: literal })).id] }))[0], {
    payload: '"{{execution_id}}"',
    template_values: null
  })
  t.equal((await rows('select from cue.executions where template_truncated')).length, 0)
})

t.test('values have 16 KB in all; the largest are left out first, and the execution says so', async t => {
  const { cue, fire, end, valuesOf, rows, account_id, fn, execution } = await stageTemplates(t)
  const payload = '"{{previous.outcome.result}}{{previous.outcome.summary}}{{previous.outcome.external_id}}{{cue.name}}"'
  const id = await cue({ ...template, payload }, { next_run: null })
  const { id: first } = await fire(id)
  await end(first)
  const values = async (result: number, summary: number) => {
    await rows('update cue.executions set result = $2, summary = $3, external_id = $4 where id = $1', [
      first,
      'r'.repeat(result),
      's'.repeat(summary),
      'e'
    ])
    const next = await fire(id)
    const stored = await valuesOf(next.id)
    const sizes = Object.fromEntries(Object.entries(stored).map(([name, value]) => [name.split('.').at(-1), String(value).length]))
    return { id: next.id, sizes, truncated: (await execution(next.id)).template_truncated }
  }
  exactly(t, await values(8000, 8000), { sizes: { result: 8000, summary: 8000, external_id: 1, name: 3 }, truncated: null })
  const cut = await values(12000, 8000)
  t.strictSame([cut.sizes, cut.truncated], [{ summary: 8000, external_id: 1, name: 3 }, true])
  await end(cut.id)
  const replay = await fn.replayExecution({ account_id, execution_id: cut.id })
  exactly(t, await execution(replay.id), { template_truncated: true })
})

t.test('parents are found by the longest key that fits', async t => {
  const { cue, fire, end, row, rows } = await stageTemplates(t)
  const parent = async (result: string) => {
    const { id } = await fire(await cue({}, { next_run: null }))
    await end(id)
    await rows('update cue.executions set result = $2, metadata = \'{"execution_id": 7}\' where id = $1', [id, result])
    return id
  }
  const [a, ab] = [await parent('a'), await parent('ab')]
  const parents = JSON.stringify([
    { cue_id: 'cue_1', cue_key: 'a', execution_id: a },
    { cue_id: 'cue_2', cue_key: 'a.outcome', execution_id: ab },
    { cue_id: 'cue_3', cue_key: null, execution_id: a },
    { cue_id: 'cue_4', cue_key: 'a.outcome.metadata.x', execution_id: ab }
  ])
  const value = async (name: string) => (await row('select cue.parent_value($1, $2) as value', [name, parents])).value
  t.equal(await value('parents.a.execution_id'), a)
  t.equal(await value('parents.a.outcome.result'), 'a')
  t.equal(await value('parents.a.outcome.execution_id'), ab)
  t.equal(await value('parents.a.outcome.outcome.result'), 'ab')
  t.equal(await value('parents.a.outcome.metadata.execution_id'), 7)
  t.equal(await value('parents.cue_3.outcome.result'), 'a')
  t.equal(await value('parents.a.outcome.metadata.x.execution_id'), ab)
  t.equal(await value('parents.b.outcome.result'), null)
  t.equal(await value('parents.a.success_at'), null)
  const id = await cue({ ...template, payload: '"{{parents.a.outcome.result}}"' }, { next_run: null })
  const stored = await row(
    'select v.* from cue.cues c, cue.executions e, jsonb_populate_record(e, jsonb_build_object($2::text, $3::jsonb)) x, cue.template_values(c, x) v where c.id = $1 and e.id = $4',
    [id, 'parents', parents, a]
  )
  t.strictSame(stored, { template_values: { 'parents.a.outcome.result': 'a' }, is_truncated: false })
})

t.test('a template goes the way of tracked cues, whichever way it is fired', async t => {
  const { account_id, cue, fn, slot, take, run, valuesOf, rows, clock } = await stageTemplates(t)
  const id = await cue({ payload: '"{{triggered_by}}"' })
  await fn.updateCue({ account_id, cue_id: id, version: 1, changes: '{"template": true}' })
  exactly(t, await run(id), { tracked: true })
  t.same(await take([id]), [], 'not with plain cues')
  t.strictSame(await valuesOf((await slot(id)).id), { triggered_by: 'schedule' })
  const overlapping = await cue({ payload: '"{{triggered_by}}"', template: true, overlap: 'queue_all' })
  for (let n = 0; n < 2; n++) {
    clock.set((await run(overlapping)).next_run.toISOString())
    t.strictSame(await valuesOf((await slot(overlapping)).id), { triggered_by: 'schedule' })
  }
  await rows('select cue.run_slots(c, null, $2, $2, $3) from cue.cues c where id = $1', [id, [clock.now(), clock.now()], clock.now()])
  const late = (await rows('select id from cue.executions where cue_id = $1', [id])).map(row => row.id)
  t.equal(late.length, 3)
  for (const execution of late) t.strictSame(await valuesOf(execution), { triggered_by: 'schedule' })
  await fn.updateCue({ account_id, cue_id: id, version: 2, changes: '{"template": false}' })
  exactly(t, await run(id), { tracked: false })
})

t.test('workers get the values with the claim', async t => {
  const { account_id, cue, fire, fn } = await stageTemplates(t)
  const id = await cue({ ...template, transport: 'worker', payload: '"{{cue.name}}"' }, { next_run: null })
  const ids = [(await fire(id)).id, (await fire(id)).id, (await fire(id)).id]
  const values = { template_values: '{"cue.name": "ETL"}' }
  exactly(t, await fn.claimablePage({ account_id }), [values, values, values])
  exactly(t, await fn.claimExecutions({ account_id, worker_id: 'w', execution_id: ids[0]! }), [{ execution_id: ids[0], ...values }])
  exactly(t, await fn.claimNext({ claims: JSON.stringify([{ account_id, worker_id: 'w', limit: 2 }]) }), [values, values])
})

t.test('an override and stored headers must have known names', async t => {
  const { account_id, cue, fire, fn } = await stageTemplates(t)
  const id = await cue({ ...template, callback_headers: { 'X-A': '{{cue.id}}{{{{x}}' } }, { next_run: null })
  const unknown = { code: 'QU048', message: '{{x}} is not a known name', detail: 'payload_override' }
  await t.rejects(fire(id, { payload: '["{{{{y}} {{x}}"]' }), unknown)
  await t.rejects(fire(id, { payload: `"${'{{'.repeat(101)}"` }), { code: 'QU048', message: /at most 100/ })
  t.ok(await fire(id, { payload: '["{{{{x}} {{cue.id}} {{x"]' }))
  const plain = await cue({ callback_headers: { 'X-A': '{{x}}' } }, { next_run: null })
  t.ok(await fire(plain, { payload: '["{{x}}"]' }))
  const change = (changes: object, version = 1) =>
    fn.updateCue({ account_id, cue_id: plain, version, changes: JSON.stringify(changes), next_run: null })
  await t.rejects(change({ template: true }), { ...unknown, detail: 'callback.headers' })
  await t.rejects(change({ template: true, callback_headers: { 'X-A': '********', 'X-B': '1' } }), {
    ...unknown,
    detail: 'callback.headers'
  })
  t.equal(await change({ template: true, callback_headers: { 'X-A': '{{cue.id}}' } }), true)
  t.equal(await change({ callback_headers: { 'x-a': '********' } }, 2), true)
})

t.test('a text for people has its values, and is written as texts that are sent are', async t => {
  const s = await stageTemplates(t)
  const values = { 'cue.name': 'a "b" {{c}}', n: 17, o: { a: [1] }, none: null }
  const render = async (text: string) => (await s.rows('select cue.render_text($1, $2) as text', [text, values]))[0].text
  const texts = ['no name', '{{cue.name}} and {{ n }}{{n}}', '{{{{n}} {{{{{{n}} {{none}}{{unknown}}.', '{{n {{{{b', '}}{{n}} {{', '{{}}']
  for (const text of texts) {
    const { m } = JSON.parse(renderPayload(JSON.stringify({ m: `x${text}` }), values))
    t.equal(await render(`x${text}`), m, text)
  }
  t.equal((await render('{{cue.name}}'.repeat(1000))).length, 4000)

  const id = await s.cue({
    ...template,
    payload: '{}',
    approval: { expires: '24h', on_expiry: 'skip', message: 'Refund of {{scheduled_date}}, {{cue.key}}?' }
  })
  const fired = await s.fire(id)
  exactly(t, (await s.rows('select message from cue.approvals where execution_id = $1', [fired.id]))[0], {
    message: 'Refund of 2030-01-15, etl?'
  })
})
