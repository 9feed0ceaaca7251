/** Keys of cues: requests at the same time, and any sequence of them. */
import fc from 'fast-check'
import t from 'tap'
import { hourly, path, start } from '../support/cue-keys-stage.ts'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'
import { build } from '../support/setup.ts'
import { cueDefaults, stage } from '../support/stage.ts'

t.test('100 concurrent requests with one key create one cue', async t => {
  const { call, get, pool } = await build(t, start)
  const answers = await Promise.all(Array.from({ length: 100 }, () => call('PUT', path('k'), hourly)))
  const codes = answers.map(({ status, body }) => `${status} ${body.changed}`)
  t.same([codes.filter(code => code === '201 true').length, codes.filter(code => code === '200 false').length], [1, 99])
  t.equal(new Set(answers.map(({ body }) => body.id)).size, 1)

  const posts = await Promise.all(Array.from({ length: 100 }, () => call('POST', '/v1/cues', { ...hourly, key: 'p' })))
  t.same(
    [201, 409].map(code => posts.filter(({ status }) => status === code).length),
    [1, 99]
  )
  const only = await Promise.all(Array.from({ length: 20 }, () => call('PUT', path('q'), hourly, { 'if-none-match': '*' })))
  t.same(
    [201, 412].map(code => only.filter(({ status }) => status === code).length),
    [1, 19]
  )
  exactly(t, await get('/v1/cues'), { total: 3 })
  t.same((await pool.query('select count(*)::int from cue.cue_runs')).rows, [{ count: 3 }])
})

t.test('concurrent replacements and deletions end with one of the definitions', async t => {
  const { call, get } = await build(t, start)
  const names = Array.from({ length: 20 }, (_, n) => `n${n}`)
  const calls = names.flatMap(name => [
    call('PUT', path('k'), { ...hourly, name }),
    ...(Number(name.slice(1)) % 5 ? [] : [call('DELETE', path('k'))])
  ])
  const answers = await Promise.all(calls)
  t.same(
    answers.filter(({ status }) => ![200, 201, 204, 404].includes(status)).map(({ body }) => body),
    []
  )
  const { cues } = await get('/v1/cues')
  t.ok(cues.length <= 1)
  for (const cue of cues) t.ok(names.includes(cue.name))
})

t.test('a key taken by one cue of a batch fails only that one', async t => {
  const { fn, account_id, account, cue, rows } = await stage(t)
  const other = await account()
  const holder = await cue({ key: 'a' })
  const cues = [{ key: 'a' }, {}, { key: 'b' }, { key: 'b' }, { key: 'a' }].map(columns => ({ ...cueDefaults, ...columns }))
  const made = await fn.createEachCue({
    account_ids: [account_id, account_id, account_id, account_id, other],
    cues: JSON.stringify(cues),
    next_runs: cues.map(() => null)
  })
  t.same(
    made.map(({ id, taken_by, message }) => [id !== null, taken_by, message?.slice(0, 20)]),
    [
      [false, holder, 'Key a belongs to cue'],
      [true, null, undefined],
      [true, null, undefined],
      [false, made[2]!.id, 'Key b belongs to cue'],
      [true, null, undefined]
    ]
  )
  t.equal((await rows('select from cue.cue_runs')).length, 4)

  await rows("update cue.plans set cues = 4 where plan = 'scale'")
  t.teardown(() => rows("update cue.plans set cues = 1000 where plan = 'scale'"))
  const last = await fn.createEachCue({
    account_ids: [account_id, account_id],
    cues: JSON.stringify([cues[0], { ...cueDefaults, key: 'c' }]),
    next_runs: [null, null]
  })
  t.same(
    last.map(({ id }) => id !== null),
    [false, true],
    'a refused cue takes no room'
  )
  await t.rejects(cue({ key: 'b' }), { code: 'QU015', detail: made[2]!.id })
  await t.rejects(cue({ key: 'z' }), { code: 'QU030' })
})

t.test('an open transaction that deletes a cue with a key delays only its account', async t => {
  const { fn, account_id, account, cue, connect, rows } = await stage(t)
  const other = await account()
  const holder = await cue({ key: 'a' })
  const { client } = await connect()
  await client.query('begin')
  await client.query('select cue.delete_cue($1, $2)', [account_id, holder])
  const asked = {
    account_ids: [account_id, other],
    cues: JSON.stringify([
      { ...cueDefaults, key: 'a' },
      { ...cueDefaults, key: 'a' }
    ]),
    next_runs: [null, null]
  }
  const before = performance.now()
  const made = await fn.createEachCue(asked)
  t.same(
    made.map(({ id, is_locked }) => [id !== null, is_locked]),
    [
      [false, true],
      [true, false]
    ]
  )
  t.ok(performance.now() - before < 1000)
  await client.query('commit')
  exactly(
    t,
    (await fn.createEachCue({ ...asked, account_ids: [account_id, account_id] })).map(({ id }) => id !== null),
    [true, false]
  )
  t.equal((await rows("select from cue.cues where key = 'a' and deleted_at is null")).length, 2)
})

t.test('the previous release creates and changes cues that have keys', async t => {
  const { rows, row, account_id, cue } = await stage(t)
  const id = await cue({ key: 'k' })
  await rows(
    `select * from cue.update_cue(p_account_id => $1, p_cue_id => $2, p_version => 1, p_changes => '{"name": "m"}', p_next_run => null)`,
    [account_id, id]
  )
  exactly(t, await row('select key, name from cue.cues where id = $1', [id]), { key: 'k', name: 'm' })
})

t.test('any sequence of puts, changes and deletions leaves what a map of keys would hold', async t => {
  const { call, get, del } = await build(t, start)
  const key = fc.constantFrom('a', 'b', 'a/b')
  const name = fc.constantFrom('x', 'y')
  const step = fc.oneof(
    fc.record({ kind: fc.constant('put' as const), key, name }),
    fc.record({ kind: fc.constant('post' as const), key, name }),
    fc.record({ kind: fc.constant('rename' as const), key, name, to: fc.option(key) }),
    fc.record({ kind: fc.constant('delete' as const), key })
  )
  await always(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async steps => {
      const model = new Map<string, string>()
      for (const one of steps) {
        const has = model.has(one.key)
        if (one.kind === 'put') {
          const same = model.get(one.key) === one.name
          exactly(t, await call('PUT', path(one.key), { ...hourly, name: one.name }), { status: has ? 200 : 201, body: { changed: !same } })
          model.set(one.key, one.name)
        } else if (one.kind === 'post') {
          exactly(t, await call('POST', '/v1/cues', { ...hourly, key: one.key, name: one.name }), { status: has ? 409 : 201 })
          if (!has) model.set(one.key, one.name)
        } else if (one.kind === 'delete') {
          exactly(t, await call('DELETE', path(one.key)), { status: has ? 204 : 404 })
          model.delete(one.key)
        } else if (has) {
          const { id } = await get(path(one.key))
          const refused = one.to !== null && one.to !== one.key && model.has(one.to)
          exactly(t, await call('PATCH', `/v1/cues/${id}`, { key: one.to }), { status: refused ? 409 : 200 })
          if (refused) continue
          const kept = model.get(one.key)!
          model.delete(one.key)
          if (one.to !== null) model.set(one.to, kept)
          else await del(`/v1/cues/${id}`)
        }
      }
      const { cues } = await get('/v1/cues?limit=100')
      t.same(Object.fromEntries(cues.map((cue: { key: string; name: string }) => [cue.key, cue.name])), Object.fromEntries(model))
      for (const cue of cues) await del(`/v1/cues/${cue.id}`)
    }),
    30
  )
})
