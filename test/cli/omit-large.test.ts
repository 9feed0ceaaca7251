/** Large members omitted from responses to agents. */
import t from 'tap'
import { splice, split, unite } from '../../src/json/canonical-json.ts'
import { omitLarge } from '../../src/mcp/omit-large.ts'

const half = `"${'x'.repeat(33_000)}"`
const free = { names: ['payload', 'metadata', 'artifacts'], depth: 3, asWritten: true }
/** The text of a response as agents get it. */
const shortened = (text: string) => splice(omitLarge(unite(split(text, free, Infinity))))

t.test('keeps free JSON within 64 KB, whatever else the response contains', async t => {
  const text = `{"list":[1,null,{}],"other":${half},"payload":${half}}`
  t.equal(shortened(text), text)
})

t.test('replaces free JSON beyond 64 KB by null and marks it', async t => {
  const item = (n: number, payload: string) => `{"n":${n},"outcome":{"metadata":[${n}],"unheard_of":true},"payload":${payload}}`
  t.equal(
    shortened(`{"executions":[${item(1, half)},${item(2, half)},${item(3, '[3]')}]}`),
    `{"executions":[${item(1, half)},${item(2, 'null,"payload_omitted":true')},${item(3, '[3]')}]}`
  )
})

t.test('leaves text that looks like response members unchanged', async t => {
  const trap = `{"a":",\\"payload\\":1,\\"retry\\":","metadata":${half}}`
  t.equal(shortened(`{"metadata":${trap},"payload":${half}}`), `{"metadata":${trap},"payload":null,"payload_omitted":true}`)
})
