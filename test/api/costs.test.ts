// Costs that handlers report: sums by execution, cue, tag and day.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { error, invalid } from '../support/setup.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const usd = (amount: string | number) => ({ amount, unit: 'usd' })

const serve = async () => {
  const built = await service()
  const { call, claim, fire, get } = built
  /** Reports costs of a fired and claimed execution; returns its id. */
  const spend = async (cue_id: string, costs: object[], success = true) => {
    const id = await fire(cue_id)
    await claim(id)
    exactly(t, await call('POST', `/v1/executions/${id}/outcome`, { success, costs }), { status: 200 })
    return id
  }
  const costsOf = async (id: string) => (await get(`/v1/executions/${id}`)).costs
  const attach = (id: string, costs: object[]) => call('PATCH', `/v1/executions/${id}/evidence`, { costs })
  return { ...built, spend, costsOf, attach }
}

t.test('reports of retries add, those of evidence replace each other, and sums are exact', async t => {
  const { call, claim, clock, get, cue, fire, costsOf, attach } = await serve()
  const id = await fire(await cue({ retry: { max_attempts: 2, backoff_minutes: [1], on_worker_failure: true } }))
  t.strictSame(await costsOf(id), [])
  await claim(id)
  const report = (body: object) => call('POST', `/v1/executions/${id}/outcome`, body)
  t.equal((await report({ success: false, costs: [usd('0.1'), usd(0.2), { amount: 1200, unit: 'tokens' }] })).status, 200)
  t.strictSame(await costsOf(id), [{ amount: '1200', unit: 'tokens' }, usd('0.3')])
  clock.advance('2 minutes')
  await claim(id)
  t.equal((await report({ success: true, costs: [usd('1.000000001')] })).status, 200)
  const reported = [{ amount: '1200', unit: 'tokens' }, usd('1.300000001')]
  t.strictSame(await costsOf(id), reported)
  exactly(t, await report({ success: true, costs: [usd(5)] }), error('outcome_already_reported', 409))
  t.strictSame(await costsOf(id), reported, 'a repeated report adds nothing')
  exactly(t, await attach(id, [usd(2), { amount: 3, unit: 'eur' }]), { status: 200, body: { evidence_updated: true } })
  exactly(t, await attach(id, [usd('2.00'), { amount: 3, unit: 'eur' }]), { body: { evidence_updated: false } })
  exactly(t, await attach(id, [usd('0.7')]), { body: { evidence_updated: true } })
  const sums = [{ amount: '1200', unit: 'tokens' }, usd('2.000000001')]
  t.strictSame(await costsOf(id), sums)
  exactly(t, await get('/v1/executions'), { executions: [{ id, costs: sums }] })
})

t.test('sums by cue, tag and day, of a period', async t => {
  const { call, get, clock, cue, spend, other } = await serve()
  const [a, b] = [await cue({ tags: ['x', 'y'] }), await cue({ tags: ['y'] })]
  await spend(a, [usd(1), { amount: 10, unit: 'tokens' }])
  await spend(b, [usd('2.5')], false)
  clock.advance('1 day')
  await spend(a, [usd('0.25')])
  clock.advance('1 minute')
  const costs = async (query: string) => (await get(`/v1/costs?${query}`)).costs
  const [first, second] = ['2030-01-15', '2030-01-16']
  t.strictSame(await costs('by=cue'), [
    { cue_id: a, unit: 'tokens', amount: '10' },
    { cue_id: b, unit: 'usd', amount: '2.5' },
    { cue_id: a, unit: 'usd', amount: '1.25' }
  ])
  t.strictSame(await costs('by=tag'), [
    ...[
      { tag: 'x', unit: 'tokens', amount: '10' },
      { tag: 'y', unit: 'tokens', amount: '10' }
    ],
    ...[
      { tag: 'y', unit: 'usd', amount: '3.75' },
      { tag: 'x', unit: 'usd', amount: '1.25' }
    ]
  ])
  const days = [
    { day: first, unit: 'tokens', amount: '10' },
    { day: first, unit: 'usd', amount: '3.5' },
    { day: second, unit: 'usd', amount: '0.25' }
  ]
  exactly(t, await get('/v1/costs'), { costs: days, has_more: false, from: '2029-12-17T09:01:00.000Z', to: '2030-01-16T09:01:00.000Z' })
  t.strictSame(await costs('from=2030-01-16T00:00:00Z'), [days[2]])
  await call('DELETE', `/v1/cues/${b}`)
  exactly(t, (await costs('by=cue'))[1], { cue_id: b, amount: '2.5' }, 'what a deleted cue spent stays')
  exactly(t, await (await other()).calls.get('/v1/costs'), { costs: [] })
  exactly(t, await call('GET', '/v1/costs?by=month'), invalid('query', 'by'))
  exactly(t, await call('GET', '/v1/costs?from=2031-01-01T00:00:00Z'), invalid('query', 'from'))
  exactly(t, await call('GET', '/v1/costs?from=2028-01-01T00:00:00Z'), invalid('query', 'from'))
})

t.test('refuses costs that are not exact amounts', async t => {
  const { call, cue, fire, claim, costsOf } = await serve()
  const id = await fire(await cue())
  await claim(id)
  const report = (costs: unknown) => call('POST', `/v1/executions/${id}/outcome`, { success: true, costs })
  for (const amount of ['-1', '1.0000000001', '1e3', '', ' 1', '1'.repeat(16), -1, 1e-10, 1e16, null, true])
    exactly(
      t,
      await report([{ amount, unit: 'usd' }]),
      { status: 422, body: { detail: [{ loc: ['body', 'costs', 0, 'amount'] }] } },
      String(amount)
    )
  for (const unit of ['', 'u'.repeat(33), null]) t.equal((await report([{ amount: 1, unit }])).status, 422)
  t.equal((await report([{ amount: 1 }])).status, 422)
  t.equal((await report(Array(11).fill(usd(1)))).status, 422)
  t.strictSame(await costsOf(id), [])
  t.equal((await report(null)).status, 200)
})
