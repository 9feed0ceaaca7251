/** Declared cues: limits, other accounts, and requests at the same time. */
import fc from 'fast-check'
import t from 'tap'
import { faults, hourly, nothing, stage, url, withClient } from '../support/apply-stage.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { always } from '../support/seed.ts'
import { error, eventually } from '../support/setup.ts'

t.test('the limits of the plan apply to the result', async t => {
  const { apply, get, pool, post, clock } = await stage(t)
  const limit = (cues: number) => pool.query("update cue.plans set cues = $1 where plan = 'free'", [cues])
  await limit(3)
  await apply([hourly('a'), hourly('b'), hourly('c')])
  const refused = await apply([hourly('a'), hourly('d'), hourly('e')])
  exactly(t, refused, error('cue_limit_exceeded', 403))
  t.same(faults(refused), [
    ['cue_limit_exceeded', 'd'],
    ['cue_limit_exceeded', 'e']
  ])
  const swapped = [hourly('a'), hourly('d'), hourly('e')]
  exactly(t, await apply(swapped, { prune: true, dry_run: true }), { body: { created: ['d', 'e'], pruned: ['b', 'c'] } })
  exactly(t, await apply(swapped, { prune: true }), { body: { created: ['d', 'e'], pruned: ['b', 'c'] } })
  exactly(t, await apply([...swapped, hourly('f')], { prune: true, dry_run: true }), error('cue_limit_exceeded', 403))
  exactly(t, await post('/v1/cues', hourly('f')), { error: { code: 'cue_limit_exceeded' } })
  exactly(t, await get('/v1/cues'), { total: 3 })

  await limit(2)
  exactly(t, await apply(swapped), { body: { unchanged: ['a', 'd', 'e'] } }, 'after a downgrade, what is there may stay')
  await limit(3)
  const { cron: _, ...once } = { ...hourly('a'), at: '2030-01-07T09:00:00Z' }
  await apply([once])
  await pool.query("update cue.cues set status = 'completed' where key = 'a'")
  await pool.query('update cue.cue_runs set next_run = null from cue.cues c where c.id = cue_id and key = $1', ['a'])
  clock.advance('1 hour')
  exactly(t, await apply([once]), { body: { unchanged: ['a'] } })
  exactly(t, await apply([{ ...once, at: '2030-01-08T09:00:00Z' }]), {
    body: { updated: [{ key: 'a', changes: { 'schedule.at': {}, status: { from: 'completed', to: 'active' } } }] }
  })
  exactly(t, await apply([{ ...once, at: '2030-01-07T09:00:00Z' }]), error('invalid_schedule', 400), 'in the past')
})

t.test('only a key with scope account may set a callback that gets the key of the account', async t => {
  const { apply, post, as, patch, account } = await stage(t)
  await apply([hourly('a')])
  const { api_key } = await post('/v1/auth/keys', { label: 'l', scopes: ['read', 'write'] })
  const lesser = as({ ...account, api_key })
  const asked = (cues: object[]) => lesser.call('POST', '/v1/cues/apply', { set: 's', cues })
  await patch('/v1/auth/me', { webhook_authorization: 'api_key' })
  exactly(t, await asked([hourly('a')]), { status: 200, body: { unchanged: ['a'] } })
  const refused = await asked([{ ...hourly('a'), callback_url: `${url}2` }, hourly('b')])
  exactly(t, refused, error('insufficient_scope', 403))
  t.same(faults(refused), [
    ['insufficient_scope', 'a'],
    ['insufficient_scope', 'b']
  ])
})

t.test("another account's cues and sets are its own", async t => {
  const { apply, as, register, get } = await stage(t)
  await apply([hourly('a'), hourly('b')])
  const other = as(await register())
  const answer = await other.call('POST', '/v1/cues/apply', { set: 's', cues: [hourly('a')], prune: true, take_over: true })
  exactly(t, answer, { status: 200, body: { ...nothing, created: ['a'] } })
  exactly(t, await get('/v1/cues'), { total: 2 })
  exactly(t, await as(null).call('POST', '/v1/cues/apply', { set: 's', cues: [] }), error('not_authenticated', 401))
})

t.test('concurrent requests end with one of the lists, whole', async t => {
  const { apply, get } = await stage(t)
  const lists = [0, 1, 2, 3].map(n => Array.from({ length: 20 }, (_, i) => ({ ...hourly(`k${i + n}`), name: `n${n}` })))
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(lists.map(cues => apply(cues, { prune: true })))
    t.same(pluck(answers, 'status'), [200, 200, 200, 200])
    const { cues, total } = await get('/v1/cues?limit=100')
    const names = new Set(cues.map(({ name }: { name: string }) => name))
    const keys = cues.map(({ key }: { key: string }) => key).sort()
    t.same([total, names.size], [20, 1])
    t.same(keys, lists[Number([...names].join().slice(1))]!.map(({ key }) => key).sort())
  }
})

t.test('requests, single replacements, fires and deletions at the same time neither fail nor wait for each other in circles', async t => {
  const { apply, call, get } = await stage(t)
  const cues = Array.from({ length: 30 }, (_, n) => hourly(`k${n}`))
  await apply(cues)
  const ids = (await get('/v1/cues?limit=100')).cues.map(({ id }: { id: string }) => id)
  const answers = await Promise.all([
    ...['x', 'y', 'z'].map(name => apply(cues.map(cue => ({ ...cue, name })))),
    ...ids.map((id: string) => call('PATCH', `/v1/cues/${id}`, { description: 'd' })),
    ...ids.slice(0, 10).map((id: string) => call('POST', `/v1/cues/${id}/fire`)),
    call('POST', '/v1/cues/bulk-delete', { ids: ids.toReversed() }, { 'x-confirm-destructive': 'true' })
  ])
  t.same(
    [...new Set(answers.map(({ status }) => status))].filter(status => ![200, 404, 503].includes(status)),
    []
  )
  exactly(t, await apply(cues), { status: 200 })
  exactly(t, await get('/v1/cues'), { total: 30 })
})

t.test('an interrupted request leaves nothing', async t => {
  const { apply, connect, stored, pool } = await withClient(t)
  await apply([hourly('a'), hourly('old')])
  const before = await stored()
  const list = [{ ...hourly('a'), name: 'b' }, ...Array.from({ length: 499 }, (_, n) => hourly(`k${n}`))]
  const holder = await connect()
  // The last step waits for this key, after cues were deleted and replaced.
  await holder.query(`begin; insert into cue.cues
    select (jsonb_populate_record(c, '{"id": "cue_zzzzzzzzzzzz", "key": "k250"}')).* from cue.cues c where key = 'a'`)
  const answer = apply(list, { prune: true })
  const waiting = async () =>
    (
      await pool.query(
        "select pid from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'apply_cues' and datname = current_database()"
      )
    ).rows
  const { pid } = await eventually(async () => (await waiting())[0])
  await pool.query('select pg_terminate_backend($1)', [pid])
  exactly(t, await answer, error('unavailable', 503))
  await holder.query('rollback')
  t.same(await stored(), before)
  exactly(t, await apply(list, { prune: true }), { status: 200, body: { pruned: ['old'] } })
})

t.test('an account held by someone else: refused as unavailable, and nothing is done', async t => {
  const { apply, connect, get } = await withClient(t)
  const holder = await connect()
  await holder.query('begin; select from cue.accounts for update')
  exactly(t, await apply([hourly('a')]), error('unavailable', 503))
  await holder.query('rollback')
  exactly(t, await get('/v1/cues'), { total: 0 })
})

t.test('any sequence of lists, changes and deletions leaves what a model of sets would hold', async t => {
  const { apply, get, call, del } = await stage(t)
  const key = fc.constantFrom('a', 'b', 'c')
  const cues = fc.uniqueArray(fc.record({ key, name: fc.constantFrom('x', 'y') }), { selector: ({ key }) => key })
  const flag = fc.boolean()
  const step = fc.oneof(
    fc.record({ kind: fc.constant('apply' as const), set: fc.constantFrom('s', 't'), cues, prune: flag, dry_run: flag, take_over: flag }),
    fc.record({ kind: fc.constant('put' as const), key }),
    fc.record({ kind: fc.constant('delete' as const), key })
  )
  type Model = Map<string, { name: string; set: string | null }>
  const expected = (
    model: Model,
    { set, cues, prune, take_over }: { set: string; cues: { key: string; name: string }[]; prune: boolean; take_over: boolean }
  ) => {
    const next: Model = new Map(model)
    const result: Record<string, string[]> = { created: [], updated: [], unchanged: [], pruned: [], refused: [] }
    for (const { key, name } of cues) {
      const old = model.get(key)
      const isForeign = old?.set != null && old.set !== set && !take_over
      const kind = !old ? 'created' : isForeign ? 'refused' : old.name === name && old.set === set ? 'unchanged' : 'updated'
      result[kind]!.push(key)
      next.set(key, { name, set })
    }
    const given = new Set(cues.map(({ key }) => key))
    const gone = prune ? [...model].filter(([key, cue]) => cue.set === set && !given.has(key)).map(([key]) => key) : []
    for (const key of gone) next.delete(key)
    result.pruned = gone.sort()
    return { next, result }
  }
  await always(
    fc.asyncProperty(fc.array(step, { maxLength: 10 }), async steps => {
      let model: Model = new Map()
      for (const one of steps) {
        if (one.kind === 'put') {
          await call('PUT', `/v1/cues/by-key/${one.key}`, { ...hourly(one.key), name: 'x' })
          model.set(one.key, { name: 'x', set: model.get(one.key)?.set ?? null })
        } else if (one.kind === 'delete') {
          await call('DELETE', `/v1/cues/by-key/${one.key}`)
          model.delete(one.key)
        } else {
          const { kind: _, cues, ...options } = one
          const { next, result } = expected(model, one)
          const { status, body } = await apply(
            cues.map(cue => ({ ...hourly(cue.key), name: cue.name })),
            options
          )
          if (result.refused!.length > 0) {
            t.same([status, body.detail?.map(({ loc }: { loc: string[] }) => loc[2])], [409, result.refused])
            continue
          }
          const { created, updated, unchanged, pruned } = body
          const { refused: __, ...rest } = result
          t.same({ created, updated: updated?.map(({ key }: { key: string }) => key), unchanged, pruned }, rest)
          if (!one.dry_run) model = next
        }
        const { cues: all } = await get('/v1/cues?limit=100')
        const found = all.map((cue: { key: string; name: string; managed_by: string }) => [
          cue.key,
          { name: cue.name, set: cue.managed_by }
        ])
        t.same(Object.fromEntries(found), Object.fromEntries(model))
      }
      for (const cue of (await get('/v1/cues?limit=100')).cues) await del(`/v1/cues/${cue.id}`)
    }),
    30
  )
})
