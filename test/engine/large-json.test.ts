/** Free JSON is cut out of a body before parsing, and large JSON is processed in another thread. */
import t from 'tap'
import { canonicalJson, type Json, mergeJson, split, unite } from '../../src/json/canonical-json.ts'
import { createLargeJson } from '../../src/json/large-json.ts'
import { pluck } from '../support/exactly.ts'
import { hostileJson, longestStall } from '../support/stalls.ts'

t.test('keeps free JSON members as text and parses the rest', t => {
  const { rest, kept } = split('{"b": [1.0], "payload": {"z": 1e5, "task": "go"}, "a": "x"}', { names: ['payload'] })
  t.equal(rest, '{"a": "x", "b": [1.0], "payload": "\\u00000"}')
  t.same(kept, [{ text: '{"task": "go", "z": 100000.0}', bytes: 21, task: 'go' }])
  const value = unite({ rest, kept }) as { payload: Json }
  t.same([value.payload.text, value.payload.bytes, value.payload.task], ['{"task": "go", "z": 100000.0}', 21, 'go'])
  t.same({ ...value, payload: null }, { a: 'x', b: [1], payload: null })
  t.end()
})

t.test('uses the last of duplicate free members', t => {
  const value = unite(split('{"payload": 1, "payload": 2, "payloae": 3}', { names: ['payload'] })) as { payload: Json }
  t.equal(value.payload.text, '2')
  t.end()
})

t.test('keeps only members with exactly these names', t => {
  const { kept, rest } = split('{"payload": 1, "payloads": 2, "pay": 3, "\\u0070ayload\\n": 4}', { names: ['payload'] })
  t.same(pluck(kept, 'text'), ['1'])
  t.same(JSON.parse(rest), { pay: 3, payload: '\u00000', 'payload\n': 4, payloads: 2 })
  t.end()
})

t.test('finds free members down to the given depth, but not inside each other', t => {
  const text = '[{"metadata": {"metadata": 1}, "a": {"metadata": 2, "b": {"metadata": 3}}}]'
  const { kept } = split(text, { names: ['metadata'], depth: 3, asWritten: true })
  t.same(pluck(kept, 'text'), ['2', '{"metadata":1}'])
  t.same(JSON.parse(split(text, { names: ['metadata'], depth: 1 }).rest), JSON.parse(text))
  t.end()
})

t.test('a client cannot forge the placeholder of a free member', t => {
  t.throws(() => split('{"a": "\\u00000", "payload": 1}', { names: ['payload'] }), /NUL character/)
  t.end()
})

t.test('large texts give the same results as small ones without blocking the event loop', async t => {
  const json = createLargeJson()
  t.teardown(json.close)
  for (const [name, text] of Object.entries(hostileJson(2 ** 20))) {
    let given = ''
    const stall = await longestStall(async () => {
      given = await json.canonicalJson(text)
    }, 50)
    t.ok(given === canonicalJson(text), name)
    t.ok(stall < 50, `${name}: ${stall.toFixed(1)} ms`)
  }
  const base = canonicalJson(`{"a": "${'x'.repeat(40_000)}", "b": 1}`)
  t.same(await json.mergeJson(base, '{"b": 2}'), mergeJson(base, '{"b": 2}'))
})

t.test('reports the same errors for large texts as for small ones', async t => {
  const json = createLargeJson()
  t.teardown(json.close)
  const text = `["${'x'.repeat(40_000)}",]`
  await t.rejects(json.canonicalJson(text), { name: 'JsonError', reason: 'malformed', message: /Unexpected token ']'/ })
  t.throws(() => canonicalJson(text), { name: 'JsonError', reason: 'malformed', message: /Unexpected token ']'/ })
})

t.test('closing the thread fails its unfinished work as unavailable, and new work starts another', async t => {
  const json = createLargeJson()
  t.teardown(json.close)
  const text = hostileJson(2 ** 20)['keys out of order']!
  const asked = json.canonicalJson(text)
  await Promise.all([t.rejects(asked, { code: 'unavailable', statusCode: 503 }), json.close()])
  t.ok((await json.canonicalJson(text)) === canonicalJson(text))
})
