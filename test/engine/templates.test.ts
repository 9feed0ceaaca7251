/** Texts with placeholders: parsing, and the three places where values are inserted. */
import fc from 'fast-check'
import t from 'tap'
import { canonicalJson } from '../../src/json/canonical-json.ts'
import { templateFaults } from '../../src/templates/faults.ts'
import { namesIn, parse, readValues, renderHeaders, renderPayload, renderUrl, type Values } from '../../src/templates/template.ts'
import { always } from '../support/seed.ts'

const values: Values = readValues(
  '{"cue.name": "a \\"b\\" {{c}} ü\\r\\nX: 1", "n": 12345678901234567890, "f": 1.0, "o": {"b": [1, null], "a": "x"}, "yes": true}'
)
const name = 'a "b" {{c}} ü\r\nX: 1'

t.test('splits texts at placeholders', async t => {
  const cases: [string, ReturnType<typeof parse>][] = [
    ['', []],
    ['a } b {', ['a } b {']],
    ['{{a}}', [{ name: 'a' }]],
    ['{{ a.b }}', [{ name: 'a.b' }]],
    ['x{{a}}{{b}}y', ['x', { name: 'a' }, { name: 'b' }, 'y']],
    ['{{{{a}}', ['{{a}}']],
    ['{{{{{{a}}', ['{{', { name: 'a' }]],
    ['{{a}} {{{{ {{', [{ name: 'a' }, ' {{ {{']],
    ['{{a', ['{{a']],
    ['{{a {{{{b', ['{{a {{b']],
    ['{{}}', [{ name: '' }]],
    ['}}{{a}}', ['}}', { name: 'a' }]],
    ['{{\na}}', [{ name: '\na' }]]
  ]
  for (const [text, parts] of cases) t.strictSame(parse(text), parts, text)
})

/** Texts made of what a parser could confuse. */
const pieces = fc.array(
  fc.oneof(fc.constantFrom('{', '{{', '}', '}}', 'cue.name', '"', '\\', ' ', '%', '?', '#', ':'), fc.string({ unit: 'grapheme' }))
)
const texts = pieces.map(parts => parts.join(''))
const well = (value: unknown) => JSON.parse(JSON.stringify(value).toWellFormed().replaceAll('\\u0000', ' '))

t.test('a text without placeholders stays as it is, and each can be written so that it does', async t => {
  always(
    fc.property(texts, text => {
      const literal = text.replaceAll('{{', '{{{{')
      return parse(literal).join('') === text && (text.includes('{{') || parse(text).join('') === text)
    })
  )
  always(
    fc.property(fc.jsonValue().map(well), value => {
      const json = canonicalJson(JSON.stringify(value))
      return json.includes('{{') || renderPayload(json, values) === json
    })
  )
  t.pass()
})

t.test('a payload stays JSON of the same structure, whatever the values are', async t => {
  const leaf = fc.oneof(texts, fc.constantFrom('{{a}}', 'x {{a}} y', '{{{{a}}'), fc.integer(), fc.constant(null))
  const { tree } = fc.letrec(tie => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('tree')),
      fc.dictionary(fc.oneof(texts, fc.constantFrom('{{a}}', 'b')), tie('tree'))
    )
  }))
  const render = (value: unknown, a: unknown): unknown => {
    if (typeof value === 'string') {
      const parts = parse(value)
      const [first] = parts
      if (parts.length === 1 && typeof first === 'object') return first.name === 'a' ? a : null
      return parts
        .map(part =>
          typeof part === 'string'
            ? part
            : part.name !== 'a' || a === null
              ? ''
              : typeof a === 'string'
                ? a
                : canonicalJson(JSON.stringify(a))
        )
        .join('')
    }
    if (Array.isArray(value)) return value.map(item => render(item, a))
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, render(item, a)]))
    return value
  }
  always(
    fc.property(tree.map(well), fc.jsonValue().map(well), (payload, a) => {
      const json = canonicalJson(JSON.stringify(payload))
      const rendered = renderPayload(json, { a })
      return rendered === canonicalJson(JSON.stringify(render(payload, a)))
    })
  )
  t.pass()
})

t.test('values keep their types and digits in a payload, and become text within one', async t => {
  const payload = (value: unknown) => renderPayload(canonicalJson(JSON.stringify(value)), values)
  const cases: [unknown, string][] = [
    ['{{n}}', '12345678901234567890'],
    ['{{f}}', '1.0'],
    ['{{o}}', '{"a": "x", "b": [1, null]}'],
    ['{{yes}}', 'true'],
    ['{{missing}}', 'null'],
    ['a{{missing}}b', '"ab"'],
    ['{{n}} {{f}} {{yes}} {{o}}', JSON.stringify('12345678901234567890 1.0 true {"a": "x", "b": [1, null]}')],
    ['{{cue.name}}', canonicalJson(JSON.stringify(name))],
    ['> {{cue.name}}', canonicalJson(JSON.stringify(`> ${name}`))],
    [{ '{{n}}': ['{{n}}', { a: '\\"{{n}}"' }] }, '{"{{n}}": [12345678901234567890, {"a": "\\\\\\"12345678901234567890\\""}]}']
  ]
  for (const [value, expected] of cases) t.equal(payload(value), expected)
  t.equal(renderPayload('{"a" : "{{n}}","{{n}}" :1}', values), '{"a" : 12345678901234567890,"{{n}}" :1}', 'as written in psql')
})

t.test('a value in a header is printable ASCII', async t => {
  t.strictSame(renderHeaders({ 'X-A': 'ä% {{cue.name}};{{n}};{{missing}}' }, values), {
    'X-A': 'ä% a "b" {{c}} %C3%BC%0D%0AX: 1;12345678901234567890;'
  })
  always(
    fc.property(fc.string({ unit: 'binary' }), value => {
      const text = renderHeaders({ a: '{{v}}' }, { v: value }).a!
      return /^[ -~]*$/.test(text) && decodeURIComponent(text) === value.toWellFormed()
    })
  )
})

t.test('a value in a query is one component of it', async t => {
  t.equal(
    renderUrl('https://h/{{n}}?a={{cue.name}}&b={{missing}}&c={{{{#{{n}}', values),
    `https://h/{{n}}?a=${encodeURIComponent(name)}&b=&c={{#{{n}}`
  )
  t.equal(renderUrl('https://h/p#?{{n}}', values), 'https://h/p#?{{n}}')
  always(
    fc.property(fc.string({ unit: 'binary' }), value => {
      const { searchParams, hash, pathname } = new URL(renderUrl('https://h/p?a={{v}}&b=1', { v: value }))
      return [...searchParams].join() === `a,${value.toWellFormed()},b,1` && hash === '' && pathname === '/p'
    })
  )
})

t.test('refuses unknown names, placeholders in other places, and too many', async t => {
  const faults = (
    payload: unknown,
    { url = null, headers = {}, parents = [] }: { url?: string | null; headers?: Record<string, string>; parents?: string[] } = {}
  ) =>
    templateFaults({ payload: canonicalJson(JSON.stringify(payload)), url, headers }, parents).map(
      ({ member, message }) => `${member.join('.')}: ${message.slice(0, 40)}`
    )
  const known = [
    'execution_id scheduled_for scheduled_date due_at triggered_by cue.id cue.key cue.name previous.scheduled_for previous.success_at',
    'previous.outcome.result previous.outcome.external_id previous.outcome.result_url previous.outcome.summary previous.outcome.metadata.x',
    'previous.outcome.metadata.x-1.y_2'
  ]
  for (const name of known.join(' ').split(' ')) t.same(faults(`{{${name}}}`), [], name)
  for (const name of [
    '',
    'x',
    'cue',
    'cue.payload',
    'previous',
    'previous.outcome',
    'previous.outcome.metadata',
    'previous.outcome.metadata.',
    'parents.a.execution_id',
    'execution_id.x'
  ])
    t.same(
      faults({ a: ['{{execution_id}}', `b {{${name}}}`] }),
      [`payload: ${`{{${name}}} is not a known name. Known: execution_id`.slice(0, 40)}`],
      name
    )
  t.same(faults({ '{{x}}': 1, b: '{{{{x}}' }), [], 'names of members, and {{{{')
  for (const name of ['parents.a.execution_id', 'parents.a.b.outcome.metadata.x', 'parents.a.scheduled_for', 'parents.a.b.scheduled_for'])
    t.same(faults(`{{${name}}}`, { parents: ['a', 'a.b'] }), [], name)
  for (const name of ['parents.b.execution_id', 'parents.a.c.execution_id', 'parents.a.success_at'])
    t.equal(faults(`{{${name}}}`, { parents: ['a', 'a.b'] }).length, 1, name)
  t.same(faults({}, { url: 'https://h/a?b={{execution_id}}', headers: { 'X-A': '{{cue.name}}' } }), [])
  for (const url of ['https://{{cue.key}}/a', 'https://h/{{cue.key}}?b=1', 'https://h/a?b=1#{{cue.key}}', 'https://{{x}}@h/'])
    t.same(faults({}, { url }), ['callback.url: a placeholder may stand only in the quer'], url)
  t.same(faults('{{x}}', { url: 'https://h/?{{y}}', headers: { 'X-A': '{{z}}' } }), [
    'payload: {{x}} is not a known name. Known: execut',
    'callback.headers.X-A: {{z}} is not a known name. Known: execut',
    'callback.url: {{y}} is not a known name. Known: execut'
  ])
  t.same(faults(Array(100).fill('{{cue.id}}')), [])
  t.same(faults(Array(100).fill('{{cue.id}}'), { headers: { a: '{{cue.id}}' } }), ['template: at most 100 placeholders are allowed, an'])
})

t.test('rendering takes a time that grows with the text, and no more', async t => {
  const inputs = [
    '{{'.repeat(500_000),
    `{{${'"'.repeat(400_000)}`,
    `${'\\'.repeat(250_000)}{{n}}`,
    `{{n}}${'\\"'.repeat(200_000)}{{n}}`,
    '{{n}}'.repeat(100)
  ].map(text => canonicalJson(JSON.stringify([text, { [text]: text }])))
  for (const json of inputs) {
    const started = process.cpuUsage()
    JSON.parse(renderPayload(json, values))
    const { user } = process.cpuUsage(started)
    t.ok(user < 2_000_000, `${Math.round(user / 1000)} ms`)
  }
  t.same(namesIn('{{'.repeat(1_000_001)), [])
})
