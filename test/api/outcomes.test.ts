import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { addWaiting, serviceAt } from '../support/service.ts'
import { error, invalid } from '../support/setup.ts'

const service = serviceAt('2030-01-15T09:00:00Z')

/** The service, with claimed executions of a cue. */
const serve = async () => {
  const built = await service()
  const { fn, account, call, cue } = built
  const claimed = async (count: number, columns: object = {}) => {
    const ids = await addWaiting(built, await cue(columns), count)
    for (let n = 0; n < count; n += 10) await fn.claimExecutions({ account_id: account.id, worker_id: 'w1', limit: 10 })
    return ids
  }
  const of = (path: string) => (id: string, body?: unknown) =>
    call(path === 'evidence' ? 'PATCH' : 'POST', `/v1/executions/${id}/${path}`, body)
  return {
    ...built,
    claimed,
    /** Id of a claimed execution of a cue with this mode. */
    claimedWith: async (mode: string) => (await claimed(1, { verification: { mode } }))[0]!,
    report: of('outcome'),
    attach: of('evidence'),
    verify: of('verify'),
    doubt: of('verification-pending')
  }
}

const modes = ['none', 'require_external_id', 'require_result_url', 'require_artifacts', 'manual'] as const
type Mode = (typeof modes)[number]
const proofs = {
  external_id: { external_id: 'pr-17' },
  result_url: { result_url: 'https://example.com/17' },
  artifacts: { artifacts: [{ name: 'report', url: 'https://example.com/r' }] },
  'no artifacts': { artifacts: [] },
  'an empty external_id': { external_id: '' },
  'an empty result_url': { result_url: '' },
  nothing: {}
} as const
type Proof = keyof typeof proofs
const demanded: Partial<Record<Mode, Proof>> = {
  require_external_id: 'external_id',
  require_result_url: 'result_url',
  require_artifacts: 'artifacts'
}

const expected = (mode: Mode, success: boolean, given: Proof[]) => {
  if (!success) return 'reported_failure'
  if (mode === 'none') return 'reported_success'
  if (mode === 'manual') return 'verification_pending'
  return given.includes(demanded[mode]!) ? 'verified_success' : 'verification_failed'
}

t.test('mode, success and evidence determine outcome_state, whatever the order of evidence', async t => {
  const { get, claimed, report, attach } = await serve()
  const given = Object.keys(proofs) as Proof[]
  const pairs = given.flatMap((proof): [Proof, Proof][] => [
    [proof, 'nothing'],
    ['nothing', proof]
  ])
  for (const mode of modes) {
    for (const success of [true, false]) {
      const ids = await claimed(pairs.length, { verification: { mode } })
      exactly(t, await attach(ids[0]!, proofs.external_id), error('no_outcome', 409))
      const states: object[] = []
      const wanted: object[] = []
      for (const [n, [early, late]] of pairs.entries()) {
        const reported = await report(ids[n]!, { success, ...proofs[early] })
        const attached = await attach(ids[n]!, proofs[late])
        states.push({ early, late, states: [reported.body.outcome_state, attached.body.outcome_state] })
        wanted.push({ early, late, states: [expected(mode, success, [early]), expected(mode, success, [early, late])] })
      }
      t.strictSame(states, wanted, `${mode}: a ${success ? 'success' : 'failure'}`)
      exactly(t, await get(`/v1/executions/${ids[0]}`), {
        outcome_success: success,
        status: success ? 'success' : 'failed',
        outcome: { success }
      })
    }
  }
})

t.test('a report returns what it recorded', async t => {
  const { claimed, report, get } = await serve()
  const [id] = await claimed(1)
  const evidence = {
    external_id: 'x',
    result_url: 'https://example.com/',
    result_ref: 'ref-1',
    result_type: 'report',
    summary: 'all is well',
    artifacts: ['a', { name: 'b', url: 'https://example.com/b', size: 7 }]
  }
  const said = { success: true, result: 'done', error: 'a warning', metadata: { n: 1, big: '🙂' }, ...evidence }
  t.strictSame((await report(id!, said)).body, {
    execution_id: id,
    outcome: { success: true, result: 'done', metadata: { big: '🙂', n: 1 }, recorded_at: '2030-01-15T09:00:00.000Z' },
    outcome_state: 'reported_success',
    outcome_recorded: true
  })
  t.strictSame((await get(`/v1/executions/${id}`)).outcome, { ...said, recorded_at: '2030-01-15T09:00:00.000Z' })
})

t.test('accepts one of twenty simultaneous reports', async t => {
  const { claimed, report, get } = await serve()
  const ids = await claimed(5)
  for (const id of ids) {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => report(id, { success: n % 2 === 0, result: `report ${n}` })))
    const taken = answers.filter(answer => answer.status === 200)
    t.equal(taken.length, 1)
    for (const answer of answers) if (answer !== taken[0]) exactly(t, answer, error('outcome_already_reported', 409))
    const { outcome, status, attempt_log } = await get(`/v1/executions/${id}`)
    const { metadata, ...given } = taken[0]!.body.outcome
    t.strictSame([outcome, metadata], [given, null], 'omitted members are not stored')
    t.equal(status, outcome.success ? 'success' : 'failed')
    t.equal(attempt_log.length, 1)
  }
})

t.test('evidence can be added but not removed', async t => {
  const { claimed, report, attach, get } = await serve()
  const [id] = await claimed(1)
  await report(id!, { success: true, result: 'done', metadata: { a: 1, b: { x: 1 } }, artifacts: ['one', { name: 'two' }] })
  const added = async (body: object) => {
    const answer = await attach(id!, body)
    t.equal(answer.status, 200)
    const { recorded_at, ...outcome } = (await get(`/v1/executions/${id}`)).outcome
    return [answer.body.evidence_updated, outcome]
  }
  const first = { success: true, result: 'done', metadata: { a: 1, b: { x: 1 } }, artifacts: ['one', { name: 'two' }] }
  t.strictSame(await added({}), [false, first])
  const names = ['external_id', 'result_url', 'result_ref', 'result_type', 'summary', 'artifacts', 'metadata']
  t.strictSame(await added(Object.fromEntries(names.map(name => [name, null]))), [false, first])
  const all = { external_id: 'x', result_url: 'https://example.com/', result_ref: '#1', result_type: 'report', summary: 'fine' }
  t.strictSame(await added(all), [true, { ...first, ...all }])
  t.strictSame(await added(all), [false, { ...first, ...all }])
  t.strictSame(await added({ metadata: { b: { y: 2 }, c: null }, artifacts: ['one', 'three', { name: 'two' }] }), [
    true,
    { ...first, ...all, metadata: { a: 1, b: { y: 2 }, c: null }, artifacts: ['one', { name: 'two' }, 'three'] }
  ])
  t.strictSame((await added({ external_id: '', result_url: '', artifacts: [], metadata: {} }))[0], false)
  const blank = { external_id: ' ', result_url: ' ', result_ref: '', result_type: '', summary: '\n' }
  t.strictSame((await added({ ...blank, metadata: { a: null } }))[0], false)
  exactly(t, await added({ external_id: 'y' }), [true, { external_id: 'y' }])
})

t.test('a person verifies or rejects a success, and a rejection is final', async t => {
  const { claimedWith, report, attach, verify, doubt, get, clock } = await serve()
  const answer = (id: string, outcome_state: string) => ({ status: 200, body: { execution_id: id, status: 'success', outcome_state } })

  const verified = await claimedWith('none')
  exactly(t, await verify(verified), error('no_outcome', 409))
  exactly(t, await doubt(verified), error('no_outcome', 409))
  await report(verified, { success: true })
  exactly(t, await verify(verified), answer(verified, 'verified_success'))
  for (const again of [() => verify(verified), () => verify(verified, { valid: false }), () => doubt(verified)]) {
    exactly(t, await again(), error('invalid_state', 409))
  }

  const doubted = await claimedWith('none')
  await report(doubted, { success: true })
  exactly(t, await doubt(doubted), answer(doubted, 'verification_pending'))
  exactly(t, await doubt(doubted), error('invalid_state', 409))
  exactly(t, await attach(doubted, { external_id: 'x' }), { body: { outcome_state: 'verification_pending' } })
  exactly(t, await verify(doubted, { valid: true, reason: 'seen' }), answer(doubted, 'verified_success'))
  exactly(t, (await get(`/v1/executions/${doubted}`)).outcome, { verification_reason: 'seen', rejected_at: undefined })

  const lacking = await claimedWith('require_external_id')
  await report(lacking, { success: true })
  exactly(t, await verify(lacking), error('invalid_state', 409), 'nothing to verify without evidence')
  exactly(t, await attach(lacking, { external_id: 'x' }), { body: { outcome_state: 'verified_success' } }, 'accepts evidence added later')

  const rejected = await claimedWith('manual')
  await report(rejected, { success: true })
  exactly(t, await verify(rejected, { valid: false, reason: 'wrong file' }), answer(rejected, 'verification_failed'))
  exactly(t, await attach(rejected, { external_id: 'x', result_url: 'u', artifacts: [1] }), {
    body: { outcome_state: 'verification_failed', evidence_updated: true }
  })
  exactly(t, await verify(rejected), error('invalid_state', 409))
  const { outcome } = await get(`/v1/executions/${rejected}`)
  exactly(t, outcome, { verification_reason: 'wrong file', rejected_at: clock.now().toISOString() })
})

t.test('a rejection stays final if the cue requires evidence later', async t => {
  const { claimed, report, attach, verify, patch, execution } = await serve()
  const [id] = await claimed(1)
  await report(id!, { success: true })
  await verify(id!, { valid: false })
  await patch(`/v1/cues/${(await execution(id!)).cue_id}`, { verification: { mode: 'require_external_id' } })
  exactly(t, await attach(id!, { external_id: 'x' }), { body: { outcome_state: 'verification_failed' } })
})

t.test('rejects invalid reports and evidence', async t => {
  const { claimed, report, attach, verify, execution } = await serve()
  const [id] = await claimed(1)
  const before = await execution(id!)
  const both: [string, unknown][] = [
    ['external_id', 'x'.repeat(256)],
    ['external_id', 7],
    ['result_url', 'x'.repeat(2049)],
    ['result_ref', 'x'.repeat(256)],
    ['result_type', 'x'.repeat(51)],
    ['artifacts', {}],
    ['artifacts', 'a'],
    ['metadata', []],
    ['metadata', 'a'],
    ['unknown', 1]
  ]
  const reports: [string, unknown][] = [
    ...['true', 1, 0, null, undefined, []].map(success => ['success', success] as [string, unknown]),
    ['result', 'x'.repeat(2001)],
    ['error', 'x'.repeat(2001)],
    ['summary', 'x'.repeat(501)],
    ...both
  ]
  for (const [name, value] of reports) {
    const answer = await report(id!, { success: true, [name]: value })
    exactly(
      t,
      answer,
      { status: 422, body: { error: { code: 'validation_error' }, detail: [{ loc: ['body', name] }] } },
      `${name}: ${String(value).slice(0, 20)}`
    )
  }
  t.strictSame(await execution(id!), before)
  const lengths = { external_id: 255, result_url: 2048, result_ref: 255, result_type: 50, summary: 500, result: 2000, error: 2000 }
  const longest = Object.fromEntries(Object.entries(lengths).map(([name, length]) => [name, 'ä'.repeat(length)]))
  exactly(t, await report(id!, { success: true, ...longest, artifacts: null, metadata: null }), { status: 200 })
  const evidence: [string, unknown][] = [['success', true], ['result', 'x'], ...both]
  for (const [name, value] of evidence) {
    exactly(t, await attach(id!, { [name]: value }), invalid('body', name), `${name} as evidence`)
  }
  exactly(t, await attach(id!, { summary: `${'🙂'.repeat(499)}abc` }), { status: 200 })
  t.equal((await execution(id!)).summary, `${'🙂'.repeat(499)}a`, 'a summary is truncated between characters')
  for (const body of [{ valid: 'no' }, { reason: 'x'.repeat(2001) }, { unknown: 1 }, []])
    exactly(t, await verify(id!, body), { status: 422 })
})

t.test('limits metadata to 10 KB, as sent', async t => {
  const { claimed, report, attach, execution } = await serve()
  const [first, second, third] = await claimed(3)
  const of = (bytes: number, name = 'a') => ({ [name]: 'x'.repeat(bytes - 7 - name.length) })
  t.equal(JSON.stringify(of(10_240)).length, 10_240)
  exactly(t, await report(first!, { success: true, metadata: of(10_241) }), error('metadata_too_large', 400))
  exactly(t, await execution(first!), { outcome_recorded_at: null })
  const blank = `{"success": true, "metadata": ${' '.repeat(500)}${JSON.stringify(of(10_240))}}`
  exactly(t, await report(first!, blank), { status: 200 })
  exactly(t, await attach(first!, { metadata: of(10_241) }), error('metadata_too_large', 400))
  exactly(t, await attach(first!, { metadata: { b: 1 } }), error('metadata_too_large', 400), 'not together either')
  exactly(t, await attach(first!, { metadata: of(10_240) }), { body: { evidence_updated: false } })
  exactly(t, await attach(first!, { external_id: 'x' }), { status: 200 }, 'other evidence is accepted')
  // Many small members: PostgreSQL's text of them contains blanks that were not sent.
  const many = (name: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}${1000 + n}`, [1, ' ', '"']]))
  await report(second!, { success: true, metadata: many('a', 240) })
  exactly(t, await attach(second!, { metadata: many('b', 240) }), { status: 200 })
  t.ok(JSON.stringify({ ...many('a', 240), ...many('b', 240) }).length <= 10_240)
  exactly(t, await attach(second!, { metadata: many('c', 60) }), error('metadata_too_large', 400))
  exactly(
    t,
    await report(third!, { success: true, metadata: { a: 'ä'.repeat(5117) } }),
    error('metadata_too_large', 400),
    'bytes, not characters'
  )
  const numbers = (count: number) => `{"success": true, "metadata": {"a": [${Array(count).fill('1e300')}]}}`
  exactly(t, await report(third!, numbers(140)), error('metadata_too_large', 400), 'all digits of numbers count')
  exactly(t, await report(third!, { success: true, metadata: { a: 'ä'.repeat(5116) } }), { status: 200 })
})

t.test('limits artifacts to 64 KB, including existing ones', async t => {
  const { claimed, report, attach, execution, get } = await serve()
  const [first, second, third] = await claimed(3)
  const of = (bytes: number, letter = 'x') => [letter.repeat(bytes - 4)]
  exactly(t, await report(first!, { success: true, artifacts: of(65_537) }), error('artifacts_too_large', 400))
  exactly(t, await report(first!, `{"success": true, "artifacts": [${Array(300).fill('1e300')}]}`), error('artifacts_too_large', 400))
  exactly(t, await execution(first!), { outcome_recorded_at: null })
  exactly(t, await report(first!, { success: true, artifacts: of(65_536) }), { status: 200 })
  exactly(t, await attach(first!, { artifacts: ['y'] }), error('artifacts_too_large', 400), 'not together either')
  exactly(t, await attach(first!, { artifacts: of(65_536) }), { body: { evidence_updated: false } }, 'the same artifacts again add nothing')
  exactly(t, await attach(first!, { summary: 's' }), { body: { evidence_updated: true } }, 'other evidence is accepted')
  await report(second!, { success: true })
  exactly(t, await attach(second!, { artifacts: of(65_537) }), error('artifacts_too_large', 400))
  exactly(t, await attach(second!, { artifacts: of(40_000, 'a') }), { status: 200 })
  exactly(t, await attach(second!, { artifacts: of(40_000, 'b') }), error('artifacts_too_large', 400))
  t.strictSame((await get(`/v1/executions/${second}`)).outcome.artifacts, of(40_000, 'a'), 'existing artifacts stay')
  exactly(t, await report(third!, { success: true, artifacts: Array.from({ length: 10_000 }, (_, n) => n) }), { status: 200 })
})
