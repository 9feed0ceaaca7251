import { Type } from '@fastify/type-provider-typebox'
import fc from 'fast-check'
import t from 'tap'
import { buildSerializer } from '../../src/http/serializer.ts'
import { canonicalJson, Json, JsonError, mergeJson, split, unite } from '../../src/json/canonical-json.ts'
import { AnyJson } from '../../src/schemas.ts'
import { exactly } from '../support/exactly.ts'
import { always } from '../support/seed.ts'

// Written by Python 3: [text, json.dumps(json.loads(text), sort_keys=True)].
const vectors: [string, string][] = [
  ['{"b":1,"a":[2,3]}', '{"a": [2, 3], "b": 1}'],
  ['{"z":{"y":1,"x":2},"a":null}', '{"a": null, "z": {"x": 2, "y": 1}}'],
  ['[ 1 ,\t2\r\n, 3 ]', '[1, 2, 3]'],
  ['"Grüße 中文 😀"', '"Gr\\u00fc\\u00dfe \\u4e2d\\u6587 \\ud83d\\ude00"'],
  ['"\\u00FC\\uD83D\\uDE00\\/"', '"\\u00fc\\ud83d\\ude00/"'],
  ['"/"', '"/"'],
  ['"\\" \\\\ \\b \\f \\n \\r \\t \\u0001 \\u001f"', '"\\" \\\\ \\b \\f \\n \\r \\t \\u0001 \\u001f"'],
  ['"\u007f\u0080\u2028\uffff"', '"\\u007f\\u0080\\u2028\\uffff"'],
  [
    '{"😀":1,"\uffff":2,"\ue000":3,"\ud7ff":4,"a":5,"Z":6,"":7}',
    '{"": 7, "Z": 6, "a": 5, "\\ud7ff": 4, "\\ue000": 3, "\\uffff": 2, "\\ud83d\\ude00": 1}'
  ],
  ['{"a":1,"b":2,"a":3}', '{"a": 3, "b": 2}'],
  ['{"\\u0061":1,"a":2}', '{"a": 2}'],
  ['{"__proto__":{"x":1},"constructor":2,"10":1,"9":2}', '{"10": 1, "9": 2, "__proto__": {"x": 1}, "constructor": 2}'],
  ['0', '0'],
  ['-0', '0'],
  ['-7', '-7'],
  ['123456789012345678901234567890', '123456789012345678901234567890'],
  ['9007199254740993', '9007199254740993'],
  ['-0.0', '-0.0'],
  ['0.0', '0.0'],
  ['-0e0', '-0.0'],
  ['1.0', '1.0'],
  ['1.50', '1.5'],
  ['1e0', '1.0'],
  ['1E2', '100.0'],
  ['1e-0', '1.0'],
  ['1.0e+2', '100.0'],
  ['1e15', '1000000000000000.0'],
  ['1e16', '1e+16'],
  ['1e+16', '1e+16'],
  ['9999999999999998.0', '9999999999999998.0'],
  ['9999999999999999.0', '1e+16'],
  ['1e21', '1e+21'],
  ['1e22', '1e+22'],
  ['123456789012345680.0', '1.2345678901234568e+17'],
  ['1.5e300', '1.5e+300'],
  ['0.0001', '0.0001'],
  ['0.00012', '0.00012'],
  ['0.00001', '1e-05'],
  ['1e-5', '1e-05'],
  ['1.5e-7', '1.5e-07'],
  ['2.5E-10', '2.5e-10'],
  ['1e-100', '1e-100'],
  ['5e-324', '5e-324'],
  ['2.2250738585072014e-308', '2.2250738585072014e-308'],
  ['1.7976931348623157e308', '1.7976931348623157e+308'],
  ['0.1', '0.1'],
  ['0.30000000000000004', '0.30000000000000004'],
  ['1e-400', '0.0'],
  ['-1e-400', '-0.0'],
  ['100.0e-2', '1.0'],
  ['4.35', '4.35'],
  ['123456789012345.99999999', '123456789012346.0'],
  ['1.005', '1.005'],
  ['3.14159265358979323846', '3.141592653589793'],
  ['-2.5', '-2.5'],
  ['true', 'true'],
  ['[[],{},[{}]]', '[[], {}, [{}]]'],
  ['{}', '{}'],
  ['""', '""']
]

const canonicalMerge = (base: string, override: string) => mergeJson(base, override).text
const readJson = (text: string, names: string[] = []) => unite(split(text, { names }))

const reasonOf = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    if (error instanceof JsonError) return error.reason
    throw error
  }
  return 'none'
}

const isJson = (source: string): boolean => {
  try {
    JSON.parse(source)
    return true
  } catch {
    return false
  }
}

const text = fc.string({ unit: 'binary' }).filter(value => value.isWellFormed() && !value.includes('\0'))
const { value: anyJson } = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value')),
    fc.dictionary(text, tie('value'))
  )
}))

t.test("the canonical form equals Python's", async t => {
  t.strictSame(
    vectors.map(([source]) => [source, canonicalJson(source)]),
    vectors
  )
})

t.test('canonicalising is idempotent and keeps the meaning', async t => {
  always(
    fc.property(anyJson, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const source = JSON.stringify(value, null, indent)
      const canonical = canonicalJson(source)
      return (
        canonicalJson(canonical) === canonical &&
        /^[ -~]*$/.test(canonical) &&
        t.same(JSON.parse(canonical), JSON.parse(source.replaceAll(/(?<![\d.eE"])-0(?![\d.eE"])/g, '0')))
      )
    })
  )
})

t.test('an integer of any length keeps its digits', async () => {
  always(fc.property(fc.bigInt(), digits => canonicalJson(`[${digits}]`) === `[${digits}]`))
})

t.test('the order of members does not change the canonical form', async () => {
  always(
    fc.property(fc.uniqueArray(text, { minLength: 2 }), keys => {
      const members = keys.map((key, i) => `${JSON.stringify(key)}:${i}`)
      return canonicalJson(`{${members.join(',')}}`) === canonicalJson(`{${members.toReversed().join(',')}}`)
    })
  )
})

t.test('rejects exactly what JSON.parse rejects', async () => {
  const mutated = fc
    .tuple(
      anyJson,
      fc.nat(),
      fc.nat(3),
      fc.constantFrom('', ',', ':', '"', '\\', '{', ']', '0', '-', '.', 'e', '+', ' ', '\u000b', '\u00a0', 't', '\n')
    )
    .map(([value, at, cut, piece]) => {
      const source = JSON.stringify(value)
      const from = at % (source.length + 1)
      return source.slice(0, from) + piece + source.slice(from + cut)
    })
  always(
    fc.property(mutated, source => {
      const reason = reasonOf(() => canonicalJson(source))
      return isJson(source) ? reason !== 'malformed' : reason !== 'none'
    }),
    2000
  )
})

t.test('an error names its reason', async t => {
  const refusals: [string, string][] = [
    ['', 'malformed'],
    ['  ', 'malformed'],
    ['{"a":1,}', 'malformed'],
    ['[1 2]', 'malformed'],
    ['[01]', 'malformed'],
    ['[1.]', 'malformed'],
    ['[NaN]', 'malformed'],
    ['{"a" 1}', 'malformed'],
    ['1 1', 'malformed'],
    ['"a\nb"', 'malformed'],
    ['"a', 'malformed'],
    ['["\\x"]', 'malformed'],
    ['["a\\u0000"]', 'nul'],
    ['{"\\u0000":1}', 'nul'],
    ['["\\ud83d"]', 'lone_surrogate'],
    ['{"\\ude00\\ud83d":1}', 'lone_surrogate'],
    ['[1e400]', 'number_too_large'],
    ['[-1.0e309]', 'number_too_large']
  ]
  for (const [source, reason] of refusals) t.throws(() => canonicalJson(source), { name: 'JsonError', reason }, JSON.stringify(source))
})

t.test('accepts 64 levels of lists and objects, but not 65', async t => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a": ', '}']
  ] as const) {
    const nested = (levels: number): string => open.repeat(levels) + (open === '[' ? '' : '1') + close.repeat(levels)
    t.equal(canonicalJson(nested(64)), nested(64))
    t.equal(
      reasonOf(() => canonicalJson(nested(65))),
      'too_deep'
    )
    t.equal(
      reasonOf(() => canonicalJson(nested(300_000))),
      'too_deep',
      'without overflowing the stack'
    )
  }
})

t.test('rejects bytes that are not UTF-8, and skips a byte order mark', async t => {
  t.equal(
    reasonOf(() => canonicalJson(Buffer.from([0x22, 0xff, 0x22]))),
    'malformed'
  )
  t.equal(canonicalJson(Buffer.from('\ufeff{"a":"ü"}')), '{"a": "\\u00fc"}')
})

t.test('parses a body to plain values, except for free JSON members', async t => {
  const body = readJson('{"name":"n","retry":{"max_attempts":3},"payload":{"b":1.0,"a":12345678901234567890},"metadata":null}', ['payload'])
  exactly(t, body, { name: 'n', retry: { max_attempts: 3 }, metadata: null })
  const { payload } = body as { payload: Json }
  t.type(payload, Json)
  t.equal(payload.text, '{"a": 12345678901234567890, "b": 1.0}')
  t.same(payload.value, { a: 12345678901234567000, b: 1 })
})

t.test('a body need not be an object', async t => {
  t.same(readJson('[1.0, {"payload": 2}]', ['payload']), [1, { payload: 2 }])
  t.equal(readJson('null'), null)
})

t.test('the last of duplicate members counts, also for free JSON', async t => {
  const body = readJson('{"payload":1,"a":1,"\\u0070ayload":2,"a":2}', ['payload']) as { payload: Json; a: number }
  t.equal(body.payload.text, '2')
  t.equal(body.a, 2)
})

t.test('a member named __proto__ is data', async t => {
  const body = readJson('{"__proto__":{"admin":true},"payload":{"__proto__":{"admin":true}}}', ['payload']) as {
    payload: Json
    admin?: boolean
  }
  t.equal(body.admin, undefined)
  t.equal(Object.getPrototypeOf(body), Object.prototype)
  t.equal(body.payload.text, '{"__proto__": {"admin": true}}')
  t.notOk('admin' in {})
})

t.test('the limit on levels counts from the member, not from the body', async t => {
  const nested = (levels: number): string => `{"payload":${'['.repeat(levels)}${']'.repeat(levels)}}`
  t.equal((readJson(nested(64), ['payload']) as { payload: Json }).payload.text.length, 128)
  t.equal(
    reasonOf(() => readJson(nested(65), ['payload'])),
    'too_deep'
  )
})

t.test('the size of a member is that of its JSON as received, without blanks between tokens', async t => {
  const sizeOf = (payload: string): number =>
    (readJson(`{ "payload" : ${payload} , "b" : 1 }`, ['payload']) as { payload: Json }).payload.bytes
  for (const payload of ['{"a":[1,2,3],"b":"x y"}', '"Grüße 😀"', '1', '1e5', '[1.50,12345678901234567890]', '[]']) {
    t.equal(sizeOf(payload), Buffer.byteLength(payload), payload)
    t.equal(sizeOf(`${payload.replaceAll(/([[{,:\]}])/g, ' $1\n')}`), Buffer.byteLength(payload), `${payload} with blanks`)
  }
})

const responseWriter = () => {
  const compiler = buildSerializer({}, {}) as unknown as (route: { schema: unknown }) => (value: unknown) => string
  return compiler({ schema: Type.Object({ payload: AnyJson() }) })
}

t.test('a response keeps all digits of a payload', async t => {
  const write = responseWriter()
  for (const canonical of [
    '[12345678901234567890, 1.0, 1e+16, 1.5e-07, -0.0, 2.5]',
    '{"a": {"b": 100000000000000000001}}',
    '"1.0"',
    '1.0',
    '7'
  ])
    t.equal(write({ payload: new Json(canonical) }), `{"payload":${canonical}}`)
})

t.test('only a response serialises a payload', async t => {
  t.throws(() => JSON.stringify({ payload: new Json('1.0') }), { message: 'free JSON is written by the serializer of responses only' })
})

t.test('merges objects one level deep', async t => {
  const base = canonicalJson('{"a":{"x":1},"b":1.0,"c":"kept"}')
  t.equal(
    canonicalMerge(base, canonicalJson('{"a":{"y":2},"b":12345678901234567890,"aa":null}')),
    '{"a": {"y": 2}, "aa": null, "b": 12345678901234567890, "c": "kept"}'
  )
  t.equal(canonicalMerge(base, '{}'), base)
  t.equal(canonicalMerge('{}', base), base)
})

t.test('replaces values that cannot be merged', async t => {
  t.equal(canonicalMerge('{"a": 1}', '[2]'), '[2]')
  t.equal(canonicalMerge('[1]', '{"a": 2}'), '{"a": 2}')
  t.equal(canonicalMerge('{"a": 1}', 'null'), 'null')
})

t.test('the task is the member "task" if that is a string', async t => {
  const tasks: [string, string | null][] = [
    ['{"task":"sync"}', 'sync'],
    ['{"z":1,"task":"Grüße"}', 'Grüße'],
    ['{"task":7}', null],
    ['{"task":null}', null],
    ['{"data":{"task":"inner"}}', null],
    ['[{"task":"inner"}]', null],
    ['"\\"task\\": \\"x\\""', null],
    ['null', null]
  ]
  for (const [source, task] of tasks) {
    t.equal((readJson(`{"payload":${source}}`, ['payload']) as { payload: Json }).payload.task, task, source)
  }
})
