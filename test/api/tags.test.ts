/** Tags of cues, and filters by them. */
import fc from 'fast-check'
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'
import { build } from '../support/setup.ts'

const hourly = { name: 'Hourly', cron: '0 * * * *', callback_url: 'http://127.0.0.1:5555/hook' }
type Named = { name: string }

t.test('tags are created, replaced and removed', async t => {
  const { post, patch, call } = await build(t)
  const created = await post('/v1/cues', { ...hourly, key: 'k', tags: ['b', 'a'] })
  t.same(created.tags, ['b', 'a'])
  const path = `/v1/cues/${created.id}`
  exactly(t, await patch(path, { name: 'Other' }), { tags: ['b', 'a'], version: 2 })
  exactly(t, await patch(path, { tags: ['b', 'a'] }), { version: 2 })
  exactly(t, await patch(path, { tags: ['c'] }), { tags: ['c'], version: 3 })
  exactly(t, await patch(path, { tags: null }), { tags: [] })
  exactly(t, await patch(path, { tags: ['d'] }), { tags: ['d'] })
  exactly(t, await call('PUT', '/v1/cues/by-key/k', hourly), { body: { tags: [], changed: true } })
  exactly(t, await post('/v1/cues', { ...hourly, tags: null }), { tags: [] })
})

t.test('refuses invalid tags and filters, and names them', async t => {
  const { call } = await build(t)
  const eleven = Array.from({ length: 11 }, (_, n) => `t${n}`)
  for (const [tags, loc] of [
    ['a', ['body', 'tags']],
    [{}, ['body', 'tags']],
    [eleven, ['body', 'tags']],
    [
      ['a', 'a'],
      ['body', 'tags']
    ],
    [[''], ['body', 'tags', 0]],
    [
      ['a', 'x'.repeat(65)],
      ['body', 'tags', 1]
    ],
    [[1], ['body', 'tags', 0]],
    [[null], ['body', 'tags', 0]],
    [[['a']], ['body', 'tags', 0]]
  ])
    exactly(t, await call('POST', '/v1/cues', { ...hourly, tags }), { status: 422, body: { detail: [{ loc }] } }, JSON.stringify(tags))
  t.equal((await call('POST', '/v1/cues', { ...hourly, tags: ['a\u0000'] })).status, 400)
  const longest = Array.from({ length: 10 }, (_, n) => `${n}${'x'.repeat(63)}`)
  exactly(t, await call('POST', '/v1/cues', { ...hourly, tags: longest }), { status: 201, body: { tags: longest } })
})

t.test('lists of cues and executions have those with all the tags', async t => {
  const { post, get, as, register } = await build(t)
  const make = async (name: string, tags: string[], by = post) => {
    const { id } = await by('/v1/cues', { ...hourly, name, tags })
    await by(`/v1/cues/${id}/fire`)
  }
  await make('1', ['a', 'b'])
  await make('2', ['b'])
  await make('3', [])
  await make('4', ['a b', '{"\\,}', 'null'])
  await make('5', ['a', 'b'], as(await register()).post)
  for (const [query, expected] of [
    ['', ['4', '3', '2', '1']],
    ['tag=a', ['1']],
    ['tag=b', ['2', '1']],
    ['tag=b&tag=a', ['1']],
    ['tag=a&tag=a', ['1']],
    ['tag=c', []],
    ['tag=A', []],
    ['tag=a%20b', ['4']],
    [`tag=${encodeURIComponent('{"\\,}')}`, ['4']],
    ['tag=null', ['4']],
    ['tag=b&status=active', ['2', '1']]
  ] as const) {
    const { cues, total } = await get(`/v1/cues?${query}`)
    t.same([cues.map(({ name }: Named) => name), total], [expected, expected.length], query)
    if (query.includes('status')) continue
    const { executions, total: runs } = await get(`/v1/executions?${query}`)
    t.same([executions.map(({ cue_name }: { cue_name: string }) => cue_name), runs], [expected, expected.length], query)
  }
})

t.test('a filter finds exactly the cues with all its tags', async t => {
  const { post, get, pool } = await build(t)
  const tag = fc.constantFrom('a', 'b', 'c', 'ä', '%', "'")
  const tags = fc.uniqueArray(tag, { maxLength: 4 })
  await always(
    fc.asyncProperty(fc.array(tags, { maxLength: 5 }), tags, async (given, wanted) => {
      await pool.query('delete from cue.cues')
      for (const [n, own] of given.entries()) await post('/v1/cues', { ...hourly, name: `${n}`, tags: own })
      const { cues } = await get(`/v1/cues?${wanted.map(one => `tag=${encodeURIComponent(one)}`).join('&')}`)
      const expected = given.flatMap((own, n) => (wanted.every(one => own.includes(one)) ? [`${n}`] : []))
      t.same(cues.map(({ name }: Named) => name).sort(), expected)
    }),
    30
  )
})
